" What was proposed before, and the rules: lists to choose from.

" Runs a command of the companion's; {then}(result) follows where it succeeds.
function! s:ask(command, argument, then) abort
  call pollux#execute(a:command, a:argument, {r, e -> empty(e) ? a:then(r) : pollux#say#fail(e.message)})
endfunction

" Has the user choose one of {items}, each shown as its label.
function! pollux#past#choose(items, title, none, labels, then) abort
  if empty(a:items)
    return pollux#say#say(a:none)
  elseif exists('*popup_menu')
    return popup_menu(a:labels, {'title': ' ' . a:title . ' ', 'maxheight': &lines - 6, 'callback': {_, n -> n > 0 ? a:then(a:items[n - 1]) : 0}})
  endif
  let l:n = inputlist([a:title] + map(copy(a:labels), '(v:key + 1) . ". " . v:val'))
  if l:n > 0 && l:n <= len(a:items)
    call a:then(a:items[l:n - 1])
  endif
endfunction

function! s:label(e) abort
  let l:what = [a:e.outcome] + (get(a:e, 'edited') ? ['edited'] : []) + (get(a:e, 'policy') ? ['by a rule'] : []) + (get(a:e, 'undone') ? ['undone'] : [])
  return join([substitute(a:e.at[:15], 'T', ' ', ''), fnamemodify(a:e.path, ':.'), join(l:what, ', '), a:e.owner], '  ')
endfunction

function! s:labels(entries) abort
  return map(copy(a:entries), 's:label(v:val)')
endfunction

function! s:side(e, name, content) abort
  setlocal buftype=nofile bufhidden=wipe noswapfile
  execute 'silent keepalt file' fnameescape(printf('pollux://past/%s/%s (%s)', a:e.id, fnamemodify(a:e.path, ':t'), a:name))
  call pollux#text#fill(a:content)
  setlocal nomodifiable nomodified
  let b:pollux_past = a:e
  augroup pollux_past
    autocmd BufWipeout <buffer> call timer_start(0, {-> pollux#colours#done()})
  augroup END
  let &l:statusline = ' ' . substitute(fnamemodify(a:e.path, ':t'), '%', '%%', 'g') . ' (' . a:name . ') %= %l:%c '
  diffthis
endfunction

" Shows a past proposal in a tab page of its own.
function! s:show(e, texts) abort
  tabnew
  call s:side(a:e, 'before', a:texts.oldText)
  rightbelow vnew
  call s:side(a:e, a:e.outcome, a:texts.finalText)
  call pollux#colours#set()
  call pollux#say#say((get(a:e, 'undoable') && !get(a:e, 'undone') ? ':Pollux undo takes this change back, ' : '') . ':tabclose ends')
endfunction

function! s:undone(e) abort
  call pollux#reload#changed({'uris': [pollux#text#uri(a:e.path)]})
  call pollux#say#say(fnamemodify(a:e.path, ':t') . ' has its earlier text again')
endfunction

function! s:undo(e) abort
  call s:ask('pollux.undo', {'id': a:e.id}, {-> s:undone(a:e)})
endfunction

" Lists past proposals, and shows the one that is chosen.
function! pollux#past#history(...) abort
  call s:ask('pollux.history', {}, {r -> pollux#past#choose(r.entries, 'Past proposals', 'nothing was proposed here yet', s:labels(r.entries),
        \ {e -> s:ask('pollux.history', {'id': e.id}, {texts -> s:show(e, texts)})})})
endfunction

" Takes back the change that is on show, else one from a list.
function! pollux#past#undo(...) abort
  if exists('b:pollux_past')
    return s:undo(b:pollux_past)
  endif
  call s:ask('pollux.history', {}, {r -> s:undo_one(filter(r.entries, 'get(v:val, "undoable") && !get(v:val, "undone")'))})
endfunction

function! s:undo_one(entries) abort
  call pollux#past#choose(a:entries, 'Undo', 'there is nothing to undo', s:labels(a:entries), function('s:undo'))
endfunction

function! s:about(rule) abort
  return get(a:rule, 'pattern', get(a:rule, 'owner', 'everything'))
endfunction

function! s:set_rule(rule, policy) abort
  let l:argument = extend({'policy': a:policy}, has_key(a:rule, 'pattern') ? {'scope': 'pattern', 'pattern': a:rule.pattern}
        \ : has_key(a:rule, 'owner') ? {'scope': 'session', 'session': a:rule.owner} : {})
  call s:ask('pollux.setPolicy', l:argument, {-> pollux#say#say(a:policy . ': ' . s:about(a:rule))})
endfunction

" Lists the rules, the newest first, and changes the one that is chosen.
function! pollux#past#rules(...) abort
  let l:modes = ['ask', 'accept', 'terminal']
  call s:ask('pollux.status', {}, {r -> pollux#past#choose(reverse(r.rules), 'Rules', 'there is no rule: you are asked about everything',
        \ map(copy(r.rules), 'printf("%-8s  %s", v:val.mode, s:about(v:val))'),
        \ {rule -> pollux#past#choose(l:modes, s:about(rule), '', l:modes, {policy -> s:set_rule(rule, policy)})})})
endfunction
