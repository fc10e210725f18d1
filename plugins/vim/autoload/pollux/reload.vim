" The user's own buffers: they follow what the CLI writes.

let s:told = {} " what the user has been told of a buffer since it was read or written
let s:missing = {} " whether a buffer's file has never been there
let s:waiting = {} " files that are looked at when the user's mode allows it
let s:stamps = {} " of files when their buffers were read or written
let s:guarded = 0
" Buffers of files that were not there when they were opened, and have not been read or written since. Of such Vim would ask (W13)
" by itself, whatever pollux#reload#guard() says.
let s:unread = {}

" The loaded buffer of a file, 0 when there is none.
function! pollux#reload#buffer(path) abort
  let l:real = resolve(a:path)
  for l:buf in range(1, bufnr('$'))
    if bufloaded(l:buf) && empty(getbufvar(l:buf, '&buftype')) && !empty(bufname(l:buf)) && resolve(fnamemodify(bufname(l:buf), ':p')) ==# l:real
      return l:buf
    endif
  endfor
  return 0
endfunction

" Whether a file has unsaved changes here.
function! pollux#reload#unsaved(path) abort
  let l:buf = pollux#reload#buffer(a:path)
  return l:buf > 0 && getbufvar(l:buf, '&modified')
endfunction

" Shows in the user's buffer what the CLI writes, as soon as it has. {before}
" is the file's stamp from before the CLI heard of the decision.
function! pollux#reload#follow(path, before) abort
  let l:state = {'path': a:path, 'before': a:before, 'seen': a:before, 'told': 0}
  call timer_start(100, function('s:look', [l:state]), {'repeat': 300})
endfunction

function! pollux#reload#stamp(path) abort
  return [getftime(a:path), getfsize(a:path)]
endfunction

" Remembers what a buffer's file is while the buffer shows it.
function! s:mark(buf) abort
  let s:stamps[a:buf] = pollux#reload#stamp(fnamemodify(bufname(a:buf), ':p'))
endfunction

" pollux/saveDocument: writes the user's unsaved changes, unless others have written the file since.
function! pollux#reload#save(p) abort
  let l:path = pollux#path(a:p.uri)
  let l:buf = pollux#reload#buffer(l:path)
  let l:win = l:buf > 0 ? get(win_findbuf(l:buf), 0) : 0
  if l:buf == 0
    return {'saved': v:false, 'why': 'it is not open in the editor'}
  elseif !getbufvar(l:buf, '&modified')
    return {'saved': v:true}
  elseif getbufvar(l:buf, '&readonly')
    return {'saved': v:false, 'why': 'the editor has it read-only'}
  elseif get(s:stamps, l:buf, []) != pollux#reload#stamp(l:path)
    return {'saved': v:false, 'why': 'it has changed on disk since the editor read it'}
  elseif l:win == 0 || !exists('*win_execute')
    return {'saved': v:false, 'why': 'no window of the editor shows it'}
  endif
  try
    call win_execute(l:win, 'write')
  catch
    return {'saved': v:false, 'why': v:exception}
  endtry
  return {'saved': getbufvar(l:buf, '&modified') ? v:false : v:true}
endfunction

function! s:look(state, timer) abort
  let l:buf = pollux#reload#buffer(a:state.path)
  if l:buf == 0
    return pollux#context#touch(1)
  endif
  if getbufvar(l:buf, '&modified')
    if !a:state.told && pollux#reload#stamp(a:state.path) != a:state.before
      let a:state.told = 1
      call s:tell_unsaved(l:buf)
    endif
    return
  endif
  let l:now = pollux#reload#stamp(a:state.path)
  if l:now != a:state.seen " it may be half written, and Vim knows what follows by its time alone
    let a:state.seen = l:now
    return
  elseif mode() !~# '^[nt]'
    return
  endif
  let l:new = a:state.before[0] < 0 && l:now[0] >= 0
  if l:new || l:now[0] >= 0
    let a:state.before = l:new ? l:now : a:state.before
    let l:others = s:others(l:buf)
    call s:reread(l:buf, a:state.path, l:new)
    call s:put_back(l:others)
  endif
endfunction

" Tells once that a buffer does not show what is on disk.
function! s:tell(buf, why, message) abort
  if get(s:told, a:buf, '') !=# a:why
    let s:told[a:buf] = a:why
    call pollux#say#brief(fnamemodify(bufname(a:buf), ':t'), a:message)
  endif
endfunction

function! s:tell_unsaved(buf) abort
  call s:tell(a:buf, 'unsaved', 'has changed on disk; your unsaved changes are kept, :Pollux merge shows all three')
endfunction

