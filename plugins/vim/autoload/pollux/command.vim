" The command :Pollux. See :help :Pollux
scriptencoding utf-8

function! s:fail(message) abort
  call pollux#say#fail(a:message)
endfunction

function! s:tell(result, error) abort
  if !empty(a:error)
    call s:fail(a:error.message)
  endif
  return empty(a:error)
endfunction

" The diff that a command is about, {} when there is none.
function! s:chosen() abort
  let l:d = pollux#diff#current()
  if empty(l:d)
    let l:d = get(pollux#diff#list(), 0, {})
  endif
  if empty(l:d)
    call s:fail('no diff is open')
  endif
  return l:d
endfunction

function! s:accept(...) abort
  let l:d = s:chosen()
  if !empty(l:d)
    call pollux#diff#accept(l:d)
  endif
endfunction

function! s:reject(...) abort
  let l:d = s:chosen()
  if !empty(l:d)
    call pollux#diff#reject(l:d)
  endif
endfunction

function! s:settle(how) abort
  let l:d = s:chosen()
  if !empty(l:d)
    call pollux#diff#settle(l:d, a:how)
  endif
endfunction

function! s:accept_all(args, ...) abort
  let l:d = s:chosen()
  if !empty(l:d)
    " This one with its edits, of which the companion hears first: the rule decides only what nobody edited.
    call pollux#diff#report(l:d)
    call pollux#execute('pollux.setPolicy', {'policy': 'accept', 'scope': get(a:args, 0, '') ==# 'file' ? 'file' : 'session', 'diffId': l:d.id},
          \ {r, e -> s:tell(r, e) ? pollux#diff#accept(l:d) : 0})
  endif
endfunction

" The rules in words, the newest first: it decides.
function! s:rules(list) abort
  let l:lines = map(reverse(copy(a:list)), {_, r -> printf('%-8s  %s', r.mode, !empty(get(r, 'pattern', '')) ? r.pattern : !empty(get(r, 'owner', '')) ? r.owner : 'everything')})
  return empty(l:lines) ? ['ask       everything'] : l:lines
endfunction

function! s:policy(args, ...) abort
  if empty(a:args)
    return pollux#execute('pollux.status', {}, {r, e -> s:tell(r, e)
          \ ? pollux#say#lines(join(s:rules(r.rules) + [':Pollux policy ask|accept|terminal [session|file|pattern GLOB]'], "\n")) : 0})
  endif
  let l:argument = {'policy': a:args[0]}
  for [l:i, l:name] in [[1, 'scope'], [2, 'pattern']]
    if len(a:args) > l:i
      let l:argument[l:name] = a:args[l:i]
    endif
  endfor
  let l:d = pollux#diff#current()
  if !empty(l:d)
    let l:argument.diffId = l:d.id
  endif
  call pollux#execute('pollux.setPolicy', l:argument, {r, e -> s:tell(r, e) ? pollux#say#say(len(r.rules) . (len(r.rules) == 1 ? ' rule' : ' rules') . '; :Pollux policy lists them') : 0})
endfunction

function! s:review(args, ...) abort
  if empty(a:args)
    let l:d = s:chosen()
  elseif a:args[0] ==# 'next'
    let l:d = pollux#diff#following()
  else
    let l:n = str2nr(a:args[0])
    let l:d = l:n > 0 ? get(pollux#diff#list(), l:n - 1, {}) : {}
  endif
  if !empty(l:d)
    let l:d.held = 0
    let l:problem = pollux#diff#show(l:d)
    if !empty(l:problem)
      call s:fail('the diff cannot be shown: ' . l:problem)
    endif
  elseif !empty(a:args)
    call s:fail(a:args[0] ==# 'next' ? 'no other diff waits' : 'there is no diff ' . a:args[0])
  endif
endfunction

" Without a state: the other one, so that one key is enough.
function! s:share(to, ...) abort
  let l:to = !empty(a:to) ? a:to : get(pollux#state(), 'paused') ? 'on' : 'paused'
  call pollux#execute('pollux.setContext', {'state': l:to}, {r, e -> s:tell(r, e) ? s:shares(l:to) : 0})
endfunction

function! s:shares(to) abort
  let l:state = pollux#state()
  let l:state.paused = a:to ==# 'paused' " the status comes later than the user's next key may
  call pollux#say#say(a:to ==# 'on'
        \ ? 'agents are told what you look at' : 'agents are told nothing of what you look at; :Pollux resume ends that')
endfunction

function! s:page(...) abort
  call pollux#execute('pollux.review', {}, function('s:tell'))
endfunction

function! s:start(...) abort
  call pollux#start()
endfunction

function! s:stop(...) abort
  call pollux#stop(1000)
endfunction

function! s:restart(...) abort
  if pollux#rpc#alive() " else what is open is announced to the next one
    call pollux#stop(1000)
  endif
  call timer_start(100, {-> pollux#start()})
endfunction

function! s:status(...) abort
  call pollux#execute('pollux.status', {}, function('s:show_status'))
endfunction

function! s:show_status(status, error) abort
  let l:state = pollux#state()
  if !empty(a:error)
    return pollux#say#lines('companion  ' . l:state.status . "\n" . (empty(l:state.error) ? a:error.message : l:state.error))
  endif
  let l:lines = [printf('companion  %s, pollux %s, port %d%s', l:state.status, a:status.version, a:status.port, a:status.resumed ? ', resumed' : ''),
        \ 'folders    ' . join(a:status.roots, ', ')]
  if get(pollux#state(), 'paused')
    call add(l:lines, 'sharing    paused; :Pollux resume ends that')
  elseif !empty(get(a:status, 'sharing', ''))
    call add(l:lines, 'sharing    ' . a:status.sharing)
  endif
  call extend(l:lines, map(copy(a:status.sessions), '"session    " . v:val.name'))
  let l:mine = map(copy(pollux#diff#list()), 'v:val.id') " the numbers of :Pollux review
  for l:d in a:status.diffs
    let l:n = index(l:mine, l:d.diffId) + 1
    call add(l:lines, printf('diff %-5s %s', l:n > 0 ? l:n : '-', l:d.title . (l:n > 0 ? '' : ', on the page (:Pollux page)')))
  endfor
  let l:last = get(a:status, 'lastError', l:state.error)
  call pollux#say#lines(join(l:lines + (empty(l:last) ? [] : ['last error ' . l:last]), "\n"))
endfunction

function! s:log(...) abort
  call pollux#execute('pollux.status', {}, {r, e -> s:tell(r, e) ? execute('tabedit + ' . fnameescape(r.log)) : 0})
endfunction

let s:commands = {
      \ 'accept': function('s:accept'), 'accept-all': function('s:accept_all'), 'reject': function('s:reject'), 'merge': {-> pollux#reload#merge()}, 'keep': {-> s:settle('keep')}, 'take': {-> s:settle('take')}, 'review': function('s:review'),
      \ 'policy': function('s:policy'), 'pause': function('s:share', ['']), 'resume': function('s:share', ['on']), 'page': function('s:page'), 'start': function('s:start'), 'stop': function('s:stop'),
      \ 'restart': function('s:restart'), 'status': function('s:status'), 'log': function('s:log'), 'run': function('pollux#terminal#run'), 'toggle': function('pollux#terminal#toggle'), 'focus': function('pollux#terminal#focus'), 'history': function('pollux#past#history'), 'undo': function('pollux#past#undo'), 'rules': function('pollux#past#rules'), 'send': {a, r, f, l -> pollux#send#send(a, r, f, l)}, 'problem': {a, ... -> pollux#send#problem(a)}}

function! pollux#command#run(args, range, first, last) abort
  let l:name = get(a:args, 0, 'status')
  if !has_key(s:commands, l:name)
    return s:fail('no :Pollux ' . l:name . '; see :help :Pollux')
  endif
  call s:commands[l:name](a:args[1:], a:range, a:first, a:last)
endfunction

function! pollux#command#complete(lead, line, position) abort
  let l:words = split(strpart(a:line, 0, a:position), '\s\+', 1)
  let l:choices = keys(s:commands)
  if len(l:words) > 2
    let l:choices = l:words[1] ==# 'accept-all' ? ['session', 'file'] : l:words[1] ==# 'review' ? ['next']
          \ : index(['run', 'toggle', 'focus'], l:words[1]) >= 0 ? (len(l:words) == 3 ? ['claude', 'codex', 'copilot', 'gemini', 'opencode', 'qwen'] : ['--continue', '--resume'])
          \ : l:words[1] !=# 'policy' ? [] : len(l:words) == 3 ? ['ask', 'accept', 'terminal'] : ['session', 'file', 'pattern']
  endif
  return sort(filter(copy(l:choices), 'stridx(v:val, a:lead) == 0'))
endfunction
