" The plugin: one companion process for this editor. See :help pollux
scriptencoding utf-8

let s:defaults = {'command': '', 'autostart': 1, 'focus': 'idle', 'idle': 1000, 'cli': 'gemini', 'layout': '', 'side': 'right', 'width': 0.4, 'split': '', 'notify': 1, 'mappings': {}}
let s:state = {'status': 'stopped', 'failures': 0, 'sessions': [], 'pending': 0, 'env': {}, 'error': ''}
let s:wanted = 0
let s:first_roots = []
let s:roots = []
let s:questions = {} " the requests that wait for an answer

function! pollux#setting(name) abort
  return get(get(g:, 'pollux', {}), a:name, s:defaults[a:name])
endfunction

" The keys in a diff by what they do, '' for none: :q and ZQ reject without a mapping.
function! pollux#mappings() abort
  return extend({'accept': 'ZZ', 'reject': '', 'accept_all': '', 'next': '', 'keep': '', 'take': ''}, pollux#setting('mappings'))
endfunction

" What is known of the companion: status, server, sessions, pending, env, error.
function! pollux#state() abort
  return s:state
endfunction

" The argument list of the companion, [] when there is none.
function! pollux#command_line() abort
  let l:command = pollux#setting('command')
  if type(l:command) == v:t_list
    return l:command
  elseif !empty(l:command)
    return [expand(l:command), 'lsp']
  endif
  " `pollux install` writes which pollux it was.
  silent! let l:installed = pollux#installed#command()
  if exists('l:installed') && type(l:installed) == v:t_string && executable(l:installed)
    return [l:installed, 'lsp']
  endif
  return executable('pollux') ? ['pollux', 'lsp'] : []
endfunction

function! s:complain(message) abort
  let s:state.error = a:message
  call pollux#say#fail(a:message)
endfunction

" Sets a variable of the environment, or removes it without a value.
function! s:setenv(name, ...) abort
  if a:name !~# '^\w\+$'
    return
  endif
  if exists('*setenv')
    call setenv(a:name, a:0 ? a:1 : v:null)
  else
    execute 'let $' . a:name '=' string(a:0 ? a:1 : '')
  endif
endfunction

" Gives the terminals that are opened from now on what a CLI needs.
function! s:equip(p) abort
  for l:name in get(a:p, 'unset', [])
    call s:setenv(l:name)
    silent! unlet s:state.env[l:name]
  endfor
  for [l:name, l:value] in items(get(a:p, 'set', {}))
    call s:setenv(l:name, l:value)
    let s:state.env[l:name] = l:value
  endfor
endfunction

" Has the status lines say what is new, but not while Vim asks something: that would take the question off the screen.
function! s:redraw() abort
  if mode(1) =~# '^r'
    return timer_start(200, {-> s:redraw()})
  endif
  silent! redrawstatus!
  if exists('#User#PolluxStatus')
    doautocmd <nomodeline> User PolluxStatus
  endif
endfunction

" The path of a file: URI.
function! pollux#path(uri) abort
  let l:path = substitute(substitute(a:uri, '^file://', '', ''), '%\(\x\x\)', '\=printf("%c", str2nr(submatch(1), 16))', 'g')
  return has('win32') ? l:path[1:] : l:path
endfunction

" Shows a file where the user is, without taking a window that is no file's.
function! s:open_document(p, id) abort
  let l:path = pollux#path(a:p.uri)
  if get(a:p, 'takeFocus') && mode() =~# '^[nt]'
    execute (empty(&buftype) && (!&modified || &hidden) ? 'edit' : 'split') fnameescape(l:path)
    if has_key(a:p, 'selection')
      let l:line = min([a:p.selection.start.line + 1, line('$')])
      call cursor(l:line, pollux#text#byte(getline(l:line), get(a:p.selection.start, 'character', 0)) + 1)
    endif
  else
    execute 'badd' fnameescape(l:path)
  endif
  call pollux#rpc#reply(a:id, {'opened': v:true})
endfunction

" A question comes when the user pauses: nobody who types shall answer it by accident.
function! s:ask(p, id) abort
  if !has_key(s:questions, a:id)
    return 0 " taken back
  elseif !pollux#pause#now()
    return timer_start(100, {-> s:ask(a:p, a:id)})
  endif
  call remove(s:questions, a:id)
  let l:labels = map(copy(a:p.choices), 'substitute(v:val, "[&\n]", " ", "g")')
  let l:n = 0
  try
    let l:n = confirm(a:p.title . "\n" . a:p.message, join(l:labels, "\n"), 0)
  catch /^Vim:Interrupt$/ " CTRL-C, which ends a function without an answer
  endtry
  call pollux#rpc#reply(a:id, {'choice': l:n > 0 ? a:p.choices[l:n - 1] : v:null})
endfunction

function! s:request(method, params, id) abort
  if a:method ==# 'pollux/openDiff'
    call pollux#diff#open(a:params, a:id)
  elseif a:method ==# 'pollux/closeDiff'
    call pollux#diff#close(a:params, a:id)
  elseif a:method ==# 'pollux/openDocument'
    call s:open_document(a:params, a:id)
  elseif a:method ==# 'pollux/saveDocument'
    call pollux#rpc#reply(a:id, pollux#reload#save(a:params))
  elseif a:method ==# 'pollux/typeText'
    call pollux#send#type_text(a:params, a:id)
  elseif a:method ==# 'pollux/ask'
    let s:questions[a:id] = 1
    call timer_start(0, {-> s:ask(a:params, a:id)})
  else
    call pollux#rpc#fail(a:id, -32601, 'the plugin does not know ' . a:method)
  endif
endfunction

function! s:notification(method, params) abort
  if a:method ==# 'pollux/didChangeEnv'
    call s:equip(a:params)
  elseif a:method ==# '$/cancelRequest'
    silent! unlet s:questions[a:params.id]
  elseif a:method ==# 'pollux/didChangeStatus'
    let s:state.sessions = a:params.sessions
    let s:state.pending = a:params.pendingDiffs
    let s:state.paused = get(a:params, 'context', '') ==# 'paused'
    let s:state.agents = get(a:params, 'agents', '')
    let s:state.untold = get(a:params, 'untold', '')
    call s:redraw()
    call pollux#reload#guard(!empty(s:state.sessions))
    call pollux#context#touch(1) " it may be a CLI in this terminal that has come
  elseif a:method ==# 'pollux/filesChanged'
    call pollux#reload#changed(a:params)
  elseif a:method ==# 'pollux/didChangeBase'
    call pollux#diff#rebase(a:params)
  elseif a:method ==# 'pollux/didChangeProposal'
    call pollux#diff#edited(a:params)
  elseif a:method ==# 'window/showMessage'
    if a:params.type == 1
      let s:state.error = a:params.message
    endif
    call pollux#say#say(substitute(a:params.message, '^pollux: ', '', ''), a:params.type == 1 ? 'ErrorMsg' : 'None')
  endif
endfunction

function! s:uris(dirs) abort
  return map(copy(a:dirs), '{"uri": pollux#text#uri(v:val), "name": fnamemodify(v:val, ":t")}')
endfunction

" Tells which folders came and went.
function! s:folders(...) abort
  if s:state.status !=# 'running'
    return
  endif
  let l:now = pollux#context#roots()
  let l:added = filter(copy(l:now), 'index(s:roots, v:val) < 0')
  let l:removed = filter(copy(s:roots), 'index(l:now, v:val) < 0')
  if !empty(l:added + l:removed)
    let s:roots = l:now
    call pollux#rpc#notify('workspace/didChangeWorkspaceFolders', {'event': {'added': s:uris(l:added), 'removed': s:uris(l:removed)}})
  endif
endfunction

function! s:ended(code) abort
  call pollux#context#stop()
  silent! call pollux#diagnostics#stop()
  call pollux#diff#disconnected()
  call pollux#reload#guard(0)
  let s:questions = {}
  let l:again = s:wanted && s:state.status !=# 'failed'
  let s:state.status = s:wanted ? 'waiting' : 'stopped'
  let s:state.sessions = []
  call s:redraw()
  if !l:again
    return
  endif
  " The views stay: the companion that comes back hears of them.
  let s:state.failures += 1
  if s:state.failures == 4
    call s:complain(printf('the companion keeps ending (code %d); :Pollux log shows why', a:code))
  endif
  call timer_start(min([30000, 200 * float2nr(pow(2, min([s:state.failures, 9]) - 1))]), {-> s:wanted && pollux#rpc#job() is v:null ? s:start_process() : 0})
endfunction

function! s:initialized(result, error) abort
  if !empty(a:error)
    let s:state.status = 'failed'
    return s:complain(a:error.message)
  endif
  let [s:state.status, s:state.error] = ['running', '']
  let s:state.server = a:result.serverInfo.version
  call s:equip({'set': a:result.capabilities.experimental.pollux.env})
  call pollux#rpc#notify('initialized', {})
  call pollux#context#start()
  call pollux#diagnostics#start()
  call s:folders()
  let l:job = pollux#rpc#job()
  call timer_start(5000, {-> pollux#rpc#job() is l:job ? extend(s:state, {'failures': 0}) : 0})
  call s:redraw()
endfunction

function! s:start_process() abort
  let l:command = pollux#command_line()
  if empty(l:command)
    let s:state.status = 'failed'
    return s:complain('there is no pollux in PATH; install it, or let g:pollux = {"command": "/path/to/pollux"}')
  endif
  " A companion takes over from one of the same folders, so they stay those of the first start.
  if empty(s:first_roots)
    let s:first_roots = pollux#context#roots()
  endif
  let s:roots = s:first_roots
  let s:state.status = 'starting'
  let l:problem = pollux#rpc#start(l:command, {'request': function('s:request'), 'notification': function('s:notification'), 'exit': function('s:ended')})
  if !empty(l:problem)
    let s:state.status = 'failed'
    return s:complain(l:command[0] . ' cannot be started: ' . l:problem)
  endif
  call pollux#pause#start()
  call pollux#rpc#call('initialize', {
        \ 'processId': getpid(), 'clientInfo': {'name': 'Vim', 'version': printf('%d.%d', v:version / 100, v:version % 100)},
        \ 'workspaceFolders': s:uris(s:roots),
        \ 'capabilities': {'experimental': {'pollux': {'version': 2, 'context': v:true, 'openDiff': v:true, 'env': v:true, 'types': v:true}}},
        \ 'initializationOptions': {'pollux': {'version': 2, 'ide': {'name': 'vim', 'displayName': 'Vim'}, 'idePid': getpid(), 'openDiffs': pollux#diff#announce()}},
        \ }, function('s:initialized'))
endfunction

" Starts the companion; nothing when it runs.
function! pollux#start() abort
  let s:wanted = 1
  if pollux#rpc#job() isnot v:null
    return
  endif
  let s:state.failures = 0
  augroup pollux
    autocmd!
    autocmd VimLeavePre * call pollux#stop(1000, 1)
    for s:event in ['DirChanged', 'BufReadPost', 'BufFilePost', 'TabClosed', 'WinClosed', 'WinNew']
      if exists('##' . s:event)
        execute 'autocmd' s:event '* call timer_start(100, function("s:folders"))'
      endif
    endfor
  augroup END
  call pollux#reload#start()
  call s:start_process()
endfunction

" Stops the companion in good order; open diffs are rejected. Waits for it at most {wait} milliseconds. With a second
" argument Vim is leaving: CLIs of other terminals keep their connection, and what is open stays open for the next editor.
function! pollux#stop(wait, ...) abort
  if s:wanted && pollux#diff#waits() && !pollux#rpc#alive()
    call s:start_process() " in place of one that was killed: no other knows what was typed since
    call pollux#rpc#spare()
  endif
  let s:wanted = 0
  let l:job = pollux#rpc#job()
  if l:job isnot v:null
    call map(copy(pollux#diff#list()), 'pollux#diff#report(v:val)') " what was typed just now
    call pollux#rpc#call('shutdown', {'keep': a:0 ? v:true : v:false}, {-> 0})
    call pollux#rpc#notify('exit', v:null)
  else
    let s:state.status = 'stopped'
  endif
  for l:i in range(l:job is v:null ? 0 : a:wait / 10)
    if job_status(l:job) !=# 'run'
      break
    endif
    sleep 10m
  endfor
  for l:name in keys(s:state.env)
    call s:setenv(l:name)
  endfor
  let s:state.env = {}
  call pollux#diff#clear()
endfunction

" Called when the editor is ready; starts what the settings say.
function! pollux#autostart() abort
  if !pollux#setting('autostart') || s:wanted || empty(pollux#command_line())
    return
  endif
  for l:name in argv()
    if fnamemodify(l:name, ':p') =~# '[/\\]\.git[/\\]'
      return 0 " an editor for a commit message
    endif
  endfor
  call pollux#start()
endfunction

" Runs a command of the companion's: {callback}(result, error).
function! pollux#execute(command, argument, callback) abort
  if s:state.status !=# 'running'
    return call(a:callback, [v:null, {'message': 'the companion does not run; :Pollux start starts it'}])
  endif
  call pollux#rpc#call('workspace/executeCommand', {'command': a:command, 'arguments': empty(a:argument) ? [] : [a:argument]}, a:callback)
endfunction

" A few characters for a status line: connected agents, waiting diffs, and which agents are told nothing.
function! pollux#statusline() abort
  if s:state.status !=# 'running'
    return ''
  endif
  let l:agents = get(s:state, 'agents', '')
  let l:untold = get(s:state, 'untold', '')
  return (empty(l:agents) ? 'no agent' : l:agents) . (s:state.pending > 0 ? ' ±' . s:state.pending : '')
        \ . (empty(l:untold) ? '' : ' not told: ' . l:untold) . (get(s:state, 'paused') ? ' paused' : '')
endfunction
