" The colours of diffs, each a group that a colour scheme or the user may set, and the names of tabs.

let s:links = {'PolluxLabel': 'StatusLine', 'PolluxConflict': 'WarningMsg', 'PolluxAdd': 'DiffAdd', 'PolluxChange': 'DiffChange', 'PolluxDelete': 'DiffDelete', 'PolluxText': 'DiffText', 'PolluxGone': 'DiffDelete'}

" What stands for the garish colours of an editor that nobody has configured.
let s:calm = {
      \ 'dark': {'PolluxAdd': 'ctermbg=22 guibg=#12351f', 'PolluxChange': 'ctermbg=236 guibg=#262c36',
      \   'PolluxDelete': 'ctermfg=240 ctermbg=NONE guifg=#5c6370 guibg=NONE', 'PolluxText': 'ctermbg=24 guibg=#24506e',
      \   'PolluxGone': 'ctermfg=252 ctermbg=52 guifg=#c9d1d9 guibg=#3c1618'},
      \ 'light': {'PolluxAdd': 'ctermbg=194 guibg=#d5f5dc', 'PolluxChange': 'ctermbg=255 guibg=#eef0f3',
      \   'PolluxDelete': 'ctermfg=249 ctermbg=NONE guifg=#a8b0b8 guibg=NONE', 'PolluxText': 'ctermbg=153 guibg=#b4d8f8',
      \   'PolluxGone': 'ctermfg=237 ctermbg=224 guifg=#373e47 guibg=#ffe1de'}}
let s:ours = [] " the groups that were given calm colours
let s:highlight = '' " the option 'highlight' before a diff was on show
let s:tabline = '%!pollux#colours#tabs()'

" Whether nobody has chosen colours for diffs: Vim's own scheme, and no :highlight of anybody's.
function! s:unconfigured() abort
  if get(g:, 'colors_name', 'default') !=# 'default' || &t_Co < 256 && !has('gui_running') && !(has('termguicolors') && &termguicolors)
    return 0
  endif
  for l:group in ['DiffAdd', 'DiffChange', 'DiffDelete', 'DiffText']
    if execute('verbose highlight ' . l:group) =~# '\n\t' " where it was set last
      return 0
    endif
  endfor
  return 1
endfunction

" Sets what nobody else has set, and names the tabs, while diffs are on show.
function! pollux#colours#set() abort
  for l:group in s:ours
    execute 'highlight clear' l:group
  endfor
  let s:ours = []
  let l:calm = s:unconfigured() ? s:calm[&background] : {}
  for [l:group, l:default] in items(s:links)
    if has_key(l:calm, l:group) && (!hlexists(l:group) || execute('highlight ' . l:group) =~# 'cleared')
      execute 'highlight' l:group l:calm[l:group]
      call add(s:ours, l:group)
    else
      execute 'highlight default link' l:group l:default
    endif
  endfor
  if empty(s:highlight)
    let s:highlight = &highlight
    let &highlight = substitute(&highlight, '\<\([ACDT]:\)Diff\(Add\|Change\|Delete\|Text\)\>', '\1Pollux\2', 'g')
  endif
  if empty(&tabline)
    let &tabline = s:tabline
  endif
endfunction

" Leaves colours and tabs as they were, once no diff and no past proposal is on show.
function! pollux#colours#done() abort
  for l:window in getwininfo()
    if !empty(getbufvar(l:window.bufnr, 'pollux_diff')) || !empty(getbufvar(l:window.bufnr, 'pollux_past'))
      return
    endif
  endfor
  if !empty(s:highlight)
    let &highlight = s:highlight
    let s:highlight = ''
  endif
  if &tabline ==# s:tabline
    set tabline=
  endif
endfunction

" The tab line as Vim draws it, with the last part of each name alone: "main.go (proposal)".
function! pollux#colours#tabs() abort
  let l:shown = ''
  for l:tab in range(1, tabpagenr('$'))
    let l:buf = tabpagebuflist(l:tab)[tabpagewinnr(l:tab) - 1]
    let l:name = substitute(fnamemodify(bufname(l:buf), ':t'), '%', '%%', 'g')
    let l:shown .= (l:tab == tabpagenr() ? '%#TabLineSel#' : '%#TabLine#') . '%' . l:tab . 'T ' . (getbufvar(l:buf, '&modified') ? '+ ' : '') . (empty(l:name) ? '[No Name]' : l:name) . ' '
  endfor
  return l:shown . '%#TabLineFill#%T%=%#TabLine#%999XX'
endfunction
