" The unified layout: the proposal alone, to be edited, with the lines that it takes away between its own.

let s:laststatus = 0 " the option before it was changed

" Whether this Vim can, and {d} is short enough for it: its changes are looked for at each key.
function! pollux#unified#fits(d) abort
  return has('patch-9.0.0438') && count(a:d.old, "\n") + count(a:d.new, "\n") <= 5000
endfunction

" A line as virtual text shows it: tabs as wide as in the buffer, and no control characters.
function! s:flat(line) abort
  let l:out = ''
  for l:part in split(a:line, '\t\zs', 1)
    let l:out .= strtrans(substitute(l:part, '\t$', '', ''))
    if l:part =~# '\t$'
      let l:out .= repeat(' ', &tabstop - strdisplaywidth(l:out) % &tabstop)
    endif
  endfor
  return l:out
endfunction

" The changes of a diff: row (lines before it) and lines in the proposal, from (lines before it) and count in the file.
function! s:changes(old, new) abort
  if a:old ==# [''] " a file that is not there
    return [{'row': 0, 'lines': a:new, 'from': 0, 'count': 0}]
  endif
  let [l:all, l:by] = [[], 0]
  for l:h in pollux#lines#hunks(a:old, a:new)
    call add(l:all, {'row': l:h.from + l:by, 'lines': l:h.lines, 'from': l:h.from, 'count': l:h.count})
    let l:by += len(l:h.lines) - l:h.count
  endfor
  return l:all
endfunction

" The characters that two lines have in common at their beginning.
function! s:common(a, b) abort
  let [l:a, l:b, l:n] = [split(a:a, '\zs'), split(a:b, '\zs'), 0]
  while l:n < len(l:a) && l:n < len(l:b) && l:a[l:n] ==# l:b[l:n]
    let l:n += 1
  endwhile
  return l:n
endfunction

" Marks what differs in a line of the proposal, at {row}, from {old}.
function! s:mark(buf, row, old, new) abort
  let l:first = strlen(strcharpart(a:new, 0, s:common(a:old, a:new)))
  let [l:a, l:b] = [strpart(a:old, l:first), strpart(a:new, l:first)]
  let l:last = s:common(join(reverse(split(l:a, '\zs')), ''), join(reverse(split(l:b, '\zs')), ''))
  let l:length = strlen(strcharpart(l:b, 0, strchars(l:b) - l:last))
  if l:length > 0
    call prop_add(a:row + 1, l:first + 1, {'type': 'PolluxText', 'length': l:length, 'bufnr': a:buf})
  endif
endfunction

" Draws one change. What is taken away stands below the line before it: Vim draws a sign, and a line's colour, beside the text above.
function! s:draw(buf, change, old) abort
  let [l:h, l:gone] = [a:change, a:change.count > 0 ? a:old[a:change.from : a:change.from + a:change.count - 1] : []]
  let l:where = {'type': 'PolluxGone', 'bufnr': a:buf, 'text_align': l:h.row == 0 ? 'above' : 'below', 'text_wrap': 'truncate'}
  for l:line in l:gone
    call prop_add(max([l:h.row, 1]), 0, extend({'text': '- ' . s:flat(l:line)}, l:where))
  endfor
  for l:i in range(len(l:h.lines))
    let l:line = l:h.row + l:i + 1
    if l:line > 1 || empty(l:gone)
      call sign_place(0, 'pollux_added', 'PolluxAdded', a:buf, {'lnum': l:line, 'priority': 10})
    elseif !empty(l:h.lines[0])
      call prop_add(1, 1, {'type': 'PolluxAdd', 'bufnr': a:buf, 'length': strlen(l:h.lines[0])})
    endif
    if l:i < l:h.count
      call s:mark(a:buf, l:line - 1, l:gone[l:i], l:h.lines[l:i])
    endif
  endfor
endfunction

" The lines of the file whose proposal is in the current buffer.
function! s:old() abort
  return pollux#text#lines(filter(copy(pollux#diff#list()), 'v:val.id ==# b:pollux_diff')[0].old)
endfunction

" Draws the diff of the current buffer as it is now, and returns the lines where changes begin.
function! pollux#unified#draw() abort
  let l:buf = bufnr('%')
  let [l:old, l:new] = [s:old(), getline(1, '$')]
  call prop_remove({'types': ['PolluxAdd', 'PolluxGone', 'PolluxText'], 'bufnr': l:buf, 'all': 1})
  call sign_unplace('pollux_added', {'buffer': l:buf})
  let b:pollux_changes = s:changes(l:old, l:new)
  for l:h in b:pollux_changes
    call s:draw(l:buf, l:h, l:old)
  endfor
  return map(copy(b:pollux_changes), 'min([v:val.row + 1, len(l:new)])')
endfunction

" Whether the current buffer is a proposal in this layout.
function! pollux#unified#here() abort
  return get(b:, 'pollux_unified')
endfunction

" Goes to the next change, or with {step} -1 to the one before.
function! s:jump(step) abort
  let l:starts = map(copy(b:pollux_changes), 'min([v:val.row + 1, line("$")])')
  call filter(l:starts, a:step < 0 ? 'v:val < line(".")' : 'v:val > line(".")')
  if !empty(l:starts)
    call cursor(l:starts[a:step < 0 ? -1 : 0], 1)
  endif
endfunction

" Takes the change at the cursor back.
function! s:obtain() abort
  for l:h in b:pollux_changes
    let [l:n, l:line] = [len(l:h.lines), line('.')]
    if l:line > l:h.row && l:line <= l:h.row + l:n || l:n == 0 && (l:line == l:h.row || l:line == l:h.row + 1)
      let l:gone = l:h.count > 0 ? s:old()[l:h.from : l:h.from + l:h.count - 1] : []
      call append(l:h.row, l:gone)
      if l:n > 0
        silent call deletebufline('%', l:h.row + len(l:gone) + 1, l:h.row + len(l:gone) + l:n)
      endif
      return cursor(min([l:h.row + 1, line('$')]), 1)
    endif
  endfor
  call pollux#say#say('no change here')
endfunction

" Makes the current window, with the proposal, that of a diff, at its first change.
function! pollux#unified#begin() abort
  let b:pollux_unified = 1
  setlocal nonumber norelativenumber signcolumn=yes foldcolumn=0 nofoldenable
  for [l:type, l:priority] in items({'PolluxAdd': 0, 'PolluxGone': 0, 'PolluxText': 1})
    if empty(prop_type_get(l:type))
      call prop_type_add(l:type, {'highlight': l:type, 'combine': 1, 'priority': l:priority})
    endif
  endfor
  call sign_define('PolluxAdded', {'text': '+', 'texthl': 'PolluxAdd', 'linehl': 'PolluxAdd'})
  nnoremap <buffer> <silent> ]c :<C-u>call <SID>jump(1)<CR>
  nnoremap <buffer> <silent> [c :<C-u>call <SID>jump(-1)<CR>
  nnoremap <buffer> <silent> do :<C-u>call <SID>obtain()<CR>
  if &laststatus == 1 " a window by itself has no line that says what it is
    let s:laststatus = 1
    set laststatus=2
  endif
  call pollux#unified#draw()
  call cursor(1, 1)
  if !empty(b:pollux_changes)
    call cursor(min([b:pollux_changes[0].row + 1, line('$')]), 1)
  endif
endfunction

" Leaves the user's options as they were.
function! pollux#unified#done() abort
  if s:laststatus == 1 && &laststatus == 2
    set laststatus=1
  endif
  let s:laststatus = 0
endfunction
