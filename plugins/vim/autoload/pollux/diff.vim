" Diffs: proposals of the CLI's, one on show in a tab page of its own, the others in a queue.

let s:queue = [] " in the order in which they came; see pollux#diff#open() for their fields
let s:waiter = -1
let s:serial = 0
let s:unheard = {} " rejections that no companion has answered, by id; see pollux#diff#announce()

augroup pollux_diff
  autocmd!
  autocmd VimResized,TabEnter * call pollux#diff#resized()
augroup END

function! s:find(id) abort
  for l:d in s:queue
    if l:d.id ==# a:id
      return l:d
    endif
  endfor
  return {}
endfunction

function! pollux#diff#list() abort
  return s:queue
endfunction

" The diff on show, {} when there is none.
function! pollux#diff#current() abort
  for l:d in s:queue
    if index(l:d.buffers, bufnr('%')) >= 0
      return l:d
    endif
  endfor
  for l:d in s:queue
    if s:visible(l:d)
      return l:d
    endif
  endfor
  return {}
endfunction

" The diff behind the one on show, {} when no other waits.
function! pollux#diff#following() abort
  let l:i = index(s:queue, pollux#diff#current())
  return get(s:queue, l:i + 1, l:i > 0 ? s:queue[0] : {})
endfunction

function! s:visible(d) abort
  return !empty(a:d.buffers) && !empty(win_findbuf(a:d.buffers[1]))
endfunction

" Has the diff on show say which of how many it is, and how many others wait for its file.
function! s:count() abort
  for l:d in s:queue
    let l:others = len(filter(copy(s:queue), 'v:val.path ==# l:d.path')) - 1
    let l:place = len(s:queue) > 1 ? printf('%d of %d waiting', index(s:queue, l:d) + 1, len(s:queue)) : ''
    if l:others != l:d.others || l:place !=# l:d.place
      let [l:d.others, l:d.place] = [l:others, l:place]
      if s:visible(l:d)
        call pollux#view#mark(l:d)
      endif
    endif
  endfor
endfunction

" What changes with each edit of a proposal, -1 while it has no buffer.
function! s:tick(d) abort
  return empty(a:d.buffers) || !bufloaded(a:d.buffers[1]) ? -1 : getbufvar(a:d.buffers[1], 'changedtick')
endfunction

" The text of a proposal as it is now; Vim takes the buffers away before it leaves.
function! pollux#diff#content(d) abort
  let l:tick = s:tick(a:d)
  return l:tick == -1 ? get(a:d, 'leaves', a:d.new) : l:tick == a:d.tick ? a:d.new : pollux#text#read(a:d.buffers[1])
endfunction

" Whether JSON can carry {content}, which the user may have made of a proposal.
function! s:valid(d, content) abort
  return empty(a:d.buffers) || a:content ==# a:d.new || pollux#text#valid(a:d.buffers[1], a:content)
endfunction

" The diffs as a companion that has come back wants to hear of them, with what the one before has not heard. It counts their versions anew.
function! pollux#diff#announce() abort
  let l:all = values(s:unheard)
  for l:d in s:queue
    call add(l:all, {'diffId': l:d.id, 'filePath': l:d.path, 'content': pollux#diff#content(l:d), 'shown': l:d.shown, 'oldText': l:d.old})
    call extend(l:d, {'version': 1, 'base': 0, 'edits': 0, 'deciding': '', 'told': s:tick(l:d)})
  endfor
  return l:all
endfunction

" Whether there is anything to announce.
function! pollux#diff#waits() abort
  return !empty(s:queue) || !empty(s:unheard)
endfunction

" Shows a diff now, and takes the focus. Returns the reason why not, '' when it is on show.
function! pollux#diff#show(d) abort
  if s:visible(a:d)
    call win_gotoid(win_findbuf(a:d.buffers[1])[0])
    return ''
  endif
  let a:d.origin = pollux#view#remember()
  if mode() ==# 't'
    call feedkeys("\<C-\>\<C-n>", 'nx')
  elseif mode() =~# '^[iR]'
    stopinsert
  endif
  let l:made = []
  try
    call pollux#view#open(a:d, l:made)
  catch
    call pollux#mirror#close(a:d)
    let a:d.buffers = []
    for l:buf in l:made
      execute 'silent! bwipeout!' l:buf
    endfor
    call pollux#view#restore(a:d.origin)
    return v:exception
  endtry
  let l:keys = ':w accepts, :q rejects' . (empty(a:d.place) ? '' : ', ' . a:d.place)
  if !empty(a:d.fixed)
    let l:keys .= '; ' . a:d.fixed
  endif
  if pollux#reload#unsaved(a:d.path)
    call pollux#say#say(a:d.title . ': your unsaved changes of it are kept, and not in this diff; ' . l:keys, 'WarningMsg')
  elseif pollux#setting('notify') || !empty(a:d.fixed)
    call pollux#say#brief(a:d.title, l:keys)
  endif
  let a:d.hint = pollux#say#last()
  return ''
endfunction

" Saving by itself, in another autocommand, must not accept.
function! pollux#diff#written(id) abort
  let l:stack = expand('<stack>')
  if l:stack !=# '<stack>' && len(split(l:stack, 'Autocommands for', 1)) > 2
    setlocal nomodified
    return
  endif
  let l:d = s:find(a:id)
  if !empty(l:d) && expand('<afile>') =~# '^pollux://'
    call pollux#diff#accept(l:d)
  elseif !empty(l:d)
    call s:copy(l:d, fnamemodify(expand('<afile>'), ':p'))
  endif
endfunction

" Writes the proposal as it is now into another file, which decides nothing.
function! s:copy(d, path) abort
  if !empty(getftype(a:path)) && !v:cmdbang
    return pollux#say#fail(a:path . ' exists (add ! to write it)')
  elseif writefile(split(pollux#diff#content(a:d), "\n", 1), a:path, 'b') == 0
    call pollux#say#say(a:path . ' holds a copy; the proposal still waits for your decision')
    call timer_start(0, {-> s:name(a:d)})
  endif
endfunction

" Gives a proposal its own name again, after :saveas.
function! s:name(d) abort
  if s:visible(a:d) && bufname(a:d.buffers[1]) !~# '^pollux://'
    call win_execute(win_findbuf(a:d.buffers[1])[0], 'silent keepalt file ' . fnameescape(pollux#view#title(a:d, 'proposal')))
  endif
endfunction

" Shows a side as it was proposed last, for :edit!
function! pollux#diff#again(id) abort
  let l:d = s:find(a:id)
  if empty(l:d) || index(l:d.buffers, bufnr('%')) < 0
    return
  endif
  let l:right = bufnr('%') == l:d.buffers[1]
  call pollux#text#fill(l:right ? l:d.new : l:d.old)
  let &l:modifiable = l:right && empty(l:d.fixed)
  if l:right
    let l:d.tick = b:changedtick " it may be what others have made of it, too
    call pollux#diff#changed(a:id)
  endif
endfunction

" The view has gone, or (with more) should. That rejects, but not when it goes with a decision: the
" companion may refuse that one before the timer runs, and then the diff is shown again.
function! pollux#diff#left(id, ...) abort
  let l:now = a:0
  let l:d = s:find(a:id)
  if empty(get(l:d, 'deciding', ''))
    if !empty(l:d)
      call pollux#diff#report(l:d) " before its buffer goes
      let l:d.leaves = pollux#diff#content(l:d)
    endif
    call timer_start(0, {-> s:gone(a:id, l:now)})
  endif
endfunction

function! s:gone(id, now) abort
  let l:d = s:find(a:id)
  if !empty(l:d) && (a:now || !s:visible(l:d))
    call pollux#diff#reject(l:d)
  endif
endfunction

" A throttled report of what the user edits.
function! pollux#diff#changed(id) abort
  let l:d = s:find(a:id)
  if !empty(l:d) && !get(l:d, 'reporting')
    let l:d.reporting = 1
    call timer_start(200, {-> s:due(l:d)})
  endif
endfunction

function! s:due(d) abort
  let a:d.reporting = 0
  call pollux#diff#report(a:d)
endfunction

" Reports what the user has edited and nobody has heard of; 0 when there is nothing.
function! pollux#diff#report(d) abort
  let l:tick = s:tick(a:d)
  if empty(s:find(a:d.id)) || l:tick == -1 || l:tick == a:d.told
    return 0
  endif
  let l:content = pollux#diff#content(a:d)
  if s:valid(a:d, l:content)
    let [a:d.edits, a:d.told] = [a:d.edits + 1, l:tick]
    call pollux#rpc#notify('pollux/didChangeDiff', {'diffId': a:d.id, 'version': a:d.edits, 'from': a:d.version, 'content': l:content})
  endif
  return 1
endfunction

" Takes the view away and puts the user back.
function! s:hide(d) abort
  " Not when the user has opened something else in its window.
  let l:here = empty(a:d.buffers) ? 0 : index(a:d.buffers, bufnr('%')) >= 0 || pollux#mirror#here(a:d) || !s:visible(a:d) && win_id2tabwin(a:d.win) ==# [0, 0]
  call pollux#mirror#close(a:d)
  for l:buf in a:d.buffers
    execute printf('autocmd! pollux_diff * <buffer=%d>', l:buf)
    if bufexists(l:buf)
      execute 'silent! bwipeout!' l:buf
    endif
  endfor
  let l:others = filter(copy(s:queue), 's:visible(v:val)')
  if empty(l:others)
    call pollux#unified#done()
  endif
  if l:here
    call pollux#view#restore(a:d.origin)
  endif
  call pollux#colours#done()
  call pollux#say#over(get(a:d, 'hint', -1))
endfunction

" The one place where a diff ends; it is out of the queue before anything is
" closed, and that happens when the command that ended it is over.
function! s:finish(d) abort
  let l:i = index(s:queue, a:d)
  if l:i < 0
    return 0
  endif
  call remove(s:queue, l:i)
  call s:count()
  call timer_start(0, {-> s:tidy(a:d)})
  return 1
endfunction

function! s:tidy(d) abort
  call s:hide(a:d)
  call pollux#diff#pump()
  call pollux#context#touch(0)
endfunction

" Asks the companion to end a diff, or its conflict, with what is on the screen; {then} is called if it does.
" It refuses where something is newer, which it tells (SPEC F-13).
function! s:decide(d, outcome, content, then) abort
  if !empty(a:d.deciding) || empty(s:find(a:d.id))
    return
  elseif pollux#rpc#job() is v:null
    return pollux#say#fail('the companion does not run just now; the proposal still waits for your decision')
  endif
  let l:tick = s:tick(a:d)
  call extend(a:d, {'deciding': a:outcome, 'new': a:content, 'tick': l:tick, 'told': l:tick, 'edits': a:d.edits + 1}) " it is an edit as well
  call pollux#rpc#call('pollux/resolveDiff',
        \ {'diffId': a:d.id, 'version': a:d.version, 'baseVersion': a:d.base, 'outcome': a:outcome, 'content': a:content, 'edit': a:d.edits},
        \ {_, e -> s:decided(a:d, e, a:then)})
endfunction

function! s:decided(d, error, then) abort
  let a:d.deciding = ''
  if empty(s:find(a:d.id))
    return
  elseif empty(a:error)
    return a:then()
  endif
  call pollux#say#say(a:error.message, 'WarningMsg')
  if !s:visible(a:d) " its window has gone with the command
    call s:hide(a:d)
    let a:d.buffers = []
    let a:d.held = 0
    call pollux#diff#pump()
  endif
endfunction

" Accepts a diff with its text as it is now.
function! pollux#diff#accept(d) abort
  let l:content = pollux#diff#content(a:d)
  if !s:valid(a:d, l:content)
    return pollux#say#fail('the proposal holds bytes that are not UTF-8; it cannot be accepted like this')
  elseif empty(l:content) && !empty(a:d.proposed)
    return pollux#say#fail('an emptied proposal cannot be accepted: the CLI would write its own text; reject it instead')
  endif
  let l:before = pollux#reload#stamp(a:d.path)
  call s:decide(a:d, 'accepted', l:content, {-> s:accepted(a:d, l:content, l:before)})
endfunction

function! s:accepted(d, content, before) abort
  let l:now = pollux#diff#content(a:d)
  if l:now !=# a:content " typed since
    call s:keep(a:d, l:now)
  endif
  if s:finish(a:d)
    call pollux#reload#follow(a:d.path, a:before)
  endif
endfunction

" Ends a conflict: with "keep" the proposal stands over the file's change, with "take" the file's lines stand. It does not accept.
function! pollux#diff#settle(d, how) abort
  let l:content = pollux#diff#content(a:d)
  if empty(a:d.conflict)
    return pollux#say#fail('nothing is in conflict here')
  elseif !s:valid(a:d, l:content)
    return pollux#say#fail('the proposal holds bytes that are not UTF-8')
  endif
  call s:decide(a:d, a:how, l:content, {-> s:hint(a:d, a:how ==# 'keep' ? 'the proposal stands; :w accepts it' : "the file's lines stand; :w accepts the rest")})
endfunction

" Says something of a diff that holds as long as it is there.
function! s:hint(d, message) abort
  call pollux#say#brief(fnamemodify(a:d.path, ':t'), a:message)
  let a:d.hint = pollux#say#last()
endfunction

" Rejects a diff. One that is being accepted is not: its window may go before the answer comes.
function! pollux#diff#reject(d) abort
  if empty(a:d.deciding) && !empty(s:find(a:d.id))
    call pollux#diff#report(a:d) " the history keeps what the user made of it
    let l:content = pollux#diff#content(a:d)
    let s:unheard[a:d.id] = {'diffId': a:d.id, 'filePath': a:d.path, 'content': s:valid(a:d, l:content) ? l:content : a:d.new,
          \ 'shown': a:d.shown, 'oldText': a:d.old, 'outcome': 'rejected'}
    call s:finish(a:d)
    call pollux#rpc#call('pollux/resolveDiff', {'diffId': a:d.id, 'version': a:d.version, 'baseVersion': a:d.base, 'outcome': 'rejected'},
          \ {-> s:forget(a:d.id)})
  endif
endfunction

" Forgets a rejection that is answered, and returns it; {} when there is none.
function! s:forget(id) abort
  return has_key(s:unheard, a:id) ? remove(s:unheard, a:id) : {}
endfunction

" Whether an update was sent before the user's last edit was heard of. It would overwrite that; what is merged with it
" comes next. An edit that nobody has heard of is reported now.
function! s:crossed(d, p) abort
  return pollux#diff#report(a:d) || get(a:p, 'edit', a:d.edits) < a:d.edits
endfunction

" Takes over what somebody else has made of a proposal. Returns whether it has said something.
function! s:take(d, p) abort
  call extend(a:d, {'version': a:p.version, 'new': a:p.content, 'shown': a:p.content, 'leaves': a:p.content})
  if s:tick(a:d) != -1 && pollux#text#read(a:d.buffers[1]) !=# a:p.content
    call pollux#text#update(a:d.buffers[1], a:p.content)
  endif
  let [a:d.tick, a:d.told] = [s:tick(a:d), s:tick(a:d)]
  let l:conflict = a:d.conflict
  let a:d.conflict = type(get(a:p, 'conflict')) == v:t_dict ? a:p.conflict : {}
  if s:tick(a:d) != -1
    call pollux#view#mark(a:d)
    if s:visible(a:d) && exists('*win_execute')
      call pollux#view#again(a:d)
    endif
  endif
  if empty(a:d.conflict) || a:d.conflict ==# l:conflict
    return 0
  endif
  call pollux#say#say(printf('%s: %s; :Pollux keep keeps the proposal%s', fnamemodify(a:d.path, ':t'), a:d.conflict.reason,
        \ empty(a:d.conflict.places) ? '' : ", :Pollux take takes the file's lines"), 'WarningMsg')
  let a:d.hint = pollux#say#last()
  return 1
endfunction

" pollux/didChangeBase: the file has changed, and the proposal with it.
function! pollux#diff#rebase(p) abort
  let l:d = s:find(a:p.diffId)
  if empty(l:d) || s:crossed(l:d, a:p)
    return
  endif
  let l:news = l:d.old !=# a:p.oldText
  call extend(l:d, {'base': a:p.baseVersion, 'old': a:p.oldText})
  if !empty(l:d.buffers) && bufloaded(l:d.buffers[0])
    call pollux#text#update(l:d.buffers[0], l:d.old)
  endif
  if !s:take(l:d, a:p) && l:news
    call s:hint(l:d, 'the file has changed; the proposal is shown on what it holds now')
  endif
endfunction

" pollux/didChangeProposal: somebody has edited it in another view.
function! pollux#diff#edited(p) abort
  let l:d = s:find(a:p.diffId)
  if !empty(l:d) && !s:crossed(l:d, a:p)
    call s:take(l:d, a:p)
  endif
endfunction

" Forgets decisions that a companion which has gone was to take.
function! pollux#diff#disconnected() abort
  for l:d in s:queue
    let l:d.deciding = ''
  endfor
endfunction

" Lays out the diffs on show anew, as the screen has another size.
function! pollux#diff#resized() abort
  for l:d in filter(copy(s:queue), 's:visible(v:val)')
    call pollux#view#resize(l:d)
  endfor
endfunction

" Whether the user would not mind another tab page now.
function! s:idle() abort
  let l:focus = pollux#setting('focus')
  return l:focus ==# 'now' ? pollux#pause#free() : l:focus !=# 'never' && pollux#pause#now()
endfunction

" Opens the oldest diff when none is on show and the user pauses.
function! pollux#diff#pump(...) abort
  if a:0
    let s:waiter = -1
  endif
  if empty(s:queue) || !empty(filter(copy(s:queue), 's:visible(v:val)')) || get(s:queue[0], 'held')
    return
  endif
  if s:idle()
    let l:d = s:queue[0]
    let l:problem = pollux#diff#show(l:d)
    let l:d.failed = get(l:d, 'failed') + 1
    if empty(l:problem)
      return
    elseif l:problem !=# pollux#view#no_tab() || l:d.failed > 20
      let l:d.held = 1
      return pollux#say#fail('a diff cannot be shown: ' . l:problem . ' (try :Pollux review)')
    endif
  elseif pollux#setting('focus') ==# 'never'
    return
  endif
  if s:waiter < 0
    let s:waiter = timer_start(100, function('pollux#diff#pump'))
  endif
endfunction

" pollux/openDiff
function! pollux#diff#open(p, id) abort
  let l:known = s:find(a:p.diffId)
  if !empty(l:known)
    call s:finish(l:known)
  endif
  let s:serial += 1
  let l:d = {'id': a:p.diffId, 'number': s:serial, 'path': a:p.filePath, 'title': empty(a:p.title) ? a:p.filePath : a:p.title,
        \ 'old': a:p.oldText, 'new': a:p.newText, 'proposed': a:p.newText, 'shown': a:p.newText, 'buffers': [], 'tick': -1, 'told': -1, 'origin': {}, 'edits': 0, 'deciding': '',
        \ 'version': get(a:p, 'version'), 'base': get(a:p, 'baseVersion'), 'others': 0, 'place': '',
        \ 'fixed': type(get(a:p, 'readOnly')) == v:t_string ? a:p.readOnly : '',
        \ 'conflict': type(get(a:p, 'conflict')) == v:t_dict ? a:p.conflict : {}}
  call add(s:queue, l:d)
  call s:count()
  call pollux#rpc#reply(a:id, {'opened': v:true, 'bufferModified': pollux#reload#unsaved(l:d.path) ? v:true : v:false})
  call pollux#diff#pump()
  if !s:visible(l:d) && pollux#setting('notify')
    call pollux#say#brief(l:d.title, 'waits, :Pollux review shows it')
    let l:d.hint = pollux#say#last()
  endif
endfunction

" Keeps what the user made of a proposal that nobody waits for any more, as its
" CLI or its companion has gone.
function! s:keep(d, content) abort
  if !exists('*bufadd')
    return
  endif
  let l:buf = bufadd('pollux://' . a:d.number . '/edited/' . fnamemodify(a:d.path, ':t'))
  call bufload(l:buf)
  call setbufvar(l:buf, '&buftype', 'nofile')
  call setbufvar(l:buf, '&buflisted', 1)
  call setbufline(l:buf, 1, split(a:content, "\n", 1))
  call pollux#say#say(printf('%s: nobody waits for this proposal any more; what you made of it is kept, :sbuffer %d shows it', a:d.title, l:buf), 'WarningMsg')
endfunction

" pollux/closeDiff
function! pollux#diff#close(p, id) abort
  let [l:d, l:rejected] = [s:find(a:p.diffId), s:forget(a:p.diffId)]
  if !empty(l:rejected)
    return pollux#rpc#reply(a:id, {'content': l:rejected.content})
  elseif empty(l:d)
    return pollux#rpc#fail(a:id, -32602, 'no diff ' . a:p.diffId)
  endif
  let l:content = pollux#diff#content(l:d)
  if !s:valid(l:d, l:content)
    let l:content = l:d.new
  endif
  let l:before = pollux#reload#stamp(l:d.path)
  call pollux#rpc#reply(a:id, {'content': l:content, 'version': l:d.version})
  if l:content !=# l:d.proposed && (get(a:p, 'outcome', '') ==# 'withdrawn' || s:tick(l:d) != l:d.told) " nobody has heard of the last of it
    call s:keep(l:d, l:content)
  endif
  if s:finish(l:d) && get(a:p, 'outcome', '') !=# 'rejected'
    call pollux#reload#follow(l:d.path, l:before) " the CLI may write it
  endif
endfunction

" Ends every diff without a word: its companion has ended in good order, and rejected them.
function! pollux#diff#clear() abort
  let s:unheard = {}
  for l:d in copy(s:queue)
    call s:finish(l:d)
  endfor
endfunction
