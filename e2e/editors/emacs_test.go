package editors

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/pace"
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

func TestEmacs(t *testing.T) {
	t.Parallel()
	f := emacs(t)
	for name, test := range map[string]func(*testing.T, flavour){
		"discovery": emacsDiscovery, "context": emacsContext, "selection": emacsSelection, "accept": emacsAccept, "edited": emacsEdited,
		"reject": emacsReject, "exact": emacsExact, "queue": emacsQueue, "terminal side": emacsCloseDiff, "unsaved": emacsUnsaved,
		"companion dies": emacsCompanionDies, "editor dies": emacsEditorDies, "quit": emacsQuit, "focus": emacsFocus, "folders": emacsFolders,
	} {
		t.Run(name, func(t *testing.T) { test(t, f) })
	}
}

const (
	// shown is what stands in a diff's right side; buffers counts what a diff needs.
	shown   = `(if (buffer-live-p (get-buffer "a.go <proposal>")) (with-current-buffer "a.go <proposal>" (save-excursion (goto-char (point-min)) (buffer-substring (point) (line-end-position)))) "nothing")`
	buffers = `(length (seq-filter (lambda (b) (string-match-p "proposal\\|before\\|Ediff Control" (buffer-name b))) (buffer-list)))`
	windows = `(list (length (window-list)) (buffer-name))`
)

func emacsDiscovery(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": sample})
	b.open("a.go")
	data, err := os.ReadFile(b.file())
	if err != nil {
		t.Fatal(err)
	}
	if want := `"ideInfo":{"name":"emacs","displayName":"Emacs"}`; !strings.Contains(string(data), want) || !strings.Contains(string(data), b.project) {
		t.Errorf("%s", data)
	}
	b.is("(emacs-pid)", itoa(b.pid()))
	b.is(`(getenv "GEMINI_CLI_IDE_SERVER_PORT")`, itoa(b.port()))
	b.is(`(string-trim (shell-command-to-string "echo $GEMINI_CLI_IDE_PID"))`, itoa(b.pid()))
}

func emacsContext(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": sample, "b.txt": "b\n"})
	b.open("a.go")
	a := b.connect()
	b.sees(a, "a.go 1:1")
	b.keys("C-n", "C-n", "C-e")
	b.sees(a, "a.go 3:18")
	b.keys("C-x", "C-f")
	b.text("b.txt\r")
	b.sees(a, "b.txt 1:1")
	b.keys("C-x", "b")
	b.text("*scratch*\r") // no file of the user's
	b.sees(a, "none")
	b.keys("C-x", "b", "Enter")
	b.sees(a, "b.txt 1:1")
	b.keys("C-x", "C-w")
	b.text("c.txt\r")
	b.sees(a, "c.txt 1:1")
	b.keys("C-x", "k", "Enter")
	a.Context("a context without c.txt", func(files []agentFile) bool { return !strings.Contains(names(files), "c.txt") })
}

func emacsSelection(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": sample})
	b.open("a.go")
	a := b.connect()
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

func emacsAccept(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": sample})
	b.open("a.go")
	a := b.connect()
	proposed := "// new\n" + sample
	a.OpenDiff(b.path("a.go"), proposed)
	b.is(windows, "(3 a.go <proposal>)")
	b.sees(a, "none")
	b.keys("C-c", "C-c")
	if o := a.Outcome(); o.Method != "ide/diffAccepted" || o.Content != proposed || o.FilePath != b.path("a.go") {
		t.Errorf("%+v", o)
	}
	b.is(windows, "(1 a.go)")
	b.is(buffers, "0")
	if data, _ := os.ReadFile(b.path("a.go")); string(data) != sample {
		t.Errorf("the plugin wrote the file: %q", data)
	}
	b.write("a.go", proposed) // as the CLI does
	b.is(`(with-current-buffer "a.go" (buffer-substring 1 7))`, "// new")
	b.keys("C-_")
	b.is(`(with-current-buffer "a.go" (buffer-substring 1 8))`, "package") // with its undo history
	a.Quiet()
}

func emacsEdited(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "one\ntwo\n"})
	b.open("a.go")
	a := b.connect()
	for _, accept := range [][]string{{"C-c", "C-c"}, {"C-x", "C-s"}} {
		a.OpenDiff(b.path("a.go"), "ONE\ntwo\n")
		b.is(windows, "(3 a.go <proposal>)")
		b.keys("C-e")
		b.text("😀")
		b.is(shown, "ONE😀")
		b.keys(accept...)
		if o := a.Outcome(); o.Content != "ONE😀\ntwo\n" {
			t.Errorf("%v: %+v", accept, o)
		}
		b.is(windows, "(1 a.go)")
	}
}

