" What differs between two lists of lines, and putting just that into a buffer.

" How many lines are the same at the start (or, reversed, at the end) of two lists.
function! s:common(a, b) abort
  let l:n = 0
  let l:most = min([len(a:a), len(a:b)])
  while l:n < l:most && a:a[l:n] ==# a:b[l:n]
    let l:n += 1
  endwhile
  return l:n
endfunction

" Where in {lines} those stand that are there once.
function! s:once(lines) abort
  let [l:at, l:i] = [{}, 0]
  for l:line in a:lines
    let l:at['x' . l:line] = has_key(l:at, 'x' . l:line) ? -1 : l:i
    let l:i += 1
  endfor
  return filter(l:at, 'v:val >= 0')
endfunction

" The pairs of lines that stand once in each of the two and follow one another in both, as far as a greedy look finds them.
function! s:anchors(a, b) abort
  let [l:in_a, l:in_b] = [s:once(a:a), s:once(a:b)]
  let l:pairs = []
  for [l:line, l:i] in items(l:in_a)
    if has_key(l:in_b, l:line)
      call add(l:pairs, [l:i, l:in_b[l:line]])
    endif
  endfor
  call sort(l:pairs, {x, y -> x[0] - y[0]})
  " The longest run that grows in b, too.
  let [l:tops, l:before] = [[], []]
  for l:k in range(len(l:pairs))
    let [l:low, l:high] = [0, len(l:tops)]
    while l:low < l:high
      let l:mid = (l:low + l:high) / 2
      if l:pairs[l:tops[l:mid]][1] < l:pairs[l:k][1]
        let l:low = l:mid + 1
      else
        let l:high = l:mid
      endif
    endwhile
    call add(l:before, l:low > 0 ? l:tops[l:low - 1] : -1)
    if l:low == len(l:tops)
      call add(l:tops, l:k)
    else
      let l:tops[l:low] = l:k
    endif
  endfor
  let [l:run, l:k] = [[], empty(l:tops) ? -1 : l:tops[-1]]
  while l:k >= 0
    call insert(l:run, l:pairs[l:k])
    let l:k = l:before[l:k]
  endwhile
  return l:run
endfunction

" Adds to {hunks} what differs between {a} and {b}, which begin behind {i} and {j} lines.
function! s:compare(a, b, i, j, hunks) abort
  let l:head = s:common(a:a, a:b)
  let [l:a, l:b] = [a:a[l:head :], a:b[l:head :]]
  let l:tail = s:common(reverse(copy(l:a)), reverse(copy(l:b)))
  let [l:a, l:b] = [l:tail > 0 ? l:a[: -l:tail - 1] : l:a, l:tail > 0 ? l:b[: -l:tail - 1] : l:b]
  let [l:i, l:j] = [a:i + l:head, a:j + l:head]
  if empty(l:a) && empty(l:b)
    return
  endif
  let l:anchors = empty(l:a) || empty(l:b) || len(l:a) + len(l:b) > 20000 ? [] : s:anchors(l:a, l:b)
  if empty(l:anchors)
    call add(a:hunks, {'from': l:i, 'count': len(l:a), 'lines': l:b})
    return
  endif
  let [l:x, l:y] = [0, 0]
  for [l:p, l:q] in l:anchors + [[len(l:a), len(l:b)]]
    call s:compare(l:p > l:x ? l:a[l:x : l:p - 1] : [], l:q > l:y ? l:b[l:y : l:q - 1] : [], l:i + l:x, l:j + l:y, a:hunks)
    let [l:x, l:y] = [l:p + 1, l:q + 1]
  endfor
endfunction

" What turns {before} into {after}: hunks of from (how many lines stand before it), count and lines, in order.
function! pollux#lines#hunks(before, after) abort
  let l:hunks = []
  call s:compare(a:before, a:after, 0, 0, l:hunks)
  return l:hunks
endfunction

" Where a line (from 1) stands after {hunks}.
function! s:moved(line, hunks) abort
  let l:by = 0
  for l:h in a:hunks
    if a:line <= l:h.from
      break
    elseif a:line <= l:h.from + l:h.count
      return max([1, l:h.from + l:by + min([a:line - l:h.from, max([1, len(l:h.lines)])])])
    endif
    let l:by += len(l:h.lines) - l:h.count
  endfor
  return a:line + l:by
endfunction

function! s:apply(buf, hunk) abort
  let l:same = min([a:hunk.count, len(a:hunk.lines)])
  if l:same > 0
    call setbufline(a:buf, a:hunk.from + 1, a:hunk.lines[: l:same - 1])
  endif
  if len(a:hunk.lines) > l:same
    call appendbufline(a:buf, a:hunk.from + l:same, a:hunk.lines[l:same :])
  elseif a:hunk.count > l:same
    silent call deletebufline(a:buf, a:hunk.from + l:same + 1, a:hunk.from + a:hunk.count)
  endif
endfunction

" Makes {lines} those of a loaded, modifiable buffer: marks, folds, cursors and views stay with their text. Returns whether anything differs.
function! pollux#lines#replace(buf, lines) abort
  let l:hunks = pollux#lines#hunks(getbufline(a:buf, 1, '$'), a:lines)
  if empty(l:hunks)
    return 0
  endif
  let l:views = {}
  if exists('*win_execute')
    for l:win in win_findbuf(a:buf)
      call win_execute(l:win, 'let l:views[l:win] = winsaveview()')
    endfor
  endif
  let l:readonly = getbufvar(a:buf, '&readonly')
  call setbufvar(a:buf, '&readonly', 0)
  call setbufvar(a:buf, '&undolevels', getbufvar(a:buf, '&l:undolevels')) " what was typed before is undone apart
  for l:hunk in reverse(copy(l:hunks))
    call s:apply(a:buf, l:hunk)
  endfor
  call setbufvar(a:buf, '&readonly', l:readonly)
  for [l:win, l:view] in items(l:views)
    let [l:view.lnum, l:view.topline] = [s:moved(l:view.lnum, l:hunks), s:moved(l:view.topline, l:hunks)]
    call win_execute(str2nr(l:win), 'call winrestview(l:view)')
  endfor
  return 1
endfunction
