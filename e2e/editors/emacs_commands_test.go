package editors

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/peers"
)

// fakeCLI stands where the CLI would: it shows its environment and what is typed.
const fakeCLI = "echo \"port $GEMINI_CLI_IDE_SERVER_PORT $GEMINI_CLI_IDE_PID\"\nwhile read -r line; do echo \"got $line\"; done\n"

// drawing is how the CLI draws, which term by itself gets wrong: a line is
// erased from behind, titles are set, columns are gone to. It makes "drywn anew".
const drawing = `printf 'what was there\033[2K\033[Gdrawn \033]0;a ti'; sleep 0.1; printf 'tle\007anew\033[3Gy\n'` + "\n"

// M-x pollux-run, in each terminal that Emacs brings: with the variables of
// SPEC D-7, in the project's folder, once for each project, and drawn as it should be.
func emacsTerm(kind string) func(*testing.T, flavour) {
	return func(t *testing.T, f flavour) {
		b := newBench(t, f.with("(setq pollux-terminal '"+kind+")"), map[string]string{".git/HEAD": "", "sub/a.go": "a\n"})
		b.script("gemini", drawing+fakeCLI)
		b.open("sub/a.go")
		b.mx("pollux-run")
		const any = `(mapconcat (lambda (b) (if (string-match-p "gemini" (buffer-name b)) (with-current-buffer b (buffer-string)) "")) (buffer-list) "\n")`
		b.until("the CLI with its variables", func() bool { return strings.Contains(b.eval(any), "port "+itoa(b.port())+" "+itoa(b.pid())) })
		const first = `(with-current-buffer "*gemini: p*" (string-trim-right (buffer-substring-no-properties (point-min) (save-excursion (goto-char (point-min)) (line-end-position)))))`
		b.is(first, "drywn anew")
		b.is(`(if (get-buffer "*gemini: p*") (buffer-local-value 'default-directory (get-buffer "*gemini: p*")) "none")`, b.project+"/")
		const running = `(length (seq-filter (lambda (p) (and (process-buffer p) (string-match-p "gemini" (buffer-name (process-buffer p))))) (process-list)))`
		b.is(running, "1")
		b.soon(`(delete-other-windows) (switch-to-buffer "a.go")`)
		b.is("(buffer-name)", "a.go")
		b.mx("pollux-run") // shows it again
		b.until("the terminal", func() bool { return strings.Contains(b.eval("(buffer-name)"), "gemini") })
		b.is(running, "1")
	}
}

// M-x pollux-send types a mention of the file and the region's lines.
func emacsSend(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a, file.go": "one\ntwo\nthree\n"})
	b.script("gemini", fakeCLI)
	b.open("a, file.go")
	b.mx("pollux-send")
	b.says("No CLI runs here; start one with M-x pollux-run")
	b.mx("pollux-run")
	const screen = `(with-current-buffer "*gemini: p*" (buffer-substring-no-properties (point-min) (point-max)))`
	b.until("the CLI", func() bool { return strings.Contains(b.eval(screen), "port ") })
	b.soon(`(delete-other-windows) (switch-to-buffer "a, file.go")`)
	b.is("(buffer-name)", "a, file.go")
	b.keys("C-n", "C-@", "C-n", "C-n")
	b.is("(use-region-p)", "t")
	b.mx("pollux-send")
	b.until("the mention", func() bool { return strings.Contains(b.eval(screen), `@a\,\ file.go lines 2-3 `) })
	b.says(`the terminal: press Enter there (typed by editor)`)
}

