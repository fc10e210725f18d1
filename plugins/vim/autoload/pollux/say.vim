" What the plugin tells its user: whole, and without asking for a key.
scriptencoding utf-8

let s:popup = 0
let s:count = 0 " of messages

" How many cells a message may take on its line.
function! s:width() abort
  return max([20, get(v:, 'echospace', &columns - 20) - 1])
endfunction

" The words of a message on lines of at most {width} cells.
function! s:wrap(message, width) abort
  let l:lines = []
  for l:paragraph in split(a:message, "\n")
    let l:line = ''
    for l:word in split(l:paragraph, '\S\zs\ze\s')
      let l:longer = l:line . l:word
      if !empty(l:line) && strdisplaywidth(l:longer) > a:width
        call add(l:lines, l:line)
        let l:longer = substitute(l:word, '^\s*', '', '')
      endif
      let l:line = l:longer
    endfor
    call add(l:lines, l:line)
  endfor
  return l:lines
endfunction

" Tells a message, which may have several lines, without [pollux] before it.
" {1}: its highlight group. Later, on a screen that is drawn: within a command
" it could ask for a key, and a redraw that is due would take it away.
function! pollux#say#lines(message, ...) abort
  let s:count += 1
  call timer_start(0, function('s:tell', [s:wrap(a:message, s:width()), get(a:000, 0, 'None')]))
endfunction

function! s:tell(lines, group, timer) abort
  if mode() =~# '^[cr]' " somebody types there
    return timer_start(200, function('s:tell', [a:lines, a:group]))
  endif
  execute 'echohl' a:group
  for l:line in a:lines
    redraw
    echomsg l:line
  endfor
  echohl None
  if !exists('*popup_create')
    return
  endif
  call popup_close(s:popup)
  if len(a:lines) > 1 " each took the place of the one before, and the last alone says little
    redraw
    echo ''
    let s:popup = popup_create(a:lines, {'pos': 'botleft', 'line': &lines - &cmdheight - 1, 'col': 1, 'time': 10000, 'moved': 'any', 'border': [], 'padding': [0, 1, 0, 1]})
  endif
endfunction

" A number for the message told last, for pollux#say#over().
function! pollux#say#last() abort
  return s:count
endfunction

" Takes a message off its line that holds no longer, unless something was told since.
function! pollux#say#over(message) abort
  if a:message == s:count && mode() ==# 'n'
    silent! call popup_close(s:popup)
    redraw
    echo ''
  endif
endfunction

" Tells a message.
function! pollux#say#say(message, ...) abort
  call pollux#say#lines('[pollux] ' . a:message, get(a:000, 0, 'None'))
endfunction

" Tells what went wrong.
function! pollux#say#fail(message) abort
  call pollux#say#say(a:message, 'ErrorMsg')
endfunction

" Tells in one line about something with a name, of which it may leave out a part.
function! pollux#say#brief(name, message) abort
  let l:room = s:width() - len('[pollux] : ') - strdisplaywidth(a:message)
  let l:name = strdisplaywidth(a:name) > l:room ? strcharpart(a:name, 0, max([8, l:room - 1])) . (&encoding ==# 'utf-8' ? '…' : '~') : a:name
  call pollux#say#say(l:name . ': ' . a:message)
endfunction
