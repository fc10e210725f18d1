" What the user looks at: focus, cursor, selection, open files and folders.

let s:limit = 16384 + 512 " UTF-16 units of a selection
let s:on = 0
let s:timer = -1
let s:last = ''
let s:files = v:null
let s:kept = {}
let s:latest = {} " the last message, also of a companion that has gone
let s:with_file = {} " the last one that has an active file
let s:left = 0 " the window that was left before what happened in it was told
let s:looked = {} " whether the CLI runs in a terminal, by its buffer
let s:visual = ['v', 'V', "\<C-v>", 's', 'S', "\<C-s>"]

" The file that a buffer edits, '' when it is none of the user's; with {1} it need not be there.
function! pollux#context#file(buf, ...) abort
  if !bufloaded(a:buf) || !empty(getbufvar(a:buf, '&buftype'))
    return ''
  endif
  let l:name = bufname(a:buf)
  if empty(l:name) || l:name =~# '^\a[0-9A-Za-z+.-]\+://' || l:name =~# '[/\\]\.git[/\\]'
    return ''
  endif
  let l:path = fnamemodify(l:name, ':p')
  return l:path !~# '[/\\]\.git[/\\]' && (getftype(l:path) =~# '^\%(file\|link\)$' || a:0 && empty(getftype(l:path))) && !isdirectory(l:path) ? l:path : ''
endfunction

