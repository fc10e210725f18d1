" What the tools of the editor find: ALE, coc, vim-lsp, and what stands in the quickfix and location lists.

let s:told = {} " the files that were told of
let s:timer = -1

" A place, as [line, column] from 1 with columns in bytes, as LSP has it.
function! s:place(buf, line, column) abort
  let l:text = get(getbufline(a:buf, a:line), 0, '')
  return {'line': a:line - 1, 'character': pollux#text#utf16(l:text, max([0, a:column - 1]))}
endfunction

" Adds a finding of a list of Vim's, as ALE has it too, to those of its file.
function! s:add(files, item, source) abort
  let l:buf = get(a:item, 'bufnr')
  let l:path = l:buf > 0 ? pollux#context#file(l:buf) : ''
  if empty(l:path) || get(a:item, 'lnum') < 1
    return
  endif
  let l:start = s:place(l:buf, a:item.lnum, get(a:item, 'col', 1))
  let l:end = get(a:item, 'end_lnum') > 0 ? s:place(l:buf, a:item.end_lnum, get(a:item, 'end_col', 1)) : l:start
  let l:severity = get({'E': 1, 'W': 2, 'I': 3, 'N': 4}, toupper(get(a:item, 'type', '')), 1)
  call add(s:of(a:files, l:path), {'range': {'start': l:start, 'end': l:end}, 'severity': l:severity, 'source': get(a:item, 'linter_name', a:source), 'message': a:item.text})
endfunction

function! s:of(files, path) abort
  if !has_key(a:files, a:path)
    let a:files[a:path] = []
  endif
  return a:files[a:path]
endfunction

" What coc and vim-lsp know, which have it as LSP has.
function! s:servers(files) abort
  if exists('*CocAction') && get(g:, 'coc_service_initialized')
    for l:d in CocAction('diagnosticList')
      call add(s:of(a:files, l:d.file), {'range': l:d.location.range, 'severity': get({'Error': 1, 'Warning': 2, 'Information': 3}, l:d.severity, 4), 'source': get(l:d, 'source', 'coc'), 'message': l:d.message})
    endfor
  endif
  if exists('*lsp#internal#diagnostics#state#_get_all_diagnostics_grouped_by_uri_and_server')
    for [l:uri, l:servers] in items(lsp#internal#diagnostics#state#_get_all_diagnostics_grouped_by_uri_and_server())
      for l:response in values(l:servers)
        call extend(s:of(a:files, pollux#path(l:uri)), map(copy(l:response.params.diagnostics), {_, d -> extend({'source': 'vim-lsp'}, d)}))
      endfor
    endfor
  endif
endfunction

" Tells what is found in each file that a tool looks at, and that nothing is known of the others any more.
function! s:tell(timer) abort
  let [s:timer, l:files] = [-1, {}]
  for l:list in [getqflist()] + map(range(1, winnr('$')), 'getloclist(v:val)')
    for l:item in l:list
      call s:add(l:files, l:item, 'quickfix')
    endfor
  endfor
  for [l:buf, l:info] in items(get(g:, 'ale_buffer_info', {}))
    let l:path = pollux#context#file(str2nr(l:buf))
    if !empty(l:path)
      call s:of(l:files, l:path)
      for l:item in get(l:info, 'loclist', [])
        call s:add(l:files, extend({'bufnr': str2nr(l:buf)}, l:item), 'ale')
      endfor
    endif
  endfor
  silent! call s:servers(l:files)
  for [l:path, l:found] in items(l:files)
    if get(s:told, l:path, []) !=# l:found || !has_key(s:told, l:path)
      call pollux#rpc#notify('pollux/didChangeDiagnostics', {'uri': pollux#text#uri(l:path), 'diagnostics': l:found})
    endif
  endfor
  for l:path in keys(s:told)
    if !has_key(l:files, l:path)
      call pollux#rpc#notify('pollux/didChangeDiagnostics', {'uri': pollux#text#uri(l:path), 'diagnostics': v:null})
    endif
  endfor
  let s:told = l:files
endfunction

" What was told last of the file in a buffer.
function! pollux#diagnostics#of(buf) abort
  return get(s:told, pollux#context#file(a:buf), [])
endfunction

function! pollux#diagnostics#touch() abort
  if s:timer < 0
    let s:timer = timer_start(200, function('s:tell'))
  endif
endfunction

" From now on tells a companion that has just started.
function! pollux#diagnostics#start() abort
  let s:told = {}
  augroup pollux_diagnostics
    autocmd!
    autocmd QuickFixCmdPost * call pollux#diagnostics#touch()
    autocmd User ALELintPost,CocDiagnosticChange,lsp_diagnostics_updated call pollux#diagnostics#touch()
    autocmd BufWritePost,BufUnload * call pollux#diagnostics#touch()
  augroup END
  call pollux#diagnostics#touch()
endfunction

function! pollux#diagnostics#stop() abort
  autocmd! pollux_diagnostics
endfunction
