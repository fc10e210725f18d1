" The buffers and windows of one diff.
scriptencoding utf-8

let s:no_tab = 'Vim opens no tab page now'

" What the keys of pollux#mappings() stand for.
let s:writing = {'x': 'wq', 'xi': 'wq', 'xit': 'wq', 'exi': 'wq', 'exit': 'wq', 'up': 'w', 'update': 'w'}
let s:commands = {'accept': 'accept', 'reject': 'reject', 'accept_all': 'accept-all', 'next': 'review next', 'keep': 'keep', 'take': 'take'}

" Why a diff that is to come again has not opened.
function! pollux#view#no_tab() abort
  return s:no_tab
endfunction

" The name of the file's language, without starting anything that a language starts.
function! s:syntax_of(path) abort
  let l:open = pollux#reload#buffer(a:path)
  if l:open > 0 && !empty(getbufvar(l:open, '&filetype'))
    return getbufvar(l:open, '&filetype')
  endif
  if !exists('#filetypedetect#BufRead')
    return ''
  endif
  let l:ignored = &eventignore
  set eventignore=FileType,Syntax
  try
    execute 'doautocmd <nomodeline> filetypedetect BufRead' fnameescape(a:path)
  catch
  finally
    let l:found = &filetype
    setlocal filetype=
    let &eventignore = l:ignored
  endtry
  return l:found
endfunction

function! pollux#view#title(d, side) abort
  return printf('pollux://%d/%s (%s)', a:d.number, fnamemodify(a:d.path, ':t'), a:side)
endfunction