func emacsReject(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": sample})
	b.open("a.go")
	a := b.connect()
	for _, keys := range [][]string{{"C-c", "C-k"}, {"C-x", "k", "Enter"}, {"C-x", "o", "q"}, {"M-x", "pollux-reject", "Enter"}} {
		a.OpenDiff(b.path("a.go"), "other\n")
		b.is(windows, "(3 a.go <proposal>)")
		if keys[1] == "o" {
			b.keys("C-x", "o")
			b.is(`(if (string-match-p "Ediff" (buffer-name)) 1 0)`, "1")
			keys = keys[2:]
		}
		b.keys(keys...)
		if o := a.Outcome(); o.Method != "ide/diffRejected" {
			t.Errorf("%v: %+v", keys, o)
		}
		b.is(windows, "(1 a.go)")
		b.is(buffers, "0")
	}
	a.Quiet()
}

func emacsExact(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": "old\r\nlines\r\n"})
	b.open("a.txt")
	a := b.connect()
	for i, text := range []string{
		"dos\r\nlines\r\n", "no end", "dos\r\nno end", "mixed\r\nlines\n", "\ufeffmarked\n", "mac\rlines\r", "\n", "tab\t nbsp\u00a0 e\u0301 👩‍👩‍👧 日本\n",
		"control \x01\x1b\x7f\n", "\r\n", "a\rb\r\n", "long " + strings.Repeat("x", 20_000) + "\n", strings.Repeat("line of many\n", 20_000), "",
	} {
		a.OpenDiff(b.path("a.txt"), text)
		b.is(windows, "(3 a.txt <proposal>)")
		if edit := i%2 == 1; edit { // and exactly so when something was typed and taken back
			b.text("x")
			b.keys("BSpace")
		}
		b.keys("C-c", "C-c")
		if o := a.Outcome(); o.Content != text || o.Method != "ide/diffAccepted" {
			t.Errorf("%.40q became %.40q (%d, %d bytes)", text, o.Content, len(text), len(o.Content))
		}
		b.is(windows, "(1 a.txt)")
	}
}

func emacsQueue(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n", "d": "d\n"})
	b.open("a")
	a := b.connect()
	for _, name := range []string{"a", "b", "c", "d"} {
		a.OpenDiff(b.path(name), "new "+name+"\n")
	}
	b.is(windows, "(3 a <proposal>)")
	b.keys("C-c", "C-c")
	if o := a.Outcome(); o.Content != "new a\n" {
		t.Errorf("%+v", o)
	}
	b.is(windows, "(3 b <proposal>)")
	b.keys("C-c", "C-k")
	if o := a.Outcome(); o.Method != "ide/diffRejected" || o.FilePath != b.path("b") {
		t.Errorf("%+v", o)
	}
	b.is(windows, "(3 c <proposal>)")
	b.keys("M-x")
	b.text("pollux-accept-all\r")
	got := a.Outcome().Content + a.Outcome().Content
	if got != "new c\nnew d\n" && got != "new d\nnew c\n" {
		t.Errorf("%q", got)
	}
	b.is(windows, "(1 a)")
}

func emacsCloseDiff(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n", "b": "b\n"})
	b.open("a.go")
	a := b.connect()
	a.OpenDiff(b.path("a.go"), "new a\n")
	a.OpenDiff(b.path("b"), "new b\n")
	b.is(windows, "(3 a.go <proposal>)")
	b.keys("C-e")
	b.text("edited")
	b.is(shown, "new aedited")
	if got := a.CloseDiff(b.path("b")); got != `{"finalContent":"new b\n"}` {
		t.Error(got)
	}
	if got := a.CloseDiff(b.path("a.go")); got != `{"content":"new aedited\n"}` {
		t.Error(got)
	}
	b.is(windows, "(1 a.go)")
	b.is(buffers, "0")
	a.Quiet()
}

func emacsUnsaved(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n"})
	b.open("a.go")
	a := b.connect()
	b.text("unsaved")
	b.is("(list (buffer-substring 1 9) (buffer-modified-p))", "(unsaveda t)")
	a.OpenDiff(b.path("a.go"), "new\n")
	b.is(windows, "(3 a.go <proposal>)")
	b.says("your unsaved changes of it are kept")
	b.keys("C-c", "C-c")
	a.Outcome()
	b.is(windows, "(1 a.go)")
	b.write("a.go", "new, and longer\n")
	b.says("your unsaved changes are kept")
	b.is(`(with-current-buffer "a.go" (list (buffer-substring 1 9) (buffer-modified-p)))`, "(unsaveda t)")
}

