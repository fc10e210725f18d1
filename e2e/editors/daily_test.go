package editors

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/peers"
)

// TestPast: past proposals are looked at and taken back, and rules are changed, in the editor (SPEC F-11, F-12).
func TestPast(t *testing.T) {
	play(t, map[string]func(*testing.T, flavour){"history": pastProposal, "undone": undoneOnce, "rules": changedRule})
}

// chooses takes the first one of a list, once the screen shows it; Emacs shows its prompt alone.
func (b *bench) chooses(shown, prompt string) {
	b.Helper()
	if b.f.name == "emacs" {
		b.is(asking, "1")
		shown = prompt
	}
	b.tm.Wait(shown, patience)
	b.text(map[string]string{"neovim": "1\r", "vim": "\r", "emacs": "\r"}[b.f.name])
}

// pastProposal: both sides of a past proposal are named, also by the tab, and it is taken back from there.
func pastProposal(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "old\n"}, "a.go")
	b.offer(a, "a.go", "new\n")
	b.accept()
	b.accepted(a, "a.go", "new\n")
	b.write("a.go", "new\n")
	b.is(b.buffer("a.go"), "new")
	b.command("pollux.history")
	b.chooses("a.go  accepted", "Past proposal: ")
	if f.name == "emacs" {
		b.on("a.go <before, past>")
		b.on("a.go <accepted, past>")
		return
	}
	b.on(" a.go (before) ")
	b.until("the tab's name", func() bool {
		tabs, _, _ := strings.Cut(b.tm.Screen(), "\n")
		return strings.HasPrefix(tabs, " a.go  a.go (accepted) ")
	})
	b.is("getline(1)", "new")
	b.ex("Pollux undo")
	b.says("a.go has its earlier text again")
	b.step("the user closes it")
	b.ex("tabclose")
	b.calm("a.go")
	b.is("&tabline", "")
	b.is(b.buffer("a.go"), "old")
}

// undoneOnce: a change that was taken back is marked in the history, and is not taken back again.
func undoneOnce(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "old\n"}, "a.go")
	b.offer(a, "a.go", "new\n")
	b.accept()
	b.accepted(a, "a.go", "new\n")
	b.write("a.go", "new\n")
	b.is(b.buffer("a.go"), "new")
	b.undoPast("a.go")
	b.is(b.buffer("a.go"), "old")
	b.command("pollux.undo")
	b.says("there is nothing to undo")
	b.command("pollux.history")
	if f.name == "emacs" {
		b.is(asking, "1")
		b.keys("Tab") // the one that there is
		b.on("a.go  accepted, undone")
		return
	}
	b.on("a.go  accepted, undone")
}

// changedRule: a rule is one of a list, and so is what becomes of it.
func changedRule(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "old\n"}, "a.go")
	b.offer(a, "a.go", "new\n")
	b.acceptAllOfFile()
	b.accepted(a, "a.go", "new\n")
	b.write("a.go", "new\n")
	b.calm("a.go")
	b.command("pollux.rules")
	b.chooses("accept    ", "Rule: ")
	b.chooses(map[string]string{"neovim": "3: terminal", "vim": "terminal"}[f.name], "a.go: ")
	b.says("ask: " + b.path("a.go"))
	b.keys("Up") // Emacs counts how long it is idle from a key behind the question
	b.offer(a, "a.go", "newer\n")
	b.reject()
	b.rejected(a, "a.go")
}

// TestReminded: who is away from the editor is told by a command of their own that a proposal waits, and not what it is (SPEC F-11).
func TestReminded(t *testing.T) {
	play(t, map[string]func(*testing.T, flavour){"by a command": reminded, "by the editor's terminal": rung})
}

// rung: the terminal that the editor runs in rings once, and hears neither the file's name nor its text.
func rung(t *testing.T, f flavour) {
	for vte, want := range map[string]string{
		"":     "\a\x1b]9;pollux: something waits for your answer\x1b\\",
		"7200": "\a\x1b]777;notify;pollux;something waits for your answer\x1b\\",
	} {
		b := newBench(t, f, map[string]string{"a.go": "old\n"})
		b.env = append(b.env, "VTE_VERSION="+vte)
		b.write("../c/pollux/config.json", `{"keep": false, "notify": {"seconds": 2}}`)
		b.open("a.go")
		sent := b.tm.Record()
		a := b.connect()
		b.offer(a, "a.go", "new\n")
		b.until("the terminal's ring", func() bool { return strings.Contains(sent(), want) })
		b.accept()
		b.accepted(a, "a.go", "new\n")
		if all := told.FindAllString(sent(), -1); len(all) != 1 || "\a"+all[0] != want {
			t.Errorf("the terminal was told %q, want %q once", all, want)
		}
	}
}