function! s:open_files() abort
  if s:files is v:null
    let s:files = []
    for l:buf in range(1, bufnr('$'))
      if buflisted(l:buf) && bufloaded(l:buf)
        let l:path = pollux#context#file(l:buf, 1) " the companion looks which are there, and watches them
        if !empty(l:path)
          call add(s:files, pollux#text#uri(l:path))
        endif
      endif
    endfor
  endif
  return s:files
endfunction

" Whether the CLI runs in the foreground of a terminal, started by hand there.
function! s:runs_cli(buf) abort
  if !has_key(s:looked, a:buf) && executable('ps')
    let l:cli = pollux#setting('cli')
    let l:name = escape(fnamemodify(type(l:cli) == v:t_list ? l:cli[0] : l:cli, ':t'), '\')
    let l:processes = []
    silent! let l:processes = systemlist('ps -o stat= -o args= -t ' . shellescape(term_gettty(a:buf)))
    let s:looked[a:buf] = match(l:processes, '\C\V\^\S\*+\S\*\s\.\*\[ /]' . l:name . '\%(\[ .]\|\$\)') >= 0
  endif
  return get(s:looked, a:buf)
endfunction

" Whether a terminal is the CLI's own: the file that the user was in stays active there.
function! pollux#context#is_cli(buf) abort
  if getbufvar(a:buf, '&buftype') !=# 'terminal'
    return 0
  endif
  return getbufvar(a:buf, 'pollux_cli', 0) || bufname(a:buf) =~? 'gemini' || term_gettitle(a:buf) =~? 'gemini' || s:runs_cli(a:buf)
endfunction

function! s:position(row, bytes) abort
  return {'line': a:row - 1, 'character': pollux#text#utf16(getline(a:row), a:bytes)}
endfunction

" As many lines as a selection may have.
function! s:lines(first, last) abort
  return getline(a:first, min([a:last, a:first + s:limit]))
endfunction

function! s:bounded(lines) abort
  let l:text = join(a:lines, "\n")
  return strlen(l:text) > s:limit * 4 ? strcharpart(strpart(l:text, 0, s:limit * 4 + 8), 0, s:limit) : l:text
endfunction

function! s:charwise(a, b) abort
  let l:lines = s:lines(a:a[0], a:b[0])
  let l:whole = len(l:lines) == a:b[0] - a:a[0] + 1
  let l:final = getline(a:b[0])
  let l:over = 0
  if &selection ==# 'exclusive'
    let l:stop = a:b[1] - 1
  elseif a:b[1] > strlen(l:final)
    let l:stop = strlen(l:final)
    let l:over = a:b[0] < line('$') " the line's end is selected too
  else
    let l:stop = a:b[1] - 1 + strlen(matchstr(l:final[a:b[1] - 1 :], '.'))
  endif
  if l:whole
    let l:lines[-1] = strpart(l:lines[-1], 0, l:stop)
  endif
  let l:lines[0] = strpart(l:lines[0], a:a[1] - 1)
  return {'start': s:position(a:a[0], a:a[1] - 1),
        \ 'end': l:over ? {'line': a:b[0], 'character': 0} : s:position(a:b[0], l:stop),
        \ 'text': s:bounded(l:lines) . (l:over && l:whole ? "\n" : '')}
endfunction

function! s:linewise(a, b) abort
  let l:more = a:b[0] < line('$')
  return {'start': {'line': a:a[0] - 1, 'character': 0},
        \ 'end': l:more ? {'line': a:b[0], 'character': 0} : s:position(a:b[0], strlen(getline(a:b[0]))),
        \ 'text': s:bounded(s:lines(a:a[0], a:b[0])) . (l:more || &endofline ? "\n" : '')}
endfunction

" Screen columns, from 0, of the character at {at}: where it starts and ends.
function! s:columns(at) abort
  let l:line = getline(a:at[0])
  let l:from = strdisplaywidth(strpart(l:line, 0, a:at[1] - 1)) + a:at[2]
  return [l:from, l:from + max([1, strdisplaywidth(matchstr(l:line[a:at[1] - 1 :], '.'), l:from)])]
endfunction

function! s:blockwise(a, b) abort
  let l:corners = s:columns(a:a) + s:columns(a:b)
  let l:from = min([l:corners[0], l:corners[2]])
  " Up to every line's end, by $
  let l:till = winsaveview().curswant >= 0x7fffffff ? 0x7fffffff : max([l:corners[1], l:corners[3]])
  let l:out = []
  let l:bounds = []
  for l:line in s:lines(a:a[0], min([a:b[0], a:a[0] + 2000]))
    let [l:col, l:byte, l:piece, l:first, l:last] = [0, 0, '', -1, 0]
    for l:char in split(l:line, '\zs')
      let l:width = strdisplaywidth(l:char, l:col)
      if l:col < l:till && l:col + l:width > l:from
        let l:piece .= l:char
        let l:first = l:first < 0 ? l:byte : l:first
        let l:last = l:byte + strlen(l:char)
      endif
      let l:col += l:width
      let l:byte += strlen(l:char)
    endfor
    call add(l:out, l:piece)
    let l:bounds = (empty(l:bounds) ? [l:first < 0 ? strlen(l:line) : l:first] : l:bounds[:0]) + [l:first < 0 ? strlen(l:line) : l:last]
  endfor
  return {'start': s:position(a:a[0], l:bounds[0]), 'end': s:position(a:b[0], l:bounds[1]), 'text': s:bounded(l:out)}
endfunction

function! s:selection(mode) abort
  let [l:a, l:b] = [getpos('v')[1:3], getpos('.')[1:3]]
  if l:a[0] > l:b[0] || l:a[0] == l:b[0] && l:a[1] + l:a[2] > l:b[1] + l:b[2]
    let [l:a, l:b] = [l:b, l:a]
  endif
  if a:mode ==? 'v' && a:mode ==# 'V' || a:mode ==# 'S'
    return s:linewise(l:a, l:b)
  elseif a:mode ==# "\<C-v>" || a:mode ==# "\<C-s>"
    return s:blockwise(l:a, l:b)
  endif
  return s:charwise(l:a, l:b)
endfunction

" What to say in the CLI's own terminal: the last file again where it was
" another's before, such as the shell's that the CLI was started from.
function! s:stays() abort
  if get(s:latest, 'textDocument', 0) isnot v:null || index(s:open_files(), get(get(s:with_file, 'textDocument', {}), 'uri', '')) < 0
    return {}
  endif
  return extend(copy(s:with_file), {'openDocuments': s:open_files()})
endfunction

" The message for now, {} when there is nothing to say.
function! s:context() abort
  let [l:buf, l:mode] = [bufnr('%'), mode()]
  if l:mode[0] ==# 'c' || exists('*getcmdwintype') && !empty(getcmdwintype())
    return {} " the user comes back
  elseif pollux#context#is_cli(l:buf)
    let l:message = s:behind(s:left)
    return empty(l:message) ? s:stays() : l:message
  endif
  let l:path = &previewwindow ? '' : pollux#context#file(l:buf)
  if empty(l:path)
    let s:kept = {}
    return {'textDocument': v:null, 'openDocuments': s:open_files()}
  endif
  let l:message = {'textDocument': {'uri': pollux#text#uri(l:path)}, 'position': s:position(line('.'), col('.') - 1), 'openDocuments': s:open_files()}
  let l:state = [l:buf, b:changedtick, line('.'), col('.')]
  if index(s:visual, l:mode) >= 0
    let l:selection = s:selection(l:mode)
    if !empty(l:selection.text)
      let l:message.selection = l:selection
      let s:kept = {'state': l:state, 'selection': l:selection}
    endif
  elseif get(s:kept, 'state', []) == l:state
    let l:message.selection = s:kept.selection " until the cursor or the text moves on
  else
    let s:kept = {}
  endif
  let l:message.raw = has_key(l:message, 'selection') && pollux#text#raw(l:message.selection.text)
  return l:message
endfunction

" The context of a window that the user came from into the CLI's terminal.
function! s:behind(id) abort
  let l:message = {}
  if exists('*win_execute') && a:id > 0 && !empty(pollux#context#file(winbufnr(a:id)))
    call win_execute(a:id, 'let l:message = s:context()')
  endif
  return l:message
endfunction

function! s:flush(...) abort
  let s:timer = -1
  if !s:on
    return
  endif
  let l:message = s:context()
  if empty(l:message) && a:0 && type(a:1) == v:t_string " the first one of a companion
    let l:message = empty(s:latest) ? s:behind(win_getid(winnr('#'))) : s:latest
  endif
  let s:left = 0
  if empty(l:message)
    return
  endif
  let l:key = json_encode(l:message)
  if l:key !=# s:last
    let [s:last, s:latest] = [l:key, l:message]
    if l:message.textDocument isnot v:null
      let s:with_file = l:message
    endif
    call pollux#rpc#notify('pollux/didChangeContext', filter(copy(l:message), 'v:key !=# "raw"'), get(l:message, 'raw'))
  endif
endfunction

" Says what there is to say, 50 ms after the first of several events. With
" {lists} files or processes may have come or gone.
function! pollux#context#touch(lists) abort
  if a:lists
    let [s:files, s:looked] = [v:null, {}]
  endif
  if s:on && s:timer < 0
    let s:timer = timer_start(50, function('s:flush'))
  endif
endfunction

function! pollux#context#start() abort
  let [s:on, s:last, s:files] = [1, '', v:null]
  augroup pollux_context
    autocmd!
    for s:event in ['CursorMoved', 'CursorMovedI', 'CursorHold', 'ModeChanged', 'TextChanged', 'TextChangedI', 'WinEnter', 'TabEnter', 'FocusGained', 'CmdlineLeave', 'InsertLeave']
      if exists('##' . s:event)
        execute 'autocmd' s:event '* call pollux#context#touch(0)'
      endif
    endfor
    autocmd WinLeave * if s:timer >= 0 && !empty(pollux#context#file(bufnr('%'))) | let s:left = win_getid() | endif
    autocmd BufEnter,BufAdd,BufDelete,BufUnload,BufWipeout,BufFilePost,BufReadPost,BufWritePost,FileChangedShellPost * call pollux#context#touch(1)
  augroup END
  call s:flush('first')
endfunction

function! pollux#context#stop() abort
  let s:on = 0
  augroup pollux_context
    autocmd!
  augroup END
endfunction

" The folder of the repository that {dir} lies in, '' when there is none.
function! s:repository(dir) abort
  let l:dir = a:dir
  while 1
    if !empty(getftype(l:dir . '/.git'))
      return l:dir
    endif
    let l:up = fnamemodify(l:dir, ':h')
    if l:up ==# l:dir
      return ''
    endif
    let l:dir = l:up
  endwhile
endfunction

function! s:within(path, root) abort
  return a:path ==# a:root || a:root ==# '/' || stridx(a:path, a:root . '/') == 0
endfunction

function! s:add(all, dir) abort
  if empty(a:dir) || !isdirectory(a:dir)
    return
  endif
  let l:dir = resolve(a:dir)
  for l:root in a:all
    if s:within(l:dir, l:root)
      return
    endif
  endfor
  call filter(a:all, '!s:within(v:val, l:dir)')
  call add(a:all, l:dir)
endfunction

" The project's folders: those of every tab and window, and repositories.
function! pollux#context#roots() abort
  let l:all = []
  let l:dirs = [getcwd()]
  for l:tab in range(1, tabpagenr('$'))
    for l:win in range(1, tabpagewinnr(l:tab, '$'))
      try
        call add(l:dirs, getcwd(l:win, l:tab))
      catch
      endtry
      let l:path = pollux#context#file(tabpagebuflist(l:tab)[l:win - 1])
      if !empty(l:path)
        call add(l:dirs, s:repository(fnamemodify(l:path, ':h')))
      endif
    endfor
  endfor
  for l:dir in filter(l:dirs, '!empty(v:val)')
    let l:repository = s:repository(l:dir)
    call s:add(l:all, empty(l:repository) ? l:dir : l:repository)
  endfor
  return l:all
endfunction