// M-x pollux-status and M-x pollux-log, and the mode line.
func emacsStatus(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "a\n"}, "a.go")
	b.is("(substring-no-properties (pollux-mode-line))", " Pollux:Gemini 1")
	a.OpenDiff(b.path("a.go"), "new\n")
	b.is("(substring-no-properties (pollux-mode-line))", " Pollux:Gemini 1 ±1")
	b.is(windows, "(3 a.go <proposal>)")
	b.mx("pollux-status")
	const report = `(if (get-buffer "*pollux*") (with-current-buffer "*pollux*" (buffer-string)) "")`
	for _, want := range []string{"on port " + itoa(b.port()), "Gemini CLI #1 0.61.0", "1 " + b.path("a.go") + " (Gemini CLI #1)", b.project, filepath.Base(b.file()), "pollux.log", "Last error   none"} {
		b.until(want, func() bool { return strings.Contains(b.eval(report), want) })
	}
	b.mx("pollux-log")
	b.until("the log", func() bool {
		return strings.Contains(b.eval(`(if (get-buffer "pollux.log") (with-current-buffer "pollux.log" (buffer-string)) "")`), "session opened")
	})
	b.mx("pollux-mode") // off
	b.is("(substring-no-properties (pollux-mode-line))", " Pollux:-")
	b.rejected(a, "a.go")
	b.is(buffers, "0")
	b.is(`(or (getenv "GEMINI_CLI_IDE_SERVER_PORT") "unset")`, "unset")
	b.until("the end of the companion", func() bool { return len(b.files()) == 0 })
	b.mx("pollux-status")
	b.until("a status that says so", func() bool { return strings.Contains(b.eval(report), "it does not run") })
}

// companionOf joins the control channel of the bench's companion.
func (b *bench) control() *control.Client {
	b.Helper()
	var client *control.Client
	b.until("the control channel", func() bool {
		_ = filepath.WalkDir(b.root, func(path string, d os.DirEntry, err error) error {
			if err == nil && client == nil && strings.HasSuffix(path, ".sock") {
				client, _ = control.Dial(b.Context(), path)
			}
			return nil
		})
		return client != nil
	})
	b.Cleanup(client.Close)
	return client
}

// EDITOR-PROTOCOL, pollux/ask: a question of several lines can be read, is
// answered by a digit, a button or not at all, and waits for who types.
func emacsQuestions(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n"})
	b.open("a.go")
	client := b.control()
	message := "The extension \"demo\" wants to run.\n\nIt may:\n  - read the workspace\n  - reach example.com\n\x1b[31mand nothing else"
	ask := func() chan *string {
		answer := make(chan *string, 1)
		go func() {
			choice, err := client.Ask(b.Context(), control.Question{Title: "Consent", Message: message, Choices: []string{"Allow once", "Allow always", "Deny"}})
			if err != nil {
				b.Errorf("ask: %v", err)
			}
			answer <- choice
		}()
		return answer
	}
	choice := func(answer chan *string) string {
		b.Helper()
		select {
		case c := <-answer:
			if c == nil {
				return "nothing"
			}
			return *c
		case <-time.After(patience):
			b.Fatal("no answer")
			return ""
		}
	}
	const question = `(if (get-buffer "*pollux question*") (with-current-buffer "*pollux question*" (buffer-string)) "")`
	for want, keys := range map[string][]string{
		"Allow once": {"1"}, "Allow always": {"Tab", "Tab", "Enter"}, "Deny": {"3"}, "nothing": {"q"},
	} {
		answer := ask()
		b.is("(buffer-name)", "*pollux question*")
		if got := b.eval(question); !strings.Contains(got, "- read the workspace") || !strings.Contains(got, "3  Deny") {
			t.Errorf("%q", got)
		}
		b.keys(keys...)
		if got := choice(answer); got != want {
			t.Errorf("%v: %q, want %q", keys, got, want)
		}
		b.is("(list (length (window-list)) (buffer-name))", "(1 a.go)")
	}
	answer := ask()
	b.is("(buffer-name)", "*pollux question*")
	b.keys("C-x", "k", "Enter") // killed
	if got := choice(answer); got != "nothing" {
		t.Errorf("%q", got)
	}
	b.keys("M-x") // somebody types
	b.is("(if (active-minibuffer-window) 1 0)", "1")
	answer = ask()
	b.says("a question waits: Consent")
	b.pause(1000)
	b.is("(if (active-minibuffer-window) 1 0)", "1")
	b.quit()
	b.is("(buffer-name)", "*pollux question*")
	b.text("2")
	if got := choice(answer); got != "Allow always" {
		t.Errorf("%q", got)
	}
	ctx, cancel := context.WithCancel(b.Context()) // answered elsewhere
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = client.Ask(ctx, control.Question{Title: "Consent", Message: "m", Choices: []string{"Yes"}})
	}()
	b.is("(buffer-name)", "*pollux question*")
	cancel()
	<-gone
	client.Close()
	b.is("(list (length (window-list)) (buffer-name) (length pollux--questions))", "(1 a.go 0)")
}