// told finds the notifications that a terminal was sent.
var told = regexp.MustCompile(`\x1b\](?:9|777);[^\a\x1b]*(?:\a|\x1b\\)`)

func reminded(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "old\n"})
	b.script("tell", `echo "$POLLUX_WAITING $*" >> "$HOME/told"`+"\n")
	b.write("../c/pollux/config.json", `{"keep": false, "notify": {"seconds": 2, "command": ["`+b.root+`/bin/tell", "waits"]}}`)
	b.open("a.go")
	a := b.connect()
	b.offer(a, "a.go", "new\n")
	b.wrote("told", "1 waits\n")
	b.accept()
	b.accepted(a, "a.go", "new\n")
}

// standIn is a stand-in for an agent: it keeps by which name, with what arguments and in what colours it was started, and what is typed.
const standIn = `echo "${0##*/} $* $COLORTERM" >> "$HOME/started"; stty -icanon -echo; echo ready; cat >> "$HOME/typed"` + "\n"

// wrote waits until a stand-in has kept a text.
func (b *bench) wrote(file, want string) {
	b.Helper()
	var got []byte
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if got, _ = os.ReadFile(filepath.Join(b.root, file)); string(got) == want {
			return
		}
	}
	b.Fatalf("%s is %q, want %q", file, got, want)
}

// TestVimAgents and TestEmacsAgents: one terminal for each agent, with what was asked for, where the user wants it; and what is mentioned
// there (SPEC C-6).
func TestVimAgents(t *testing.T) {
	playOn(t, vis, map[string]func(*testing.T, flavour){"run": vimRuns, "mention": vimMentions})
}

func TestEmacsAgents(t *testing.T) {
	playOn(t, []func(*testing.T) flavour{emacs}, map[string]func(*testing.T, flavour){"menu": emacsMenu, "mention": emacsMentions})
}

// leavesTerminal leaves the agent's terminal for the window before it.
func (b *bench) leavesTerminal() {
	b.Helper()
	if b.f.name == "neovim" {
		b.keys("C-\\", "C-n")
		b.is("mode(1)", "nt")
		b.ex("wincmd p")
	} else {
		b.keys("C-w", "p")
	}
	b.is("mode() . &buftype", "n")
}

func vimRuns(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n"})
	b.script("gemini", standIn)
	b.script("qwen", standIn)
	b.open("a.go")
	b.setting("side", "'left'")
	b.setting("width", "30")
	b.ex("set termguicolors")
	const window = "&buftype . ' ' . winnr() . '/' . winnr('$') . ' ' . winwidth(0)"
	b.ex("Pollux run --resume")
	b.wrote("started", "gemini --resume truecolor\n")
	b.is(window, "terminal 1/2 30")
	b.leavesTerminal()
	b.step("another agent")
	b.ex("Pollux run qwen --continue")
	b.wrote("started", "gemini --resume truecolor\nqwen --continue truecolor\n")
	b.is(window, "terminal 1/2 30")
	b.leavesTerminal()
	b.step("the first one again")
	b.ex("Pollux run gemini")
	b.is(window+" . ' ' . getbufvar('%', 'pollux_cli')", "terminal 1/2 30 gemini")
	b.wrote("started", "gemini --resume truecolor\nqwen --continue truecolor\n")
}

// vimMentions: lines with words in one step, the file under the cursor in netrw, and a problem; Enter is never typed.
func vimMentions(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "one\ntwo\nthree\n", "z.go": "z\n"})
	b.script("gemini", standIn)
	b.open("a.go")
	b.ex("Pollux run")
	b.tm.Wait("ready", patience)
	b.leavesTerminal()
	b.text("2GVj:Pollux send why this?\r")
	want := "@a.go lines 2-3 why this? "
	b.wrote("typed", want)
	b.step("a problem")
	b.ex(map[string]string{
		"neovim": "lua vim.diagnostic.set(vim.api.nvim_create_namespace('t'), 0, {{lnum = 1, col = 0, message = 'two is wrong', severity = 1}})",
		"vim":    "call setqflist([{'bufnr': bufnr(), 'lnum': 2, 'text': 'two is wrong', 'type': 'E'}]) | doautocmd QuickFixCmdPost",
	}[f.name])
	if f.name == "vim" {
		b.is("len(pollux#diagnostics#of(bufnr('%')))", "1")
	}
	b.text("2G")
	b.ex("Pollux problem")
	want += "@a.go line 2 error: two is wrong "
	b.wrote("typed", want)
	b.step("a tree of files")
	b.ex("edit .")
	b.is("&filetype", "netrw")
	b.text("/z\\.go\r")
	b.ex("Pollux send")
	b.wrote("typed", want+"@z.go ")
}

