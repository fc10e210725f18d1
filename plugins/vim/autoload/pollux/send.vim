" :Pollux send: points an agent at a file, lines, a folder or a problem.
scriptencoding utf-8

let s:fail = {message -> pollux#say#say(message, 'ErrorMsg')}

function! s:running() abort
  return filter(has('terminal') ? term_list() : [], 'term_getstatus(v:val) =~# "running"')
endfunction

" Types what an agent's prompt should hold where that agent runs in a terminal of this Vim.
function! pollux#send#type_text(p, id) abort
  for l:buf in s:running()
    if job_info(term_getjob(l:buf)).process == a:p.processId
      call term_sendkeys(l:buf, a:p.text)
      return pollux#rpc#reply(a:id, {'typed': v:true})
    endif
  endfor
  call pollux#rpc#reply(a:id, {'typed': v:false})
endfunction

" The terminal that the CLI runs in, that of :Pollux run first; 0 for none.
function! s:terminal() abort
  let l:running = s:running()
  let l:own = filter(copy(l:running), 'getbufvar(v:val, "pollux_cli")')
  if empty(l:own)
    call pollux#context#touch(1) " it may have come since
    let l:own = filter(l:running, 'pollux#context#is_cli(v:val)')
  endif
  return get(l:own, 0)
endfunction

" What the line under the cursor stands for in a tree of files.
let s:trees = {
      \ 'netrw': {-> netrw#Call('NetrwFile', netrw#Call('NetrwGetWord'))},
      \ 'nerdtree': {-> g:NERDTreeFileNode.GetSelected().path.str()},
      \ 'dirvish': {-> getline('.')}}

" The file that is meant by "this one", or a folder; '' for none.
function! s:this() abort
  if !has_key(s:trees, &filetype)
    return pollux#context#file(bufnr('%'))
  endif
  try
    return fnamemodify(s:trees[&filetype](), ':p')
  catch
    return ''
  endtry
endfunction

function! s:told(result, error) abort
  if !empty(a:error)
    return s:fail(a:error.message)
  endif
  call pollux#say#say(printf('%s: press Enter there (%s)', a:result.session, a:result.by ==# 'protocol' ? 'by its protocol' : 'typed by ' . a:result.by))
endfunction

" Points the agent at {m}: that of :Pollux run, else the connected one, asking which where there are several.
function! s:send(m) abort
  let [l:sessions, l:buf] = [pollux#state().sessions, s:terminal()]
  if !l:buf && empty(l:sessions)
    return s:fail('no CLI runs here; start one with :Pollux run')
  endif
  let l:Tell = {session -> pollux#execute('pollux.mention', {'uri': pollux#text#uri(a:m.path), 'first': a:m.first, 'last': a:m.last, 'words': a:m.words,
        \ 'processId': l:buf ? job_info(term_getjob(l:buf)).process : 0, 'session': l:buf ? 0 : get(session, 'id', 0)}, function('s:told'))}
  if l:buf || len(l:sessions) == 1
    call l:Tell(get(l:sessions, 0, {}))
  else
    call pollux#past#choose(l:sessions, 'mention it to', '', map(copy(l:sessions), 'v:val.name'), l:Tell)
  endif
endfunction

function! s:one_line(text) abort
  return trim(substitute(a:text, '[[:cntrl:][:space:]]\+', ' ', 'g'))
endfunction

" Mentions this file, or the range's lines, with words behind it.
function! pollux#send#send(words, range, first, last) abort
  let l:path = s:this()
  if empty(l:path)
    return s:fail('this buffer is no file on disk')
  endif
  call s:send({'path': l:path, 'first': a:range > 0 ? a:first : 0, 'last': a:range > 0 ? a:last : 0, 'words': s:one_line(join(a:words))})
endfunction

" Mentions the line of the problem under the cursor, with what it says.
function! pollux#send#problem(words) abort
  let l:path = s:this()
  let l:found = empty(l:path) ? [] : filter(copy(pollux#diagnostics#of(bufnr('%'))), 'v:val.range.start.line == line(".") - 1')
  if empty(l:found)
    return s:fail('there is no problem in this line')
  endif
  let l:words = join([get({1: 'error', 2: 'warn', 3: 'info'}, get(l:found[0], 'severity'), 'hint') . ': ' . l:found[0].message] + (empty(a:words) ? [] : ['–'] + a:words))
  call s:send({'path': l:path, 'first': line('.'), 'last': line('.'), 'words': s:one_line(l:words)})
endfunction
