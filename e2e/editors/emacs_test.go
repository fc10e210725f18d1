package editors

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/peers"
)

// interpreted keeps Emacs from compiling to machine code what it loads, which
// in a new home it does for minutes, on a processor of its own.
const interpreted = "(setq native-comp-deferred-compilation nil native-comp-jit-compilation nil)"

func emacs(t *testing.T) flavour {
	t.Helper()
	program := peers.Need(t, peers.Emacs)
	client, err := exec.LookPath("emacsclient")
	if err != nil {
		t.Skip(err)
	}
	root, err := peers.Root()
	if err != nil {
		t.Fatal(err)
	}
	return flavour{
		name: "emacs", display: "Emacs",
		user: func(b *bench) driver { return emacsUser{b} },
		start: func(_ *testing.T, b *bench, files []string) []string {
			lisp := fmt.Sprintf(`(progn (require 'server) (setq inhibit-startup-screen t server-socket-dir %q server-name "s" pollux-idle 0.1 make-backup-files nil auto-save-default nil ring-bell-function 'ignore) (server-start) (pollux-mode 1))`, b.root+"/r")
			return append([]string{program, "-Q", "-nw", "--eval", interpreted, "-L", filepath.Join(root, "plugins", "emacs"), "-l", "pollux", "--eval", lisp}, files...)
		},
		running: "(if pollux--ready 1 0)", yes: "1",
		messages: `(with-current-buffer "*Messages*" (buffer-string))`,
		later: func(b *bench, ms int) string {
			b.eval(fmt.Sprintf("(progn (defvar bench-later) (setq bench-later 0) (run-at-time %d.%03d nil (lambda () (setq bench-later 1))))", ms/1000, ms%1000))
			return "bench-later"
		},
		eval: func(b *bench, expr string) string {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, client, "--socket-name", b.root+"/r/s", "--eval", "(with-current-buffer (window-buffer (selected-window)) (format \"%s\" "+expr+"))")
			cmd.Env = b.env
			out, err := cmd.CombinedOutput()
			var s string
			if err != nil || json.Unmarshal([]byte(strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", `\n`)), &s) != nil {
				return "? " + string(out)
			}
			return s
		},
	}
}

// quit types C-g until Emacs has taken it as a command, and no region and no
// minibuffer is left: while Emacs is at work, if only on a question of the
// test's, the key interrupts that and is gone.
func (b *bench) quit() {
	b.Helper()
	b.pressUntil("C-g", "the end of region and minibuffer", func() bool { return b.eval("(if (or mark-active (active-minibuffer-window)) 1 0)") == "0" })
}

// pressUntil types a key, and again every two seconds, until ok.
func (b *bench) pressUntil(key, what string, ok func() bool) {
	b.Helper()
	pressed := time.Time{}
	b.until(what, func() bool {
		if time.Since(pressed) > 2*time.Second {
			b.keys(key)
			pressed = time.Now()
		}
		return ok()
	})
}

const (
	// shown is what stands in a diff's right side; buffers counts what a diff needs.
	shown   = `(if (buffer-live-p (get-buffer "a.go <proposal>")) (with-current-buffer "a.go <proposal>" (save-excursion (goto-char (point-min)) (buffer-substring (point) (line-end-position)))) "nothing")`
	buffers = `(length (seq-filter (lambda (b) (string-match-p "proposal\\|before\\|Ediff Control" (buffer-name b))) (buffer-list)))`
	windows = `(list (length (window-list)) (buffer-name))`
)

func emacsSelection(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": sample}, "a.go")
	b.keys("C-n", "C-n", "C-f", "C-@", "M-f")
	b.sees(a, `a.go 3:7 "hällo"`)
	b.keys("M-f", "C-f", "C-f")
	b.sees(a, `a.go 3:16 "hällo wörld 😀"`)
	b.quit()
	b.sees(a, "a.go 3:16")
	b.keys("C-n", "C-a", "C-x", "Space", "C-n", "C-f", "C-f")
	b.sees(a, `a.go 5:3 "fo\nla"`)
	b.quit()
	b.sees(a, "a.go 5:3")
}

// TestEmacs: what Emacs has alone.
func TestEmacs(t *testing.T) {
	playOn(t, []func(*testing.T) flavour{emacs}, map[string]func(*testing.T, flavour){
		"selection":    emacsSelection,
		"cli terminal": emacsCLITerminal,
		"files":        emacsFiles,
		"narrowed":     emacsNarrowed,
		"regions":      emacsRegions,
		"roots":        emacsRoots,
		"announced":    emacsAnnounced,
		"latin-1":      emacsLatin1,
		"long line":    emacsLongLine,
		"reload":       emacsReload,
		"half written": emacsHalfWritten,
		"named":        emacsNamed,
		"frames":       emacsFrames,
		"daemon":       emacsDaemon,
		"written":      emacsWritten,
		"side window":  emacsSideWindow,
		"tab bar":      emacsTabBar,
		"terminal":     emacsTerminalFollows,
		"ediff":        emacsEdiff,
		"one side":     emacsOneSided,
		"hidden":       emacsHidden,
		"panel":        emacsPanel,
		"unified":      emacsUnified,
		"resized":      emacsResized,
		"beside":       emacsBesideTerminal,
		"term":         emacsTerm("term"),
		"ansi-term":    emacsTerm("ansi-term"),
		"eshell":       emacsTerm("eshell"),
		"send":         emacsSend,
		"status":       emacsStatus,
		"questions":    emacsQuestions,
		"page":         emacsPage,
		"next":         emacsNext,
		"manual":       emacsManual,
	})
}
