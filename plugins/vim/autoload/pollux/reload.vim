" The user's own buffers: they follow what the CLI writes.

let s:watcher = -1 " the timer of pollux#reload#watch()
let s:stamps = {} " of a buffer's file: as seen last, as shown

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

function! s:look(state, timer) abort
  let l:buf = pollux#reload#buffer(a:state.path)
  if l:buf == 0
    return pollux#context#touch(1)
  endif
  if getbufvar(l:buf, '&modified')
    if !a:state.told && pollux#reload#stamp(a:state.path) != a:state.before
      let a:state.told = 1
      call pollux#say#say(fnamemodify(a:state.path, ':t') . ' has been written; your unsaved changes are kept', 'WarningMsg')
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
  if a:state.before[0] < 0 && l:now[0] >= 0 " a new file, of which checktime would ask
    let l:windows = win_findbuf(l:buf)
    if !empty(l:windows) && exists('*win_execute')
      call win_execute(l:windows[0], 'silent! edit')
      let a:state.before = l:now
    endif
    return
  endif
  call s:reread(l:buf)
endfunction

" Shows what stands in a buffer's file, whatever 'autoread' is and however long it is.
function! s:reread(buf) abort
  let l:own = getbufvar(a:buf, '&l:autoread') " -1 where the user has none for this buffer
  let l:undo = &undoreload
  set undoreload=-1
  call setbufvar(a:buf, '&autoread', 1)
  execute 'silent! checktime' a:buf
  let &undoreload = l:undo
  call setbufvar(a:buf, '&autoread', l:own)
endfunction

" From now on shows what the CLI writes without a diff.
function! pollux#reload#watch() abort
  if s:watcher < 0
    let s:watcher = timer_start(1000, function('s:watch'), {'repeat': -1})
    call s:watch(s:watcher)
  endif
endfunction

function! s:watch(timer) abort
  if mode() !~# '^[nt]'
    return
  endif
  for l:buf in range(1, bufnr('$'))
    let l:path = bufloaded(l:buf) && !getbufvar(l:buf, '&modified') ? pollux#context#file(l:buf) : ''
    if empty(l:path)
      continue
    endif
    let l:now = pollux#reload#stamp(l:path)
    let l:known = get(s:stamps, l:buf, [l:now, l:now])
    let s:stamps[l:buf] = [l:now, l:known[1]] " what has just changed may be half written
    if l:now == l:known[0] && l:now != l:known[1]
      let s:stamps[l:buf] = [l:now, l:now]
      if pollux#context#within(l:path)
        call s:reread(l:buf)
      endif
    endif
  endfor
endfunction
