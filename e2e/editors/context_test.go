package editors

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/agent/claude"
)

// TestContext: what the CLI knows of its user (SPEC D-2 to D-4, D-7, C-1 to C-6).
func TestContext(t *testing.T) {
	play(t, map[string]func(*testing.T, flavour){
		"discovery": discovery, "files": visits, "no files": noFiles, "changed outside": outside, "folders": folders, "open": openPlace,
	})
}

const sample = "package a\n\n\thällo wörld 😀 x\nfourth line\nlast\n"

// D-2, D-3: the editor's own process and name, without any configuration; D-7: its terminals know their companion.
func discovery(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": sample})
	b.open("a.go")
	b.called(f.display)
	data, err := os.ReadFile(b.file())
	if err != nil || !strings.Contains(string(data), `"name":"`+f.name+`"`) || !strings.Contains(string(data), `"workspacePath":"`+b.project+`"`) {
		t.Errorf("%s, %v", data, err)
	}
	b.is(b.process(), itoa(b.pid()))
	b.is(b.variable("GEMINI_CLI_IDE_SERVER_PORT"), itoa(b.port()))
	b.is(b.variable("GEMINI_CLI_IDE_PID"), itoa(b.pid()))
	b.is(b.variable("GEMINI_CLI_IDE_WORKSPACE_PATH"), b.project)
	if token := b.eval(b.variable("GEMINI_CLI_IDE_AUTH_TOKEN")); len(token) <= 40 {
		t.Errorf("the token has %d letters", len(token))
	}
	b.is(b.output("echo $GEMINI_CLI_IDE_SERVER_PORT $GEMINI_CLI_IDE_PID"), itoa(b.port())+" "+itoa(b.pid()))
}

// C-1 … C-6: what is focused, exactly, and nothing stale.
func visits(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": sample, "b.txt": "b\n"}, "a.go")
	b.sees(a, "a.go 1:1")
	b.step("the user goes to a line's end")
	b.begin(3)
	b.sees(a, "a.go 3:18") // tab, 5 + 1 + 5 + 1 letters, the emoji is two units, a blank, a letter
	b.done()
	b.step("the user opens another file")
	b.visit("b.txt")
	b.sees(a, "b.txt 1:1")
	b.step("the user saves it as another file")
	b.saveAs("c.txt")
	b.sees(a, "c.txt 1:1")
	b.step("the user closes that")
	b.close()
	a.Context("a context without c.txt", func(files []agentFile) bool { return !strings.Contains(names(files), "c.txt") })
}

// C-6: what shows folders, repositories, help, messages, programs or other machines is no file of the user's.
func noFiles(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "sub/x": "x\n", ".git/COMMIT_EDITMSG": "m\n"}, "a")
	b.sees(a, "a 1:1")
	for _, leave := range b.noFiles() {
		b.step("the user is in %s", leave.name)
		leave.do()
		b.sees(a, "none")
		b.back("a")
		b.sees(a, "a 1:1")
		for _, file := range a.Context("a", func([]agentFile) bool { return true }) {
			if file.Path != b.path("a") {
				b.Errorf("%s", file.Path)
			}
		}
	}
}

// C-2: files that others remove or rename are open no more.
func outside(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n"}, "a")
	only := func(names ...string) {
		t.Helper()
		a.Context("the files "+strings.Join(names, " "), func(files []agentFile) bool {
			open := map[string]bool{}
			for _, file := range files {
				open[file.Path] = true
			}
			for _, name := range names {
				delete(open, b.path(name))
			}
			return len(files) == len(names) && len(open) == 0
		})
	}
	for _, name := range []string{"b", "c", "a"} {
		b.visit(name)
		b.calm(name)
	}
	only("a", "b", "c")
	b.step("a file is removed")
	if err := os.Remove(b.path("b")); err != nil {
		t.Fatal(err)
	}
	only("a", "c")
	b.step("a file is renamed")
	if err := os.Rename(b.path("c"), b.path("d")); err != nil {
		t.Fatal(err)
	}
	only("a")
	b.step("the removed file comes back")
	b.write("b", "b again\n")
	b.is(b.buffer("b"), "b again")
	b.visit("b")
	b.sees(a, "b 1:1")
	b.step("the active file is removed")
	if err := os.Remove(b.path("b")); err != nil {
		t.Fatal(err)
	}
	b.sees(a, "none")
	only("a")
}

// D-4: a project that comes later.
func folders(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "../q/.git/config": "", "../q/sub/x": "x\n"})
	b.open("a")
	b.visit("../q/sub/x")
	b.is(b.variable("GEMINI_CLI_IDE_WORKSPACE_PATH"), b.project+":"+b.root+"/q")
	b.sees(b.connect(), "x 1:1")
}

