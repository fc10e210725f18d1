" Whether the user pauses: nothing may take the keys of somebody who types.

let s:moved = reltime()
let s:ear = 0 " the popup window that hears keys for which there is no event

function! s:moves() abort
  let s:moved = reltime()
endfunction

" Whether nothing on the screen waits for a key of the user's. A terminal in a
" popup window (which is where nothing else may be opened) is such a thing.
function! pollux#pause#free() abort
  return mode(1) !~# '^[cr]' && (!exists('*getcmdwintype') || empty(getcmdwintype())) && (!exists('*win_gettype') || win_gettype() !=# 'popup')
endfunction

" Hears what is typed into a terminal, for some time: a popup window without a
" cell of its own sees every key, and passes it on. What was typed before it
" is not known, so that the pause begins with it. Vim 8.1 has no such windows.
function! s:listen() abort
  if exists('*popup_create') && empty(popup_getpos(s:ear))
    call s:moves()
    let s:ear = popup_create('', {'mask': [[1, -1, 1, -1]], 'tabpage': -1, 'filter': function('s:hear'), 'filtermode': 'a', 'time': pollux#setting('idle') + 5000})
  endif
endfunction

function! s:hear(window, key) abort
  call s:moves()
  return 0
endfunction

" Whether a command has begun: half of a mapping, an operator, a count, a
" register's name, a character that f or a script waits for, or a recording.
" In a terminal Vim is never "safe" (S) again once a key has been typed there.
function! s:amid() abort
  return mode(1) !~# '^[nt]' || mode(1) =~# '^no' || exists('*state') && !empty(state(mode() ==# 't' ? 'mo' : 'moS')) || exists('*reg_recording') && !empty(reg_recording())
endfunction

" Whether the user pauses. Who asks asks again and again until it is so.
function! pollux#pause#now() abort
  if !pollux#pause#free() || s:amid()
    return 0
  elseif mode() ==# 't'
    call s:listen()
  endif
  if reltimefloat(reltime(s:moved)) * 1000 < pollux#setting('idle')
    return 0
  elseif exists('*popup_close')
    call popup_close(s:ear)
  endif
  return 1
endfunction

function! pollux#pause#start() abort
  augroup pollux_moves
    autocmd!
    for s:event in ['CursorMoved', 'CursorMovedI', 'TextChanged', 'TextChangedI', 'InsertEnter', 'InsertLeave', 'CmdlineEnter', 'CmdlineLeave', 'ModeChanged']
      if exists('##' . s:event)
        execute 'autocmd' s:event '* call s:moves()'
      endif
    endfor
  augroup END
endfunction
