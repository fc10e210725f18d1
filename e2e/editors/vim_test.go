package editors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/peers"
)

// vimrc lets a test ask Vim for the value of an expression without typing anything.
const vimrc = `
set nocompatible encoding=utf-8 shortmess+=I ttimeoutlen=20 nomore
filetype plugin indent on
syntax on
let g:pollux = {'idle': 100}
function! s:answer(timer)
  let l:ask = $HOME . '/ask'
  if filereadable(l:ask)
    let l:expr = join(readfile(l:ask), "\n")
    call delete(l:ask)
    try
      let l:value = eval(l:expr)
    catch
      let l:value = v:exception
    endtry
    call writefile(split(type(l:value) == v:t_string ? l:value : string(l:value), "\n", 1), $HOME . '/answer.part')
    call rename($HOME . '/answer.part', $HOME . '/answer')
  endif
endfunction
call timer_start(15, function('s:answer'), {'repeat': -1})
`

func vim(t *testing.T) flavour {
	t.Helper()
	program := peers.Need(t, peers.Vim)
	root, err := peers.Root()
	if err != nil {
		t.Fatal(err)
	}
	return flavour{
		name: "vim", display: "Vim",
		start: func(t *testing.T, b *bench, files []string) []string {
			rc := filepath.Join(b.root, "vimrc")
			if err := os.WriteFile(rc, []byte("set rtp^="+filepath.Join(root, "plugins", "vim")+vimrc), 0o600); err != nil {
				t.Fatal(err)
			}
			return append([]string{program, "-u", rc, "-i", "NONE", "-n"}, files...)
		},
		eval: func(b *bench, expr string) string {
			b.Helper()
			answer := filepath.Join(b.root, "answer")
			if err := os.WriteFile(filepath.Join(b.root, "ask.part"), []byte(expr), 0o600); err != nil {
				b.Fatal(err)
			}
			if err := os.Rename(filepath.Join(b.root, "ask.part"), filepath.Join(b.root, "ask")); err != nil {
				b.Fatal(err)
			}
			for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				if data, err := os.ReadFile(answer); err == nil {
					if err := os.Remove(answer); err != nil {
						b.Fatal(err)
					}
					return strings.TrimRight(string(data), "\n")
				}
			}
			b.Fatalf("Vim does not answer %s", expr)
			return ""
		},
		ask: func(b *bench, command string) string {
			b.eval("pollux#execute('" + command + "', {}, {r, e -> extend(g:, {'answer': json_encode(r)})})")
			return b.eval("get(g:, 'answer', '')")
		},
	}
}

func TestVim(t *testing.T) {
	t.Parallel()
	vimSuite(t, vim(t))
}
