" JSON-RPC 2.0 with a child process, one message a line.

let s:job = v:null
let s:calls = {}
let s:count = 0
let s:on = {}

" Starts {command}; {on} has request(method, params, id), notification(method,
" params) and exit(code). Returns the reason why not, '' when it runs.
function! pollux#rpc#start(command, on) abort
  let s:on = a:on
  let s:calls = {}
  try
    let s:job = job_start(a:command, {
          \ 'mode': 'nl', 'noblock': 1, 'err_io': 'null', 'stoponexit': 'term',
          \ 'out_cb': function('s:receive'), 'exit_cb': function('s:exited')})
  catch
    let s:job = v:null
    return v:exception
  endtry
  if job_status(s:job) ==# 'fail'
    let s:job = v:null
    return 'it cannot be run'
  endif
  return ''
endfunction

function! pollux#rpc#job() abort
  return s:job
endfunction

" Whether it has not ended, also just now.
function! pollux#rpc#alive() abort
  return s:job isnot v:null && job_status(s:job) ==# 'run'
endfunction

" Lets it end by itself when Vim ends. A signal would kill one that has just been started.
function! pollux#rpc#spare() abort
  if s:job isnot v:null
    call job_setoptions(s:job, {'stoponexit': ''})
  endif
endfunction

function! s:exited(job, code) abort
  if a:job is s:job
    let s:job = v:null
    call s:on.exit(a:code)
  endif
endfunction

function! s:receive(channel, line) abort
  if ch_getjob(a:channel) isnot s:job
    return
  endif
  try
    let l:m = json_decode(a:line)
  catch
    return
  endtry
  if type(l:m) != v:t_dict
    return
  endif
  if has_key(l:m, 'method') && has_key(l:m, 'id')
    " Vim's strings end at a NUL.
    if l:m.method ==# 'pollux/openDiff' && stridx(a:line, '\u0000') >= 0
      return pollux#rpc#fail(l:m.id, -32002, 'Vim cannot hold a NUL exactly')
    elseif l:m.method ==# 'pollux/openDiff' && &encoding !=# 'utf-8'
          \ && substitute(a:line, '"title":"\%(\\.\|[^"\\]\)*"', '', '') =~# '[^\x01-\x7f]\|\\u\%(00[0-7]\x\)\@!'
      return pollux#rpc#fail(l:m.id, -32002, 'Vim runs with encoding ' . &encoding . ', which cannot hold this text; set encoding=utf-8')
    endif
    try
      call s:on.request(l:m.method, get(l:m, 'params', {}), l:m.id)
    catch
      call pollux#rpc#fail(l:m.id, -32603, v:exception . ' in ' . v:throwpoint)
    endtry
  elseif has_key(l:m, 'method')
    call s:on.notification(l:m.method, get(l:m, 'params', {}))
  elseif has_key(l:m, 'id') && has_key(s:calls, l:m.id)
    call call(remove(s:calls, l:m.id), [get(l:m, 'result', v:null), get(l:m, 'error', {})])
  endif
endfunction

" With {raw} the strings are bytes of UTF-8, whatever 'encoding' makes of them.
function! s:send(message, raw) abort
  if s:job is v:null
    return
  endif
  let a:message.jsonrpc = '2.0'
  try
    let l:line = json_encode(a:message)
    call ch_sendraw(s:job, (a:raw ? iconv(l:line, 'utf-8', &encoding) : l:line) . "\n")
  catch
    " It has ended; its exit is told.
  endtry
endfunction

function! pollux#rpc#notify(method, params, ...) abort
  call s:send({'method': a:method, 'params': a:params}, get(a:000, 0))
endfunction

function! pollux#rpc#reply(id, result) abort
  call s:send({'id': a:id, 'result': a:result}, 0)
endfunction

function! pollux#rpc#fail(id, code, message) abort
  call s:send({'id': a:id, 'error': {'code': a:code, 'message': a:message}}, 0)
endfunction

" {callback} gets (result, error) when the answer comes, or never.
function! pollux#rpc#call(method, params, callback) abort
  let s:count += 1
  let s:calls[s:count] = a:callback
  call s:send({'id': s:count, 'method': a:method, 'params': a:params}, 0)
endfunction