func emacsCompanionDies(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n"})
	b.open("a.go")
	a := b.connect()
	a.OpenDiff(b.path("a.go"), "new\n")
	b.is(windows, "(3 a.go <proposal>)")
	b.keys("C-e")
	b.text("edited")
	b.is(shown, "newedited")
	b.until("the journal", func() bool { return b.journal("new") })
	port, old := b.port(), b.stamp()
	b.kill(b.companion(), syscall.SIGKILL)
	b.until("another companion", func() bool { return len(b.files()) == 1 && b.stamp() != old && serves(b.file()) })
	if got := b.port(); got != port {
		t.Errorf("port %d became %d", port, got)
	}
	b.is("(plist-get pollux--status :pendingDiffs)", "1")
	b.is(shown, "newedited")
	b.keys("C-c", "C-c")
	b.is(windows, "(1 a.go)")
	b.until("the outcome", func() bool { return b.history("newedited") })
}

func emacsEditorDies(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	a := b.connect()
	a.OpenDiff(b.path("a"), "new\n")
	b.is(windows, "(3 a <proposal>)")
	companion := b.companion()
	b.kill(b.pid(), syscall.SIGKILL)
	watch := pace.Start(t)
	b.until("the end of the companion", func() bool { return len(b.files()) == 0 && !alive(companion) })
	if took := watch.Took(); took > pace.Slack*time.Second {
		t.Errorf("took %v", took)
	}
	if o := a.Outcome(); o.Method != "ide/diffRejected" {
		t.Errorf("%+v", o)
	}
}

func emacsQuit(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	a := b.connect()
	a.OpenDiff(b.path("a"), "new\n")
	b.is(windows, "(3 a <proposal>)")
	b.keys("C-x", "C-c")
	if o := a.Outcome(); o.Method != "ide/diffRejected" {
		t.Errorf("%+v", o)
	}
	b.until("the end", func() bool { return len(b.files()) == 0 })
	if code := b.tm.Exit(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func emacsFocus(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	a := b.connect()
	b.keys("M-x")
	b.is("(if (active-minibuffer-window) 1 0)", "1")
	a.OpenDiff(b.path("a"), "new\n")
	b.pause(500)
	b.is("(length (window-list nil 'no-minibuffer))", "1")
	b.quit()
	b.is(windows, "(3 a <proposal>)")
	b.keys("C-c", "C-k")
	a.Outcome()
	b.is(windows, "(1 a)")
	// Nor between the keys of a sequence, behind a prefix argument, while
	// searching, recording or being asked by a command.
	for _, amid := range []struct {
		keys       []string
		taken, end string // an expression, which is t, and a key
	}{
		{[]string{"C-x"}, "(equal (this-command-keys-vector) [24])", "="},
		{[]string{"C-u"}, "(equal prefix-arg '(4))", "C-l"},
		{[]string{"C-s", "a"}, "(and (buffer-local-value 'isearch-mode (window-buffer)) t)", "Enter"},
		{[]string{"F3"}, "defining-kbd-macro", "F4"},
		{[]string{"M-%", "a", "Enter", "b", "Enter"}, "(eq this-command 'query-replace)", "q"},
	} {
		b.keys("M-<")
		b.keys(amid.keys...)
		b.is(amid.taken, "t")
		a.OpenDiff(b.path("a"), "new\n")
		b.pause(500)
		b.is("(length (window-list nil 'no-minibuffer))", "1")
		b.keys(amid.end) // not C-g, which may end the question of b.is instead
		b.is(windows, "(3 a <proposal>)")
		b.keys("C-c", "C-k")
		a.Outcome()
		b.is(windows, "(1 a)")
	}
}

// D-4: one Emacs, several projects.
func emacsFolders(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "../q/.git/config": "", "../q/sub/x": "x\n"})
	b.open("a")
	a := b.connect()
	b.keys("C-x", "C-f")
	b.text("../q/sub/x\r")
	b.is(`(getenv "GEMINI_CLI_IDE_WORKSPACE_PATH")`, b.project+":"+b.root+"/q")
	b.sees(a, "x 1:1")
}
