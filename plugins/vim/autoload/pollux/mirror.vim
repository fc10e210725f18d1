" The agent's terminal beside a diff: the layout 'terminal' shows it in the diff's tab page as well, where it was.

function! s:shown(d) abort
  return get(a:d, 'mirror') && win_id2win(a:d.mirror) > 0
endfunction

" How many columns the terminal takes from the sides of a diff.
function! pollux#mirror#columns(d) abort
  return s:shown(a:d) && a:d.beside ? winwidth(a:d.mirror) + 1 : 0
endfunction

" Shows in the tab page at hand the terminal that was on the screen before it.
function! pollux#mirror#open(d) abort
  let a:d.mirror = 0
  let l:from = pollux#setting('layout') ==# 'terminal' ? s:terminal(get(a:d.origin, 'tab')) : {}
  if empty(l:from)
    return
  endif
  let l:here = win_getid()
  let [a:d.beside, a:d.share] = [l:from.width < &columns, l:from.width * 1.0 / &columns]
  let l:first = a:d.beside ? l:from.wincol == 1 : l:from.winrow <= 2
  let l:size = a:d.beside ? min([l:from.width, &columns - 20]) : min([l:from.height, &lines - 12])
  execute l:first ? 'topleft' : 'botright' a:d.beside ? 'vertical' : '' max([1, l:size]) . 'split'
  execute 'buffer' l:from.bufnr
  let a:d.mirror = win_getid()
  let [&l:winfixwidth, &l:winfixheight] = [a:d.beside, !a:d.beside]
  call win_gotoid(l:here)
endfunction

" The window of an agent's terminal in a tab page, {} without one.
function! s:terminal(tab) abort
  return get(filter(getwininfo(), 'v:val.tabnr == a:tab && !empty(getbufvar(v:val.bufnr, "pollux_cli"))'), 0, {})
endfunction

" Whether the user is in the terminal beside a diff.
function! pollux#mirror#here(d) abort
  return get(a:d, 'mirror') == win_getid()
endfunction

" Gives the terminal its share of a screen that has another size.
function! pollux#mirror#resize(d) abort
  if s:shown(a:d) && a:d.beside
    execute 'vertical' win_id2win(a:d.mirror) . 'resize' max([1, float2nr(&columns * a:d.share)])
  endif
endfunction

" Takes it away with its diff.
function! pollux#mirror#close(d) abort
  let l:info = get(getwininfo(get(a:d, 'mirror')), 0, {})
  if get(l:info, 'tabnr') == tabpagenr() && win_gotoid(a:d.mirror)
    hide
  elseif !empty(l:info)
    call win_execute(a:d.mirror, 'hide')
  endif
  let a:d.mirror = 0
endfunction
