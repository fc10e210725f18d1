" A driver for `pollux conform --driver -` (docs/conform.md): Vim tries its own companion, and plays its user.
"
"   vim -N -u NONE --cmd 'set rtp^=…/plugins/vim' -c 'runtime plugin/pollux.vim' -S contract/drivers/vim.vim
"   :call ConformStart(['pollux', 'conform', '--json'], {status -> …})
"
" The report goes to g:conform_report, a list of lines, as it does on standard error.
set nocompatible encoding=utf-8 hidden nomore
let g:conform_report = []

function! ConformStart(command, over) abort
  let s:over = a:over
  let s:ends = []
  let s:job = job_start(a:command + ['--driver', '-', '--pid', string(getpid())], {'in_mode': 'nl', 'out_mode': 'nl',
        \ 'out_cb': {_, line -> s:line(line)}, 'err_cb': {_, line -> add(g:conform_report, line)},
        \ 'close_cb': {-> s:end('closed')}, 'exit_cb': {_, status -> s:end(status)}})
endfunction

" It is over when it has ended and everything that it said has come.
function! s:end(how) abort
  call add(s:ends, a:how)
  if len(s:ends) == 2
    call s:over(filter(s:ends, {_, end -> type(end) == v:t_number})[0])
  endif
endfunction

function! s:answer(problem) abort
  let l:answer = a:problem is v:null ? {'unsupported': v:true} : empty(a:problem) ? {'ok': v:true} : {'error': a:problem}
  call ch_sendraw(job_getchannel(s:job), json_encode(l:answer) . "\n")
endfunction

" Answers when the companion has heard all that was said before: it answers in order.
function! s:heard(problem) abort
  call pollux#execute('pollux.status', {}, {r, e -> s:answer(a:problem)})
endfunction

" Lets Vim see what has moved, and answers after a moment in which a person looks.
function! s:look() abort
  call feedkeys("\<Ignore>", 'n')
  call timer_start(150, {-> s:heard('')})
endfunction

function! s:line(line) abort
  try
    call s:do(json_decode(a:line))
  catch
    call s:answer(v:exception . ' at ' . v:throwpoint)
  endtry
endfunction