" The lines of a file as its buffer would have them, [] where only Vim itself knows how to read it.
function! s:on_disk(buf, path) abort
  let l:encoding = getbufvar(a:buf, '&fileencoding')
  if getbufvar(a:buf, '&binary') || &encoding !=# 'utf-8' || !empty(l:encoding) && l:encoding !=# 'utf-8' || !filereadable(a:path)
    return []
  endif
  let l:content = join(readfile(a:path, 'b'), "\n")
  let l:exact = l:content !~# '[^\x01-\x7f]' || json_decode(json_encode(l:content)) ==# l:content
  return l:exact ? pollux#text#lines(l:content) : []
endfunction

" Has Vim read a buffer's file again, whatever 'autoread' is and however long it is: only then it asks nothing at the next :write.
function! s:read_again(buf, new) abort
  let l:undo = &undoreload
  set undoreload=-1
  let l:windows = win_findbuf(a:buf)
  if a:new && !empty(l:windows) && exists('*win_execute') " checktime would ask
    call win_execute(l:windows[0], 'silent! edit')
  elseif a:new
    let s:missing[a:buf] = 1 " when it is shown
  else
    let l:own = getbufvar(a:buf, '&l:autoread') " -1 where the user has none for this buffer
    call setbufvar(a:buf, '&autoread', 1)
    execute 'silent! checktime' a:buf
    call setbufvar(a:buf, '&autoread', l:own)
  endif
  let &undoreload = l:undo
endfunction

" Shows what stands in a buffer's file. What is the same keeps its marks, folds, cursors and views; it can be undone at one go.
function! s:reread(buf, path, new) abort
  let l:windows = exists('*win_execute') && exists('*deletebufline') ? win_findbuf(a:buf) : []
  let l:lines = empty(l:windows) ? [] : s:on_disk(a:buf, a:path)
  let [l:views, l:tick] = [{}, -1]
  if !empty(l:lines)
    let l:modifiable = getbufvar(a:buf, '&modifiable')
    call setbufvar(a:buf, '&modifiable', 1)
    if pollux#lines#replace(a:buf, l:lines)
      let l:tick = getbufvar(a:buf, 'changedtick')
    endif
    call setbufvar(a:buf, '&modifiable', l:modifiable)
    call setbufvar(a:buf, '&modified', 0)
    for l:win in l:windows
      call win_execute(l:win, 'let l:views[l:win] = winsaveview()')
    endfor
  endif
  call s:read_again(a:buf, a:new)
  if !empty(l:lines) && !a:new && getbufline(a:buf, 1, '$') !=# l:lines
    call s:read_again(a:buf, 1) " by its time the file is the same
  endif
  if l:tick >= 0 && getbufvar(a:buf, 'changedtick') != l:tick && mode() !~# '^[iR]' && getbufline(a:buf, 1, '$') ==# l:lines
    call win_execute(l:windows[0], 'silent! undo') " the reading has changed nothing any more
    call setbufvar(a:buf, '&modified', 0)
  endif
  call s:put_back(l:views)
  call s:note(a:buf)
  if l:tick >= 0
    call setbufvar(a:buf, 'pollux_changed', getbufvar(a:buf, 'pollux_read')) " which "u" takes back
  endif
endfunction

" Says once that "u" has gone behind what others have written, which the next :write would overwrite.
function! s:undone() abort
  if &modified && changenr() < get(b:, 'pollux_changed')
    let b:pollux_changed = 0
    call pollux#say#brief(expand('%:t'), 'that was the text before the file changed; CTRL-R shows the file again')
  endif
endfunction

" Remembers that a buffer shows what is on the disk.
function! s:note(buf) abort
  silent! unlet s:told[a:buf]
  let l:windows = exists('*win_execute') ? win_findbuf(a:buf) : []
  if a:buf == bufnr('%')
    let b:pollux_read = undotree().seq_cur
  elseif !empty(l:windows)
    call win_execute(l:windows[0], 'let b:pollux_read = undotree().seq_cur')
  endif
endfunction

" What Vim would ask about a file that has changed.
function! s:asked(buf) abort
  let l:modified = getbufvar(a:buf, '&modified')
  let v:fcs_choice = v:fcs_reason ==# 'changed' && !l:modified ? 'reload' : ''
  if v:fcs_reason ==# 'conflict'
    call s:tell_unsaved(a:buf)
  elseif v:fcs_reason ==# 'deleted'
    call s:tell(a:buf, 'gone', 'is gone from the disk; its buffer keeps the text')
  endif
endfunction

function! pollux#reload#start() abort
  for l:buf in filter(range(1, bufnr('$')), 'bufloaded(v:val) && empty(getbufvar(v:val, "&buftype"))')
    let s:unread[l:buf] = getftime(fnamemodify(bufname(l:buf), ':p')) < 0
    if !getbufvar(l:buf, '&modified')
      call s:mark(l:buf)
    endif
  endfor
  augroup pollux_unread
    autocmd!
    autocmd BufNewFile * let s:unread[expand('<abuf>')] = 1
    autocmd BufReadPost,BufWritePost * let s:unread[expand('<abuf>')] = 0 | call s:mark(str2nr(expand('<abuf>')))
  augroup END