// EDITOR-PROTOCOL, pollux/openDocument: pollux open shows the place, counted in UTF-16.
func openPlace(t *testing.T, f flavour) {
	const name = "dir/ü x%.txt"
	b, a := user(t, f, map[string]string{"a": "a\n", name: "one\nzwei 😀é here", "../.claude/settings.json": "{}"}, "a")
	for place, stands := range map[string]string{":2:10": "2:10", ":1:3": "1:3", ":2:1": "2:1", ":2:8": "2:8"} {
		b.step("pollux open %s", place)
		b.pollux("open", name+place)
		b.sees(a, "ü x%.txt "+stands)
		b.is(b.under(), map[string]string{":2:10": "h", ":1:3": "e", ":2:1": "z", ":2:8": "é"}[place])
	}
	b.step("pollux open, behind the end")
	b.pollux("open", name+":9:99")
	b.is(b.cursor(), "2 zwei 😀é here")
	saves(b, a)
}

// EDITOR-PROTOCOL, pollux/saveDocument: an agent has the user's changes saved, but never over what others have written (SPEC CC-17).
func saves(b *bench, a *agent.Agent) {
	b.Helper()
	c := b.claude()
	save := func(name string) string {
		b.Helper()
		data, err := c.Call(b.Context(), "tools/call", map[string]any{"name": "saveDocument", "arguments": map[string]string{"filePath": b.path(name)}})
		if err != nil {
			b.Fatal(err)
		}
		return string(data)
	}
	b.step("a file that is not open")
	if got := save("closed"); !strings.Contains(got, "not open") {
		b.Errorf("%s", got)
	}
	b.step("nothing to save")
	b.pollux("open", "a")
	b.sees(a, "a 1:1")
	if got := save("a"); !strings.Contains(got, `\"saved\":true`) {
		b.Errorf("%s", got)
	}
	b.step("unsaved changes")
	b.types(1, " more")
	b.is(b.modified("a"), "1")
	if got := save("a"); !strings.Contains(got, `\"saved\":true`) {
		b.Errorf("%s", got)
	}
	b.is(b.modified("a"), "0")
	if data, _ := os.ReadFile(b.path("a")); string(data) != "a more\n" {
		b.Errorf("the file holds %q", data)
	}
	b.step("others have written it")
	b.types(1, " mine")
	b.is(b.modified("a"), "1")
	b.write("a", "the text of others\n")
	if got := save("a"); !strings.Contains(got, `\"saved\":false`) || !strings.Contains(got, "changed on disk") {
		b.Errorf("%s", got)
	}
	b.is(b.buffer("a"), "a more mine")
	b.is(b.modified("a"), "1")
	if data, _ := os.ReadFile(b.path("a")); string(data) != "the text of others\n" {
		b.Errorf("the file holds %q", data)
	}
	b.step("others have removed it")
	if err := os.Remove(b.path("a")); err != nil {
		b.Fatal(err)
	}
	if got := save("a"); strings.Contains(got, `\"saved\":true`) {
		b.Errorf("%s", got)
	}
	b.is(b.buffer("a"), "a more mine")
	if _, err := os.Stat(b.path("a")); err == nil {
		b.Errorf("the file is there again")
	}
}

// claude is a session as Claude Code opens it, found by the companion's lock.
func (b *bench) claude() *claude.Conn {
	b.Helper()
	var lock struct{ AuthToken string }
	b.until("Claude Code's lock", func() bool {
		data, err := os.ReadFile(filepath.Join(b.root, ".claude", "ide", itoa(b.port())+".lock"))
		return err == nil && json.Unmarshal(data, &lock) == nil
	})
	c, err := claude.Dial(b.Context(), b.port(), lock.AuthToken, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return c
}

// TestChosen: where several agents are connected the user chooses which one a mention is for, and no other hears of it (SPEC C-6).
func TestChosen(t *testing.T) {
	play(t, map[string]func(*testing.T, flavour){"session": chosenSession})
}

func chosenSession(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n", "b.go": "b\n", "../.claude/settings.json": "{}"})
	b.open("a.go")
	sessions := map[string]*claude.Conn{"Claude Code #1": b.claude(), "Claude Code #2": b.claude()}
	b.is(map[string]string{
		"neovim": `luaeval('#require("pollux").state().sessions')`, "vim": "len(pollux#state().sessions)", "emacs": "(length (plist-get pollux--status :sessions))",
	}[f.name], "2")
	mention := func(file, session string) {
		b.Helper()
		b.step("%s to %s", file, session)
		b.command("pollux.send")
		b.picks(session)
		ctx, cancel := context.WithTimeout(b.Context(), patience)
		defer cancel()
		heard, err := sessions[session].Mention(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if !strings.Contains(string(heard), `"filePath":"`+b.path(file)+`"`) {
			b.Errorf("it hears %s", heard)
		}
		b.says(session + ": press Enter there (by its protocol)")
	}
	mention("a.go", "Claude Code #2")
	b.visit("b.go")
	b.calm("b.go")
	mention("b.go", "Claude Code #1") // the first that it hears of
	b.visit("a.go")
	b.calm("a.go")
	mention("a.go", "Claude Code #2")
}

// picks chooses a session, by its number in the list that is on the screen.
func (b *bench) picks(session string) {
	b.Helper()
	n := session[len(session)-1:]
	switch b.f.name {
	case "neovim":
		b.on(n + ": " + session)
		b.text(n + "\r")
	case "vim":
		b.on(session)
		if n == "2" {
			b.keys("Down")
		}
		b.text("\r")
	default:
		b.is(asking, "1")
		b.text(session + "\r")
	}
}
