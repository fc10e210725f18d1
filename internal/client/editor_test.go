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
	treeSSH = `
1 0 /sbin/init
300 1 sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups
430 300 sshd: me [priv]
431 430 sshd: me@pts/0
432 431 zsh
433 432 /home/me/.nvm/versions/node/v22/bin/node --no-warnings=DEP0040 /home/me/.nvm/versions/node/v22/bin/gemini`
	treeScript = `
1 0 /usr/lib/systemd/systemd --switched-root --system
60 1 /usr/lib/systemd/systemd --user
70 60 kitty
80 70 -fish
85 80 make ask
86 85 /usr/bin/make -C sub ask
88 86 node /usr/local/bin/gemini -p x`
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
	treeWindowsTerminal = `
0 0 System Idle Process
3904 3812 C:\Windows\Explorer.EXE
4200 3904 "C:\Program Files\WindowsApps\WindowsTerminal.exe"
4300 4200 "C:\Program Files\PowerShell\7\pwsh.exe"
5120 4300 "C:\Program Files\nodejs\node.exe" gemini`
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

// A climb is a search for the editor's process in a recorded tree.
type climb struct {
	tree          string
	from, windows int
	env           string // GEMINI_CLI_IDE_PID
	want          int
}

func climbs() map[string]climb {
	return map[string]climb{
		"shell in tmux":           {treeTmux, 960, 0, "", 701},
		"tmux, started by bash":   {treeTmux, 900, 0, "", 700},
		"VS Code":                 {treeVSCode, 200, 0, "", 100},
		"terminal in Neovim":      {treeNeovim, 340, 0, "", 320},
		"login shell is no shell": {treeLogin, 70, 0, "", 50},
		"ssh":                     {treeSSH, 433, 0, "", 430},
		"script in a pipe":        {treeScript, 88, 0, "", 60},
		"first process":           {treeContainer, 1, 0, "", 1},
		"shell is first":          {treeShellIsFirst, 8, 0, "", 8},
		"shell under the first":   {treeShellUnderFirst, 8, 0, "", 1},
		"the variable":            {treeVSCode, 200, 0, "4711", 4711},
		"the variable is odd":     {treeVSCode, 200, 0, "-4", 100},
		"the variable is of one":  {treeVSCode, 200, 0, "120abc", 120},
		"unknown process":         {treeVSCode, 5, 0, "", 5},
		"Windows":                 {treeWindows, 730, 1, "", 700},
		"Windows Terminal":        {treeWindowsTerminal, 5120, 1, "", 4300},
		"Windows, two above":      {treeWindowsTerminal, 4200, 1, "", 3904},
		"Windows, orphan":         {treeWindowsOrphan, 730, 1, "", 720},
		"Windows, nothing known":  {treeWindows, 5, 1, "", 5},
		"Windows, the variable":   {treeWindows, 730, 1, "600", 600},
	}
}

// SPEC D-2: which process of a tree the CLI takes for its editor's. TestAsTheRealCLI asks the published code the same.
func TestFindEditor(t *testing.T) {
	for name, test := range climbs() {
		windows := test.windows == 1
		got := findEditor(test.world(t))
		if got.PID != test.want {
			t.Errorf("%s: %d, want %d: %+v", name, got.PID, test.want, got.Steps)
		}
		if len(got.Steps) == 0 || got.Steps[len(got.Steps)-1].Note == "" && !windows {
			t.Errorf("%s: nothing told: %+v", name, got.Steps)
		}
	}
}

func (c climb) world(t *testing.T) *World {
	t.Helper()
	windows := c.windows == 1
	return &World{PID: c.from, Process: tree(t, c.tree), Windows: &windows, Dir: "/", Environ: []string{"GEMINI_CLI_IDE_PID=" + c.env}}
}

// A tree that goes round in a circle, and one that is deep, end.
func TestFindEditorEnds(t *testing.T) {
	for _, windows := range []bool{false, true} {
		circle := func(pid int) (Process, bool) { return Process{Parent: pid%5 + 2, Command: "x"}, true }
		got := findEditor(&World{PID: 3, Process: circle, Windows: &windows, Environ: []string{}, Dir: "/"})
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
