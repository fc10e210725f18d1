package client

import (
	"fmt"
	"strings"
	"testing"
)

// Trees as they were recorded: a line is PID, parent, command.
const (
	treeTmux = `
1 0 /sbin/init
700 1 tmux: server
701 700 -bash
900 701 bash
950 900 /bin/sh -c gemini
951 950 node /usr/bin/gemini
960 951 /usr/bin/node --max-old-space-size=8000 /usr/bin/gemini`
	treeVSCode = `
1 0 /sbin/init
100 1 /usr/share/code/code
120 100 /usr/share/code/code --type=utility --utility-sub-type=node.mojom.NodeService
150 120 /usr/bin/zsh -i
200 150 node /usr/bin/gemini`
	treeNeovim = `
1 0 systemd
300 1 /usr/bin/gnome-terminal-server
310 300 bash
320 310 nvim main.go
321 320 nvim --embed main.go
330 321 /bin/zsh
340 330 node gemini`
	treeLogin = `
1 0 /sbin/launchd
50 1 /Applications/Utilities/Terminal.app/Contents/MacOS/Terminal
60 50 login -pf me
61 60 -zsh
70 61 node /opt/homebrew/bin/gemini`
	treeContainer = `
1 0 node /usr/bin/gemini`
	treeShellIsFirst = `
1 0 /bin/bash
8 1 node /usr/bin/gemini`
	treeShellUnderFirst = `
1 0 /sbin/docker-init
7 1 /bin/fish
8 7 node gemini`
	treeWindows = `
4 0 System
600 4 explorer.exe
700 600 Code.exe
710 700 Code.exe
720 710 powershell.exe
730 720 node.exe`
	treeWindowsOrphan = `
720 9999 powershell.exe
730 720 node.exe`
)

func tree(t *testing.T, text string) func(int) (Process, bool) {
	t.Helper()
	all := map[int]Process{}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		var pid, parent int
		if _, err := fmt.Sscan(line, &pid, &parent); err != nil {
			t.Fatal(line, err)
		}
		words := strings.SplitN(strings.TrimSpace(line), " ", 3)
		all[pid] = Process{parent, words[2]}
	}
	return func(pid int) (Process, bool) { p, ok := all[pid]; return p, ok }
}

// SPEC D-2: which process of a tree the CLI takes for its editor's.
func TestFindEditor(t *testing.T) {
	for name, test := range map[string]struct {
		tree          string
		from, windows int
		env           string
		want          int
	}{
		"shell in tmux":           {treeTmux, 960, 0, "", 701},
		"tmux, started by bash":   {treeTmux, 900, 0, "", 700},
		"VS Code":                 {treeVSCode, 200, 0, "", 100},
		"terminal in Neovim":      {treeNeovim, 340, 0, "", 320},
		"login shell is no shell": {treeLogin, 70, 0, "", 50},
		"first process":           {treeContainer, 1, 0, "", 1},
		"shell is first":          {treeShellIsFirst, 8, 0, "", 8},
		"shell under the first":   {treeShellUnderFirst, 8, 0, "", 1},
		"the variable":            {treeVSCode, 200, 0, "4711", 4711},
		"the variable is odd":     {treeVSCode, 200, 0, "-4", 100},
		"unknown process":         {treeVSCode, 5, 0, "", 5},
		"Windows":                 {treeWindows, 730, 1, "", 700},
		"Windows, orphan":         {treeWindowsOrphan, 730, 1, "", 720},
		"Windows, nothing known":  {treeWindows, 5, 1, "", 5},
		"Windows, the variable":   {treeWindows, 730, 1, "600", 600},
	} {
		windows := test.windows == 1
		w := &World{PID: test.from, Process: tree(t, test.tree), Windows: &windows, Dir: "/", Environ: []string{"GEMINI_CLI_IDE_PID=" + test.env}}
		got := FindEditor(w)
		if got.PID != test.want {
			t.Errorf("%s: %d, want %d: %+v", name, got.PID, test.want, got.Steps)
		}
		if len(got.Steps) == 0 || got.Steps[len(got.Steps)-1].Note == "" && !windows {
			t.Errorf("%s: nothing told: %+v", name, got.Steps)
		}
	}
}

// A tree that goes round in a circle, and one that is deep, end.
func TestFindEditorEnds(t *testing.T) {
	for _, windows := range []bool{false, true} {
		circle := func(pid int) (Process, bool) { return Process{Parent: pid%5 + 2, Command: "x"}, true }
		got := FindEditor(&World{PID: 3, Process: circle, Windows: &windows, Environ: []string{}, Dir: "/"})
		if len(got.Steps) > maxClimb+1 {
			t.Errorf("%d steps", len(got.Steps))
		}
	}
}

func FuzzParseMessage(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	f.Add([]byte(contextOf(`{"path":"/a","timestamp":1}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseMessage(data)
		if err == nil && m.kind == isNotification && m.method == "" && !strings.Contains(string(data), `""`) {
			t.Errorf("%q has no method", data)
		}
		_, _ = ParseContext(data)
		_, _, _ = parseOutcome("ide/diffAccepted", data)
		_, _ = parseResult(data)
		_, _ = parseTools(data)
		_, _ = parseInitialize(data)
		_, _ = parseConfig(data)
		_ = editedContent(string(data))
	})
}