function! s:do(d) abort
  if has_key(a:d, 'reset')
    call s:reset()
  elseif has_key(a:d, 'report')
    call s:report(a:d.report)
  elseif has_key(a:d, 'accept')
    call s:decide({d -> pollux#diff#accept(d)}, a:d.accept)
  elseif has_key(a:d, 'reject')
    call s:decide({d -> pollux#diff#reject(d)}, v:null)
  elseif has_key(a:d, 'close')
    call s:decide({d -> execute('tabclose!')}, v:null)
  elseif has_key(a:d, 'edit')
    call s:decide(v:null, a:d.edit)
  elseif has_key(a:d, 'policy')
    call pollux#execute('pollux.setPolicy', {'policy': a:d.policy}, {r, e -> s:answer(empty(e) ? '' : e.message)})
  elseif has_key(a:d, 'views')
    call s:views(a:d.views, 0)
  elseif has_key(a:d, 'type')
    call s:write(a:d.type, 0)
  elseif has_key(a:d, 'save')
    call s:write(a:d.save, 1)
  elseif has_key(a:d, 'holds')
    call s:holds(a:d.holds)
  elseif has_key(a:d, 'touch')
    silent! checktime
    call pollux#context#touch(1)
    call s:look()
  else
    call s:answer(v:null) " a trust of its own, and a reason to refuse, Vim has not
  endif
endfunction

function! s:normal() abort
  execute "normal! \<Esc>"
endfunction

function! s:reset() abort
  call s:normal()
  for l:d in copy(pollux#diff#list())
    call pollux#diff#reject(l:d)
  endfor
  call timer_start(50, {-> s:clear()}) " the views are closed by then
endfunction

function! s:clear() abort
  silent! tabonly!
  silent! only!
  silent! %bwipeout!
  call feedkeys("\<Ignore>", 'n')
  call pollux#execute('pollux.setPolicy', {'policy': 'ask'}, {r, e -> timer_start(350, {-> s:heard(empty(e) ? '' : e.message)})})
endfunction

" Goes to a window of the user's own.
function! s:own() abort
  call s:normal()
  for l:info in getwininfo()
    if empty(getbufvar(l:info.bufnr, 'pollux_diff', ''))
      return win_gotoid(l:info.winid)
    endif
  endfor
  tabnew
endfunction

" The byte of a position that counts UTF-16 units, from 0.
function! s:byte(position) abort
  let [l:line, l:units, l:byte] = [getline(a:position.line + 1), 0, 0]
  for l:char in split(l:line, '\zs')
    for l:code in str2list(l:char)
      if l:units >= a:position.character
        return l:byte
      endif
      let l:units += l:code > 0xffff ? 2 : 1
      let l:byte += strlen(nr2char(l:code, 1))
    endfor
  endfor
  return strlen(l:line)
endfunction

function! s:report(r) abort
  call s:own()
  let l:active = get(a:r, 'Active', '')
  if type(get(a:r, 'Open', v:null)) == v:t_list
    for l:path in a:r.Open
      call bufload(bufadd(l:path))
      call setbufvar(l:path, '&buflisted', 1)
    endfor
  endif
  if empty(l:active)
    silent hide enew
    call pollux#context#touch(1)
    return s:look()
  endif
  if index(get(a:r, 'Dirty', []), l:active) >= 0
    call append('$', '')
    return s:look()
  endif
  execute 'silent hide edit!' fnameescape(l:active)
  if has_key(a:r, 'Cursor')
    call cursor(a:r.Cursor.line + 1, s:byte(a:r.Cursor) + 1)
  endif
  if !empty(get(a:r, 'Selections', []))
    call s:select(a:r.Selections[0])
  endif
  call pollux#context#touch(1)
  call s:look()
endfunction

" Visual mode holds whole characters, the last one included; the cursor is at the start.
function! s:select(s) abort
  let [l:row, l:till] = [a:s.end.line + 1, s:byte(a:s.end)]
  if l:till == 0
    let [l:row, l:till] = [l:row - 1, strlen(getline(l:row - 1)) + 1]
  endif
  call cursor(l:row, l:till)
  normal! v
  call cursor(a:s.start.line + 1, s:byte(a:s.start) + 1)
endfunction

function! s:fill(buf, text) abort
  let l:final = a:text[-1:] ==# "\n"
  let l:lines = split(l:final ? a:text[:-2] : a:text, "\n", 1)
  call setbufline(a:buf, 1, empty(l:lines) ? [''] : l:lines)
  silent call deletebufline(a:buf, max([2, len(l:lines) + 1]), '$')
  call setbufvar(a:buf, '&fixendofline', 0)
  call setbufvar(a:buf, '&endofline', l:final)
endfunction

function! s:decide(by, content) abort
  let l:all = pollux#diff#list()
  if empty(l:all)
    return s:answer('no diff is open')
  endif
  let [l:d, l:n] = [l:all[0], len(l:all)]
  call pollux#diff#show(l:d)
  if type(a:content) == v:t_string
    call s:fill(l:d.buffers[1], a:content)
  endif
  if a:by isnot v:null
    call a:by(l:d)
  endif
  call timer_start(100, {-> s:decided(a:by is v:null ? l:n + 1 : l:n, 0)})
endfunction

" Answers when there are fewer diffs than n, which the companion may refuse.
function! s:decided(n, tries) abort
  if len(pollux#diff#list()) < a:n || a:tries > 100
    return s:heard(a:tries > 100 ? 'the diff stays open' : '')
  endif
  call timer_start(20, {-> s:decided(a:n, a:tries + 1)})
endfunction

function! s:views(n, tries) abort
  if len(pollux#diff#list()) == a:n || a:tries > 400
    return s:answer(a:tries > 400 ? len(pollux#diff#list()) . ' diffs are open' : '')
  endif
  call timer_start(20, {-> s:views(a:n, a:tries + 1)})
endfunction

function! s:write(p, save) abort
  call s:own()
  execute 'silent hide edit!' fnameescape(a:p.path)
  call s:fill(bufnr('%'), a:p.content)
  if a:save
    silent write!
  endif
  call s:look()
endfunction

function! s:holds(p) abort
  let l:buf = pollux#reload#buffer(a:p.path)
  if l:buf == 0
    return s:answer('it is not open')
  endif
  let l:text = join(getbufline(l:buf, 1, '$'), "\n") . (getbufvar(l:buf, '&endofline') ? "\n" : '')
  call s:answer(l:text ==# a:p.content ? '' : 'the buffer holds ' . string(l:text))
endfunction
