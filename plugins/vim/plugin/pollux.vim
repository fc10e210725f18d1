" pollux: makes Vim an IDE for Gemini CLI. See :help pollux
if exists('g:loaded_pollux') || &compatible || has('nvim') || v:version < 800 || !has('job') || !has('timers')
  finish
endif
let g:loaded_pollux = 1

command! -nargs=* -range -complete=customlist,pollux#command#complete Pollux
      \ call pollux#command#run([<f-args>], <range>, <line1>, <line2>)

" Everything else is loaded after the first screen, if it is there: a file that
" the user has changed stays when the others are uninstalled.
function! s:later(timer) abort
  if !empty(globpath(&runtimepath, 'autoload/pollux.vim'))
    call pollux#autostart()
  endif
endfunction

augroup pollux_start
  autocmd!
  autocmd VimEnter * call timer_start(0, function('s:later'))
augroup END
if get(v:, 'vim_did_enter', 0) " loaded late, by a plugin manager
  call timer_start(0, function('s:later'))
endif
