" Texts as pollux has them, and buffers as Vim has them.

let s:bom = "\ufeff"

" Whether the current buffer holds {text} as the bytes of UTF-8 that its file
" has, while Vim takes each of them for a character (LANG=C).
function! pollux#text#raw(text) abort
  return &encoding !=# 'utf-8' && (empty(&fileencoding) || &fileencoding ==# &encoding)
        \ && a:text =~# "[\x80-\xff]" && a:text =~# "^\\%([\x01-\x7f]\\|[\xc2-\xdf][\x80-\xbf]\\|[\xe0-\xef][\x80-\xbf]\\{2}\\|[\xf0-\xf4][\x80-\xbf]\\{3}\\)*$"
endfunction

" The number of UTF-16 units in the first {byte} bytes of {line}, of the current buffer.
function! pollux#text#utf16(line, byte) abort
  if pollux#text#raw(a:line)
    let l:start = matchend(strpart(a:line, 0, a:byte + 1), "^.*[^\x80-\xbf]") - 1 " not within a character
    let l:s = strpart(a:line, 0, a:byte < strlen(a:line) ? l:start : a:byte)
    return strlen(substitute(l:s, "[\x80-\xbf]", '', 'g')) + strlen(substitute(l:s, "[^\xf0-\xf4]", '', 'g'))
  endif
  let l:s = strpart(a:line, 0, a:byte)
  if l:s !~# '[^\x01-\x7f]'
    return strlen(l:s)
  endif
  let l:n = strchars(l:s)
  if exists('*str2list') && l:s =~# "[\U10000-\U10ffff]"
    for l:c in str2list(l:s)
      let l:n += l:c > 0xffff
    endfor
  elseif l:s =~# "[\U10000-\U10ffff]"
    let l:n += strchars(substitute(l:s, "[\x01-\uffff]", '', 'g'))
  endif
  return l:n
endfunction

" The byte (from 0) of {line} that stands behind so many UTF-16 units; its end where it has fewer.
function! pollux#text#byte(line, units) abort
  let l:n = 0
  let l:byte = 0
  let l:raw = pollux#text#raw(a:line)
  for l:char in split(strpart(a:line, 0, 4 * a:units), l:raw ? "[\x80-\xbf]\\@!" : '\zs')
    if l:n >= a:units
      break
    endif
    let l:n += l:raw ? 1 + (l:char =~# "^[\xf0-\xf4]") : pollux#text#utf16(l:char, strlen(l:char))
    let l:byte += strlen(l:char)
  endfor
  return l:byte
endfunction

" What a buffer makes of a text: its lines, and as options the byte order mark, line ends and a missing last one.
function! s:shape(text) abort
  let l:text = a:text
  let l:marked = strpart(l:text, 0, 3) ==# s:bom
  if l:marked
    let l:text = strpart(l:text, 3)
  endif
  let l:final = empty(l:text) || l:text[-1:] ==# "\n"
  let l:lines = split(l:text, "\n", 1)
  if l:final && !empty(l:text)
    call remove(l:lines, -1)
  endif
  " Only where every line ends in CR LF they are the format, else characters.
  let l:ended = l:final ? l:lines : l:lines[:-2]
  let l:dos = !empty(l:text) && !empty(l:ended) && match(l:ended, '\r\@<!$') < 0
  let l:blank = l:final && !empty(l:text) && len(l:lines) == 1 && l:lines[0] =~# '^\r\=$'
  if l:dos
    let l:last = l:final ? [] : [l:lines[-1]]
    let l:lines = map(copy(l:ended), 'v:val[:-2]') + l:last
  endif
  return {'lines': l:lines, 'format': l:dos ? 'dos' : 'unix', 'final': l:final, 'marked': l:marked, 'blank': l:blank}
endfunction

function! s:put_shape(buf, shape) abort
  call setbufvar(a:buf, 'pollux_blank', a:shape.blank)
  call setbufvar(a:buf, '&fileformat', a:shape.format)
  call setbufvar(a:buf, '&fixendofline', 0)
  call setbufvar(a:buf, '&endofline', a:shape.final)
  call setbufvar(a:buf, '&bomb', a:shape.marked)
  call setbufvar(a:buf, '&modified', 0)
endfunction

" Fills the current buffer so that pollux#text#read() gives {text} back, byte for byte.
function! pollux#text#fill(text) abort
  let l:shape = s:shape(a:text)
  setlocal modifiable
  let l:levels = &l:undolevels
  setlocal undolevels=-1 " the filling is nothing to undo
  silent keepjumps %delete _
  call setline(1, l:shape.lines)
  let &l:undolevels = l:levels
  call s:put_shape(bufnr('%'), l:shape)
endfunction

" The lines that a buffer has when it shows {text}.
function! pollux#text#lines(text) abort
  return s:shape(a:text).lines
endfunction

" Like pollux#text#fill(), for any buffer: what is the same stays, with marks, folds, cursors and undo.
function! pollux#text#update(buf, text) abort
  let [l:shape, l:modifiable] = [s:shape(a:text), getbufvar(a:buf, '&modifiable')]
  call setbufvar(a:buf, '&modifiable', 1)
  call pollux#lines#replace(a:buf, l:shape.lines)
  call s:put_shape(a:buf, l:shape)
  call setbufvar(a:buf, '&modifiable', l:modifiable)
endfunction

" The text of a buffer as it would be written.
function! pollux#text#read(buf) abort
  let l:lines = getbufline(a:buf, 1, '$')
  let l:bom = getbufvar(a:buf, '&bomb') ? s:bom : ''
  if l:lines ==# [''] && !getbufvar(a:buf, 'pollux_blank')
    return l:bom " one empty line is how a buffer shows no text
  endif
  let l:format = getbufvar(a:buf, '&fileformat')
  let l:eol = l:format ==# 'dos' ? "\r\n" : l:format ==# 'mac' ? "\r" : "\n"
  return l:bom . join(l:lines, l:eol) . (getbufvar(a:buf, '&endofline') ? l:eol : '')
endfunction

" Whether JSON can carry {text}: it is UTF-8, and holds no NUL (which Vim keeps as a line feed).
function! pollux#text#valid(buf, text) abort
  return match(getbufline(a:buf, 1, '$'), "\n") < 0 && (a:text !~# '[^\x01-\x7f]' || json_decode(json_encode(a:text)) ==# a:text)
endfunction

function! pollux#text#uri(path) abort
  let l:path = has('win32') ? tr(a:path, '\', '/') : a:path
  let l:path = substitute(l:path, '[^A-Za-z0-9/._~:@$&+=,;!*()-]', '\=s:escape(submatch(0))', 'g')
  return 'file://' . (l:path[0] ==# '/' ? '' : '/') . l:path
endfunction

function! s:escape(char) abort
  let l:out = ''
  for l:i in range(strlen(a:char))
    let l:out .= printf('%%%02X', char2nr(a:char[l:i], 0) % 256)
  endfor
  return l:out
endfunction
