" The agents' terminals: one for each agent and project.

" The command of an agent: what was typed, or the setting; with options alone, the setting's agent with them.
function! s:command(args) abort
  let l:cli = pollux#setting('cli')
  let l:cli = type(l:cli) == v:t_list ? l:cli : [l:cli]
  return empty(a:args) ? l:cli : a:args[0][0] ==# '-' ? l:cli + a:args : a:args
endfunction

" The terminal in which an agent runs for this folder or one above it, 0 without one.
function! s:running(name) abort
  let l:all = filter(has('terminal') ? term_list() : [], 'term_getstatus(v:val) =~# "running"')
  return get(filter(l:all, 'getbufvar(v:val, "pollux_cli") ==# a:name && stridx(getcwd() . "/", getbufvar(v:val, "pollux_folder") . "/") == 0'), 0)
endfunction

" Opens a window for a terminal where the settings say, or takes that of another agent.
function! s:sidebar() abort
  for l:nr in range(1, winnr('$'))
    if !empty(getbufvar(winbufnr(l:nr), 'pollux_cli')) && winbufnr(l:nr) > 0
      return win_gotoid(win_getid(l:nr))
    endif
  endfor
  if !empty(pollux#setting('split'))
    execute pollux#setting('split') 'new'
    return
  endif
  let [l:side, l:width] = [pollux#setting('side'), pollux#setting('width')]
  let l:beside = l:side ==# 'left' || l:side ==# 'right'
  let l:room = l:beside ? &columns : &lines
  let l:size = l:width < 1 ? float2nr(l:room * l:width) : l:width
  execute l:side ==# 'left' || l:side ==# 'top' ? 'topleft' : 'botright' l:beside ? 'vertical' : '' max([1, min([l:size, l:room - 20])]) . 'new'
  let [&l:winfixwidth, &l:winfixheight] = [l:beside, !l:beside]
  setlocal bufhidden=wipe
endfunction

" Shows the terminal of an agent and goes there; the agent is started when it does not run for this folder.
function! pollux#terminal#run(args, ...) abort
  let l:cli = s:command(a:args)
  let l:name = fnamemodify(l:cli[0], ':t')
  let l:buf = s:running(l:name)
  if !has('terminal')
    return pollux#say#fail('this Vim has no terminal; start the CLI in another one')
  elseif l:buf && bufwinid(l:buf) > 0
    return win_gotoid(bufwinid(l:buf))
  elseif l:buf
    call s:sidebar()
    execute 'buffer' l:buf
    return
  elseif !executable(l:cli[0])
    let l:how = l:cli[0] ==# 'gemini' ? ': npm install -g @google/gemini-cli' : ''
    return pollux#say#fail('there is no command ' . l:cli[0] . '; install it first' . l:how)
  endif
  call s:sidebar()
  let l:options = {'curwin': 1, 'term_name': l:name}
  if has('termguicolors') && &termguicolors
    let l:options.env = {'COLORTERM': 'truecolor'}
  endif
  let l:folder = getcwd()
  call term_start(l:cli, l:options)
  setlocal bufhidden=hide nobuflisted
  let [b:pollux_cli, b:pollux_folder] = [l:name, l:folder]
endfunction

" Hides the terminal of an agent where it is on show, else run.
function! pollux#terminal#toggle(args, ...) abort
  let l:buf = s:running(fnamemodify(s:command(a:args)[0], ':t'))
  if !l:buf || bufwinid(l:buf) < 0
    call pollux#terminal#run(a:args)
  elseif winnr('$') == 1
    call pollux#say#fail('the terminal is the only window here')
  else
    let l:here = win_getid()
    call win_gotoid(bufwinid(l:buf))
    hide
    call win_gotoid(l:here)
  endif
endfunction

" Goes to the terminal of an agent, and from there back to where the user was.
function! pollux#terminal#focus(args, ...) abort
  if s:running(fnamemodify(s:command(a:args)[0], ':t')) == bufnr('%')
    wincmd p
  else
    call pollux#terminal#run(a:args)
  endif
endfunction