endfunction

" While a CLI is connected Vim asks nothing about files that have changed (W11, W12), as they are followed. An autocommand of
" the user's for that is left alone.
function! pollux#reload#guard(connected) abort
  if a:connected && !s:guarded && !exists('#FileChangedShell')
    let s:guarded = 1
    augroup pollux_reload
      autocmd!
      autocmd FileChangedShell * call s:asked(str2nr(expand('<abuf>')))
      autocmd BufReadPost,BufWritePost * call s:note(str2nr(expand('<abuf>')))
      autocmd BufWritePost * let b:pollux_changed = 0
      autocmd TextChanged * call s:undone()
    augroup END
  elseif !a:connected && s:guarded
    let s:guarded = 0
    autocmd! pollux_reload
  endif
endfunction

" Where the windows of this tab page are that show something else. For a buffer that none of them shows Vim opens one of its
" own for a moment (at checktime and setbufvar), which takes lines from the others and leaves them scrolled.
function! s:others(buf) abort
  let l:views = {}
  for l:nr in exists('*win_execute') ? range(1, winnr('$')) : []
    let l:win = win_getid(l:nr)
    if winbufnr(l:nr) != a:buf
      call win_execute(l:win, 'let l:views[l:win] = winsaveview()')
    endif
  endfor
  return l:views
endfunction

function! s:put_back(views) abort
  for [l:win, l:view] in items(a:views)
    call win_execute(str2nr(l:win), 'call winrestview(l:view)')
  endfor
endfunction

function! s:refresh(path) abort
  let l:buf = pollux#reload#buffer(a:path)
  if l:buf == 0
    return
  endif
  let l:others = s:others(l:buf)
  let [l:there, l:new] = [getftime(a:path) >= 0, get(s:missing, l:buf)]
  let s:missing[l:buf] = get(s:missing, l:buf, 1) && !l:there
  if getbufvar(l:buf, '&modified') && (!s:guarded || l:there && get(s:unread, l:buf))
    call s:tell_unsaved(l:buf)
  elseif getbufvar(l:buf, '&modified') || !l:there
    execute 'silent! checktime' l:buf
  else
    call s:reread(l:buf, a:path, l:new)
  endif
  call s:put_back(l:others)
endfunction

" pollux/filesChanged: others have written these files, or the companion watches them only from now on.
function! pollux#reload#changed(p) abort
  for l:uri in a:p.uris
    let s:waiting[pollux#path(l:uri)] = 1
  endfor
  call s:look_now(0)
endfunction

function! s:look_now(timer) abort
  if empty(s:waiting)
    return
  elseif mode() !~# "^[nitvV\<C-v>]" || exists('*state') && state('m') !=# ''
    return timer_start(100, function('s:look_now'))
  endif
  let [l:paths, s:waiting] = [keys(s:waiting), {}]
  for l:path in l:paths
    call s:refresh(l:path)
  endfor
  call pollux#context#touch(1)
endfunction

" The text that the current buffer had when it was read or written last.
function! s:began() abort
  let [l:view, l:now] = [winsaveview(), undotree().seq_cur]
  try
    execute 'silent noautocmd undo' get(b:, 'pollux_read', 0)
    return getline(1, '$')
  finally
    execute 'silent noautocmd undo' l:now
    call winrestview(l:view)
  endtry
endfunction

function! s:beside(name, lines, syntax) abort
  leftabove vnew
  setlocal buftype=nofile bufhidden=wipe noswapfile
  execute 'silent keepalt file' fnameescape(printf('pollux://%d/%s', bufnr('%'), a:name))
  call setline(1, a:lines)
  setlocal nomodifiable
  let &l:syntax = a:syntax
  diffthis
endfunction

" Shows this buffer's unsaved changes beside what it began with, and what is on the disk now, in a tab page.
function! pollux#reload#merge() abort
  let l:path = pollux#context#file(bufnr('%'))
  if empty(l:path)
    return pollux#say#fail('this buffer is no file on disk')
  endif
  let [l:base, l:disk, l:syntax, l:name] = [s:began(), s:on_disk(bufnr('%'), l:path), &syntax, fnamemodify(l:path, ':t')]
  tab split
  diffthis
  let l:win = win_getid()
  call s:beside('began/' . l:name, l:base, l:syntax)
  call s:beside('disk/' . l:name, empty(l:disk) ? readfile(l:path) : l:disk, l:syntax)
  call win_gotoid(l:win)
  call pollux#say#say('on the left the disk, in the middle what you began with: :diffget disk takes a change, :w writes, :tabclose ends')
endfunction