// M-x pollux-page: the diff that waits here is on the page too.
func emacsPage(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n"})
	b.browse()
	b.open("a.go")
	a := b.connect()
	b.offer(a, "a.go", "new\n")
	b.mx("pollux-page")
	b.acceptOn(b.page())
	b.accepted(a, "a.go", "new\n")
	b.is(windows, "(1 a.go)")
}

// M-x pollux-next and M-x pollux-review: the one on show waits meanwhile, with its edits.
func emacsNext(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n"}, "a")
	b.mx("pollux-next")
	b.says("No other diff waits")
	a.OpenDiff(b.path("a"), "new a\n")
	a.OpenDiff(b.path("b"), "new b\n")
	b.is(windows, "(3 a <proposal>)")
	b.text("edited ")
	b.is("(buffer-string)", "edited new a\n")
	b.mx("pollux-next")
	b.is(windows, "(3 b <proposal>)")
	b.mx("pollux-next")
	b.is("(list (buffer-name) (buffer-string))", "(a <proposal> edited new a\n)")
	b.keys("M-2") // by its number in M-x pollux-status
	b.mx("pollux-review")
	b.is(windows, "(3 b <proposal>)")
	b.keys("M-3")
	b.mx("pollux-review")
	b.says("There is no diff 3")
	b.keys("C-c", "C-k")
	b.rejected(a, "b")
	b.is(windows, "(3 a <proposal>)")
	b.keys("C-c", "C-c")
	b.accepted(a, "a", "edited new a\n")
	b.is(windows, "(1 a)")
}

// The manual is found where pollux install puts it, by name and in Info's
// list of manuals, and says what its source says.
func emacsManual(t *testing.T, f flavour) {
	b := newBench(t, bare(f, peers.Need(t, peers.Emacs)), map[string]string{"a": "a\n"})
	b.pollux("install", "emacs")
	b.open("a")
	const node = `(if (get-buffer "*info*") (with-current-buffer "*info*" (list Info-current-node (if (save-excursion (goto-char (point-min)) (search-forward "Gemini CLI knows what you look at" nil t)) 1 0))) "none")`
	b.keys("M-:")
	b.text(`(info "pollux")` + "\r")
	b.is(node, "(Top 0)")
	b.keys("C-x", "k", "Enter")
	b.is(node, "none")
	b.keys("C-h", "i")
	b.is(node, "(Top 1)")
	b.text("mpollux\r")
	b.is(node, "(Top 0)")

	makeinfo, err := exec.LookPath("makeinfo")
	if err != nil {
		if peers.Required() {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir := filepath.Join(repository(t), "plugins", "emacs")
	made := filepath.Join(t.TempDir(), "pollux.info")
	cmd := exec.Command(makeinfo, "--no-split", "-o", made, filepath.Join(dir, "pollux.texi"))
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// read leaves out which makeinfo it was, in the first line, and the table that counts it.
	read := func(file string) string {
		data, err := os.ReadFile(file)
		_, text, _ := strings.Cut(string(data), "\n")
		text, _, ok := strings.Cut(text, "\x1f\nTag Table")
		if err != nil || !ok {
			t.Errorf("%s: %v", file, err)
		}
		return text
	}
	if read(made) != read(filepath.Join(dir, "info", "pollux.info")) {
		t.Error("the manual is not what its source makes: cd plugins/emacs && LC_ALL=C.UTF-8 makeinfo --no-split -o info/pollux.info pollux.texi")
	}
}