" Makes the current, empty buffer one side of a diff.
function! s:scratch(d, side, content) abort
  setlocal buftype=nofile bufhidden=wipe noswapfile nobuflisted
  execute 'silent keepalt file' fnameescape(pollux#view#title(a:d, a:side))
  call pollux#text#fill(a:content)
  let b:pollux_diff = a:d.id
  for [l:what, l:keys] in items(pollux#mappings())
    if has_key(s:commands, l:what) && !empty(l:keys)
      execute 'nnoremap <buffer> <silent>' l:keys ':Pollux' s:commands[l:what] . '<CR>'
    endif
  endfor
  " Nothing is ever modified here, so that no autosave writes it; these must write all the same.
  for [l:short, l:long] in items(s:writing)
    execute printf('cnoreabbrev <buffer> <expr> %s getcmdtype() ==# ":" && getcmdline() ==# "%s" ? "%s" : "%s"', l:short, l:short, l:long, l:short)
  endfor
  return bufnr('%')
endfunction

function! pollux#view#remember() abort
  let l:origin = {'tab': tabpagenr(), 'win': win_getid(), 'sizes': winrestcmd(), 'views': {}, 'terminal': mode() ==# 't'}
  if exists('*win_execute')
    for l:win in range(1, winnr('$'))
      let l:id = win_getid(l:win)
      call win_execute(l:id, 'let l:origin.views[l:id] = winsaveview()')
    endfor
  endif
  return l:origin
endfunction

function! pollux#view#restore(origin) abort
  if !win_gotoid(a:origin.win)
    return
  endif
  execute a:origin.sizes
  for [l:id, l:view] in items(a:origin.views)
    call win_execute(str2nr(l:id), 'call winrestview(l:view)')
  endfor
  if a:origin.terminal && &buftype ==# 'terminal' && mode() !=# 't'
    call feedkeys('i', 'n')
  endif
endfunction

" Opens the tab page of a diff; {made} gets its buffers.
function! pollux#view#open(d, made) abort
  let l:tabs = tabpagenr('$')
  tabnew
  if tabpagenr('$') == l:tabs " as when an autocommand goes elsewhere: this buffer is the user's
    throw s:no_tab
  endif
  call add(a:made, bufnr('%'))
  let l:left = s:scratch(a:d, 'before', a:d.old)
  setlocal nomodifiable
  let l:unified = pollux#setting('layout') ==# 'unified' && pollux#unified#fits(a:d)
  if l:unified
    setlocal bufhidden=hide
    enew
    call pollux#mirror#open(a:d)
  else
    call pollux#mirror#open(a:d)
    let a:d.stacked = s:stacked(a:d)
    execute 'rightbelow' a:d.stacked ? '' : 'vertical' 'new'
  endif
  call add(a:made, bufnr('%'))
  let l:right = s:scratch(a:d, 'proposal', a:d.new)
  setlocal buftype=acwrite
  let &l:modifiable = empty(a:d.fixed)
  let l:syntax = s:syntax_of(a:d.path)
  setlocal nomodified
  let [a:d.tick, a:d.told] = [b:changedtick, b:changedtick]
  let [a:d.buffers, a:d.win, a:d.size] = [[l:left, l:right], win_getid(), [&columns, &lines]]
  for l:buf in a:d.buffers
    if !empty(l:syntax)
      call setbufvar(l:buf, '&syntax', l:syntax)
    endif
    if !l:unified
      call win_gotoid(win_findbuf(l:buf)[0])
      diffthis
    endif
  endfor
  wincmd =
  augroup pollux_diff
    execute printf('autocmd BufWriteCmd <buffer=%d> call pollux#diff#written(%s)', l:right, string(a:d.id))
    execute printf('autocmd BufWinLeave,BufWipeout <buffer=%d> call pollux#diff#left(%s)', l:right, string(a:d.id))
    execute printf('autocmd QuitPre <buffer=%d> call setbufvar(%d, "&modified", 0) | call pollux#diff#left(%s, 1)', l:left, l:right, string(a:d.id))
    execute printf('autocmd QuitPre <buffer=%d> setlocal nomodified', l:right)
    execute printf('autocmd TextChanged,TextChangedI <buffer=%d> setlocal nomodified | call pollux#diff#changed(%s)', l:right, string(a:d.id))
    execute printf('autocmd BufReadCmd <buffer=%d>,<buffer=%d> call pollux#diff#again(%s)', l:left, l:right, string(a:d.id))
  augroup END
  execute printf('autocmd pollux_diff CursorMoved,CursorMovedI,TextChanged,TextChangedI <buffer=%d> call s:where(%d)', l:right, l:left)
  call pollux#colours#set()
  call pollux#view#mark(a:d)
  if l:unified
    call pollux#unified#begin()
  else
    call s:first_change()
  endif
  call s:where(l:left)
endfunction

" Whether the two sides stand one above the other: by the setting, else by 'diffopt', else where two do not fit.
function! s:stacked(d) abort
  let l:layout = pollux#setting('layout')
  return l:layout ==# 'horizontal' || l:layout !=# 'vertical' && (&diffopt =~# 'horizontal' || &columns - pollux#mirror#columns(a:d) < 100 && &diffopt !~# 'vertical')
endfunction

" Lays a diff out anew where the screen has another size: its windows move, and keep what they show.
function! pollux#view#resize(d) abort
  let l:windows = map(copy(a:d.buffers), 'win_id2win(get(win_findbuf(v:val), 0))')
  if l:windows[1] == 0 || !exists('*win_splitmove') || a:d.size == [&columns, &lines]
    return 0 " in another tab page, or a Vim before 8.2
  endif
  let a:d.size = [&columns, &lines]
  call pollux#mirror#resize(a:d)
  if l:windows[0] > 0 && a:d.stacked != s:stacked(a:d)
    let a:d.stacked = !a:d.stacked
    call win_splitmove(l:windows[1], l:windows[0], {'vertical': !a:d.stacked, 'rightbelow': 1})
  endif
  wincmd =
endfunction

" Looks at once what differs in {d}, where others have changed it.
function! pollux#view#again(d) abort
  call win_execute(win_findbuf(a:d.buffers[1])[0], 'diffupdate | call s:where(a:d.buffers[0])')
endfunction

" Notes for the status line at which change of the current buffer, whose other side is {left}, the cursor is.
function! s:where(left) abort
  let l:ticks = [b:changedtick, getbufvar(a:left, 'changedtick')]
  if get(b:, 'pollux_ticks', []) != l:ticks
    let [b:pollux_ticks, b:pollux_starts] = [l:ticks, pollux#unified#here() ? pollux#unified#draw() : s:starts()]
  endif
  let [l:all, l:at] = [len(b:pollux_starts), len(filter(copy(b:pollux_starts), 'v:val <= line(".")'))]
  let b:pollux_change = l:all == 0 ? '' : l:at > 0 ? printf('change %d/%d', l:at, l:all) : l:all == 1 ? '1 change' : l:all . ' changes'
endfunction

" The lines where changes begin, as the window of the proposal shows them; none for a text that is too long to look. One expression is three times as fast as a loop.
function! s:starts() abort
  let l:last = line('$')
  let l:found = l:last > 5000 ? [] : filter(range(1, l:last + 1),
        \ '(v:val == 1 || diff_hlID(v:val - 1, 1) == 0) && (v:val <= l:last && diff_hlID(v:val, 1) > 0 || diff_filler(v:val) > 0)')
  return map(l:found, 'min([v:val, l:last])')
endfunction

" Puts the cursor on the first change, which "]c" leaves when it is on the first line or above it.
function! s:first_change() abort
  normal! gg
  if diff_filler(1) > 0
    call winrestview({'topline': 1, 'topfill': diff_filler(1)})
  elseif diff_hlID(1, 1) == 0
    silent! normal! ]c
  endif
endfunction

" Says below a window what it shows, for as long as it does.
function! s:label(buf, side, d, more) abort
  let l:name = substitute(printf('%s (%s)', fnamemodify(a:d.path, ':t'), a:side), '%', '%%', 'g')
  let l:change = a:side ==# 'proposal' ? "%{get(b:, 'pollux_change', '')} " : ''
  for l:win in win_findbuf(a:buf)
    let [l:tab, l:nr] = win_id2tabwin(l:win)
    call settabwinvar(l:tab, l:nr, '&statusline', '%#PolluxLabel# %<' . l:name . substitute(a:more, '%', '%%', 'g') . ' %=' . l:change . ' %l:%c ')
  endfor
endfunction

" Says beside the text where the file has changed what the proposal changes too, and what ends that.
function! pollux#view#mark(d) abort
  let l:places = get(a:d.conflict, 'places', [])
  if exists('*sign_place')
    call sign_define('PolluxConflict', {'text': '!', 'texthl': 'PolluxConflict'})
    call sign_unplace('pollux', {'buffer': a:d.buffers[1]})
    let l:last = len(getbufline(a:d.buffers[1], 1, '$'))
    for l:place in l:places
      for l:line in range(min([l:place.start + 1, l:last]), min([max([l:place.end, l:place.start + 1]), l:last]))
        call sign_place(0, 'pollux', 'PolluxConflict', a:d.buffers[1], {'lnum': l:line, 'priority': 50})
      endfor
    endfor
  endif
  let l:more = ''
  if !empty(a:d.conflict)
    let l:more = '  conflict: ' . (empty(l:places) ? ':Pollux keep, or reject' : ':Pollux keep or take')
  elseif pollux#reload#unsaved(a:d.path)
    let l:more = '  without your unsaved changes'
  elseif a:d.others > 0
    let l:more = printf('  %d more for this file', a:d.others)
  endif
  if !empty(a:d.place) && !(a:d.others > 0 && a:d.place =~# ' of ' . (a:d.others + 1) . ' ') " or that says it
    let l:more .= '  ' . a:d.place
  endif
  let l:more = '  ' . matchstr(a:d.title, ".* \u2013 \\zs.*") . l:more " first, so that a narrow window shows the rest
  call s:label(a:d.buffers[0], 'before', a:d, '')
  call s:label(a:d.buffers[1], 'proposal', a:d, l:more)
endfunction