// emacsMenu: the menu's keys run the commands; the terminal is hidden and shown, and not started twice.
func emacsMenu(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{".git/HEAD": "", "a.go": "a\n"})
	b.script("gemini", standIn)
	b.open("a.go")
	press := func(key string) {
		t.Helper()
		b.mx("pollux-menu")
		b.tm.Wait("show or hide", patience)
		b.text(key)
	}
	const shown = `(if (get-buffer-window "*gemini: p*") "shown" "hidden")`
	press("r")
	b.is(shown, "shown")
	b.tm.Wait("ready", patience)
	b.soon(`(select-window (get-buffer-window "a.go"))`)
	b.is("(buffer-name)", "a.go")
	press("t")
	b.is(shown, "hidden")
	press("t")
	b.is(shown, "shown")
	b.soon(`(select-window (get-buffer-window "a.go"))`)
	b.is("(buffer-name)", "a.go")
	press("f")
	b.is("(buffer-name)", "*gemini: p*")
	b.until("one start", func() bool {
		data, _ := os.ReadFile(filepath.Join(b.root, "started"))
		return strings.Count(string(data), "gemini") == 1
	})
}

// emacsMentions: lines with words in one step, and the file at point in dired.
func emacsMentions(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{".git/HEAD": "", "a.go": "one\ntwo\nthree\n", "z.go": "z\n"})
	b.script("gemini", standIn)
	b.open("a.go")
	b.mx("pollux-run")
	b.tm.Wait("ready", patience)
	b.soon(`(delete-other-windows) (switch-to-buffer "a.go")`)
	b.is("(buffer-name)", "a.go")
	b.keys("C-n", "C-@", "C-n", "C-n")
	b.is("(use-region-p)", "t")
	b.keys("C-u")
	b.mx("pollux-send")
	b.is(asking, "1")
	b.text("why this?\r")
	b.wrote("typed", "@a.go lines 2-3 why this? ")
	b.step("dired")
	b.soon(`(dired ".") (dired-goto-file (expand-file-name "z.go"))`)
	b.is("(dired-get-filename t t)", "z.go")
	b.mx("pollux-send")
	b.wrote("typed", "@a.go lines 2-3 why this? @z.go ")
}

// TestEmacsTrees: in treemacs and neotree, as Debian has them, it is the file at point that is mentioned.
func TestEmacsTrees(t *testing.T) {
	playOn(t, []func(*testing.T) flavour{emacs}, map[string]func(*testing.T, flavour){"treemacs": emacsTreemacs, "neotree": emacsNeotree})
}

func emacsTreemacs(t *testing.T, f flavour) {
	inTree(t, f, peers.Treemacs, `(require 'treemacs) (treemacs-add-and-display-current-project) (goto-char (point-min)) (search-forward "z.go")`, "treemacs-mode")
}

func emacsNeotree(t *testing.T, f flavour) {
	inTree(t, f, peers.Neotree, `(require 'neotree) (neotree-dir default-directory) (search-forward "z.go")`, "neotree-mode")
}

// inTree opens a tree of files with point at z.go, and mentions it.
func inTree(t *testing.T, f flavour, tree peers.Peer, open, mode string) {
	t.Helper()
	library := peers.Need(t, tree)
	b := newBench(t, f, map[string]string{".git/HEAD": "", "a.go": "a\n", "z.go": "z\n", "../.claude/settings.json": "{}"})
	b.open("a.go")
	c := b.claude()
	b.is("(length (plist-get pollux--status :sessions))", "1")
	b.soon(`(dolist (dir (file-expand-wildcards "` + filepath.Dir(filepath.Dir(library)) + `/*")) (add-to-list 'load-path dir t))
	  (switch-to-buffer "a.go") ` + open)
	b.is(`(list major-mode (if (string-match-p "z.go" (thing-at-point 'line)) 1 0))`, "("+mode+" 1)")
	b.mx("pollux-send")
	b.says("Claude Code #1: press Enter there")
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	heard, err := c.Mention(ctx)
	if err != nil || !strings.Contains(string(heard), `"filePath":"`+b.path("z.go")+`"`) {
		t.Errorf("the agent hears %s, %v", heard, err)
	}
}
