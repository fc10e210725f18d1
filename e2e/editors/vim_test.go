package editors

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
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
let g:netrw_dirhistmax = 0
function! s:answer(timer)
  for l:ask in glob($HOME . '/ask-*[0-9]', 1, 1)
    let l:expr = join(readfile(l:ask), "\n")
    call delete(l:ask)
    try
      let l:value = eval(l:expr)
    catch
      let l:value = v:exception
    endtry
    call writefile(split(type(l:value) == v:t_string ? l:value : string(l:value), "\n", 1), $HOME . '/answer.part')
    call rename($HOME . '/answer.part', substitute(l:ask, 'ask-', 'answer-', ''))
  endfor
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
	var asked atomic.Int64
	return flavour{
		name: "vim", display: "Vim",
		user: func(b *bench) driver { return vi{b} },
		start: func(t *testing.T, b *bench, files []string) []string {
			rc := filepath.Join(b.root, "vimrc")
			if err := os.WriteFile(rc, []byte("set rtp^="+filepath.Join(root, "plugins", "vim")+vimrc), 0o600); err != nil {
				t.Fatal(err)
			}
			return append([]string{program, "-u", rc, "-i", "NONE", "-n"}, files...)
		},
		running: "pollux#state().status", yes: "running",
		messages: "execute('messages')", later: vimLater,
		eval: func(b *bench, expr string) string {
			b.Helper()
			n := strconv.FormatInt(asked.Add(1), 10)
			ask, answer := filepath.Join(b.root, "ask-"+n), filepath.Join(b.root, "answer-"+n)
			if err := errors.Join(os.WriteFile(ask+".part", []byte(expr), 0o600), os.Rename(ask+".part", ask)); err != nil {
				b.Fatal(err)
			}
			for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				if data, err := os.ReadFile(answer); err == nil {
					return strings.TrimRight(string(data), "\n")
				}
			}
			return "no answer to " + expr
		},
	}
}

// TestVim: what Neovim and Vim have in common beside the stories of all editors.
func TestVim(t *testing.T) {
	playOn(t, vis, map[string]func(*testing.T, flavour){
		"context": vimContext, "selection": vimSelection, "tabs": vimTabs, "blocks": vimBlocks, "working folders": vimWorkingFolders,
		"hunk": vimHunk, "exact": vimExact, "open before": vimOpenBefore, "first lines": vimFirstLines, "commit": vimCommit, "half-written": vimHalfWritten,
		"saveas": vimSaveAs, "read again": vimReadAgain, "long undo": vimLongUndo, "edit": vimEditOther, "without a diff": vimUnseen,
		"review": vimReview, "policies": vimPolicies, "commands": vimCommands, "cli": vimCLI, "haste": vimHaste, "keys and colours": vimKeys, "layouts": vimLayouts,
		"invalid": vimInvalid, "save settings": vimSaveSettings, "long words": vimLongWords, "hangup": vimHangup, "question": vimQuestion,
		"no tab page": vimNoTab, "no room": vimNoRoom, "resized": vimResized, "beside the terminal": vimBesideTerminal,
	})
}
