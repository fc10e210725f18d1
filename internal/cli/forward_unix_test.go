//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/agent/claude"
)

// A claudeCode is a session of Claude Code, by a process of its own.
type claudeCode struct {
	t     *testing.T
	conn  *websocket.Conn
	heard chan map[string]any
}

// claudeAt connects to a port with the token of the lock there.
func (w *world) claudeAt(transport *http.Transport, port int, token string) claudeCode {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, fmt.Sprintf("ws://127.0.0.1:%d/", port), &websocket.DialOptions{
		HTTPHeader: http.Header{claude.TokenHeader: {token}}, Subprotocols: []string{"mcp"}, HTTPClient: &http.Client{Transport: transport},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.CloseNow() })
	c := claudeCode{w.t, conn, make(chan map[string]any, 256)}
	c.send("initialize", 1, map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "claude-code", "version": "1"}})
	c.send("notifications/initialized", 0, map[string]any{})
	go func() {
		defer close(c.heard)
		for {
			_, data, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			var m map[string]any
			_ = json.Unmarshal(data, &m)
			c.heard <- m
		}
	}()
	return c
}

// send sends a request, or with the number 0 a notification.
func (c claudeCode) send(method string, id int, params any) {
	c.t.Helper()
	m := map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
	if id != 0 {
		m["id"] = id
	}
	data, _ := json.Marshal(m)
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	if err := c.conn.Write(ctx, websocket.MessageText, data); err != nil {
		c.t.Fatal(err)
	}
}

// hears waits for a message.
func (c claudeCode) hears(what string, fits func(map[string]any) bool) map[string]any {
	c.t.Helper()
	for late := time.After(patience); ; {
		select {
		case m, ok := <-c.heard:
			if !ok {
				c.t.Fatalf("the socket ended before %s", what)
			}
			if fits(m) {
				return m
			}
		case <-late:
			c.t.Fatalf("Claude Code does not hear %s", what)
		}
	}
}

// looksAt waits until the session is told a file.
func (c claudeCode) looksAt(path string) {
	c.t.Helper()
	c.hears("of "+path, func(m map[string]any) bool {
		p, _ := m["params"].(map[string]any)
		return m["method"] == "selection_changed" && p["filePath"] == path
	})
}

// openDiff proposes a text.
func (c claudeCode) openDiff(id int, path, text string) {
	c.t.Helper()
	c.send("tools/call", id, map[string]any{"name": "openDiff", "arguments": map[string]any{
		"old_file_path": path, "new_file_path": path, "new_file_contents": text, "tab_name": fmt.Sprint(id),
	}})
}

// answered waits for the answer to a proposal, and returns its texts.
func (c claudeCode) answered(id int) string {
	c.t.Helper()
	m := c.hears("an answer", func(m map[string]any) bool { return m["id"] == float64(id) })
	data, _ := json.Marshal(m["result"])
	return string(data)
}

// lock returns the only lock of Claude Code's.
func (w *world) lock() (port int, token string) {
	w.t.Helper()
	var found []string
	eventually(w.t, "one lock", func() bool {
		found, _ = filepath.Glob(filepath.Join(w.root, ".claude", "ide", "*.lock"))
		return len(found) == 1
	})
	data, err := os.ReadFile(found[0])
	var l struct{ AuthToken string }
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	_, _ = fmt.Sscanf(filepath.Base(found[0]), "%d.lock", &port)
	return port, l.AuthToken
}

// A kept is a folder whose keeper holds sessions, while another editor stays.
type kept struct {
	w                         *world
	below, open, mine, theirs string // a folder, and files
	stays                     *plugin
	port                      int
	token                     string
	transport                 *http.Transport
	gemini                    *agent.Agent // with a proposal for open
}

func newKept(t *testing.T) kept {
	t.Helper()
	w := newKeptWorld(t)
	k := kept{w: w, below: filepath.Join(w.project, "below"), open: filepath.Join(w.project, "open"), mine: filepath.Join(w.project, "mine")}
	k.theirs = filepath.Join(k.below, "theirs")
	for _, dir := range []string{k.below, filepath.Join(w.root, ".claude")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{k.mine, k.theirs} {
		if err := os.WriteFile(path, []byte("old\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := w.newIDE("neovim")
	k.port, k.token = w.lock()
	k.gemini = agent.Start(t, first.file)
	k.gemini.OpenDiff(k.open, "open\n")
	first.shows(k.open, "open\n")
	k.transport = agent.Apart(t, k.port)
	w.claudeAt(k.transport, k.port, k.token)
	k.stays = w.newIDEIn("emacs", k.below)
	first.leave(nil)
	w.keeper(1)
	return k
}

// claude connects as Claude Code does when it comes back.
func (k *kept) claude() claudeCode { return k.w.claudeAt(k.transport, k.port, k.token) }

// looks makes the user of an editor look at a file.
func (e *plugin) looks(path string) {
	e.peer.Notify("pollux/didChangeContext", map[string]any{"textDocument": map[string]any{"uri": "file://" + path}, "openDocuments": []string{"file://" + path}})
}

// SPEC L-4, CC-4: the elected editor ends, and another one stays below the same folder. The sessions that the keeper holds are told what the
// remaining editor shows, and their proposals are shown there, with its decisions and edits. So it is with an editor that comes later.
func TestKeeperSpeaksForTheEditorThatStaysL4(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	w, below, open, mine, theirs, second, gemini := k.w, k.below, k.open, k.mine, k.theirs, k.stays, k.gemini

	resolve := func(e *plugin, id any, outcome, content string) {
		t.Helper()
		params := map[string]any{"diffId": id, "version": 0, "baseVersion": 0, "outcome": outcome}
		if content != "" {
			params["content"] = content
		}
		var answer struct{ Settled bool }
		if err := e.peer.Call(t.Context(), "pollux/resolveDiff", params, &answer); err != nil || !answer.Settled {
			t.Errorf("%s: %+v, %v", outcome, answer, err)
		}
	}
	id := second.shows(open, "open\n") // it was open when the first editor ended
	cli := k.claude()
	second.looks(theirs)
	cli.looksAt(theirs)
	gemini.Context("the file of the editor that stays", func(files []agent.File) bool { return len(files) == 1 && files[0].Path == theirs })
	resolve(second, id, "accepted", "")
	if o := gemini.Outcome(); o.Method != "ide/diffAccepted" || o.FilePath != open || o.Content != "open\n" {
		t.Errorf("Gemini CLI hears %+v", o)
	}

	cli.openDiff(2, mine, "new\n")
	id = second.shows(mine, "new\n")
	resolve(second, id, "accepted", "edited\n")
	if got := cli.answered(2); !strings.Contains(got, "FILE_SAVED") || !strings.Contains(got, `edited\n`) {
		t.Errorf("Claude Code is answered %s", got)
	}
	if err := os.WriteFile(mine, []byte("edited\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cli.openDiff(3, mine, "worse\n")
	resolve(second, second.shows(mine, "worse\n"), "rejected", "")
	if got := cli.answered(3); !strings.Contains(got, "DIFF_REJECTED") {
		t.Errorf("Claude Code is answered %s", got)
	}
	gemini.OpenDiff(open, "again\n")
	id = second.shows(open, "again\n")
	gemini.CloseDiff(open) // answered in its terminal
	for taken := any(nil); taken != id; {
		select {
		case p := <-second.taken:
			taken = p["diffId"]
		case <-time.After(patience):
			t.Fatal("the view stays open")
		}
	}

	cli.openDiff(4, mine, "held\n")
	second.shows(mine, "held\n")
	second.leave(nil) // it has decided nothing
	third := w.newIDEIn("vim", below)
	third.looks(theirs)
	resolve(third, third.shows(mine, "held\n"), "accepted", "")
	if got := cli.answered(4); !strings.Contains(got, "FILE_SAVED") {
		t.Errorf("Claude Code is answered %s", got)
	}
}

// SPEC L-4: what the user of the editor that stays has made of a kept session's proposal reaches its agent, and the history, also when the
// question is answered in the agent's terminal. Files that the agent has opened and saved are that editor's, and a mention from there
// reaches a kept session.
func TestKeptSessionsHaveTheEditorThatStaysL4(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	e := k.stays
	e.shows(k.open, "open\n")
	e.typed.Store("open, edited\n")
	if got := k.gemini.CloseDiff(k.open); !strings.Contains(got, "open, edited") { // answered in its terminal
		t.Errorf("Gemini CLI is answered %s", got)
	}
	execute := func(command string, argument, out any) error {
		return e.peer.Call(t.Context(), "workspace/executeCommand", map[string]any{"command": command, "arguments": []any{argument}}, out)
	}
	history := func(text string) bool {
		var past struct{ Entries []struct{ ID string } }
		_ = execute("pollux.history", map[string]any{}, &past)
		for _, p := range past.Entries {
			var texts struct{ FinalText string }
			if execute("pollux.history", map[string]any{"id": p.ID}, &texts) == nil && texts.FinalText == text {
				return true
			}
		}
		return false
	}
	eventually(t, "the edit is in the history", func() bool { return history("open, edited\n") })

	cli := k.claude()
	e.looks(k.theirs)
	cli.looksAt(k.theirs)
	for id, tool := range map[int]string{2: "openFile", 3: "saveDocument"} {
		cli.send("tools/call", id, map[string]any{"name": tool, "arguments": map[string]any{"filePath": k.theirs}})
		if got := cli.answered(id); strings.Contains(got, "isError") || strings.Contains(got, `false`) {
			t.Errorf("%s: %s", tool, got)
		}
		select {
		case got := <-e.asked:
			if !strings.HasSuffix(got, "file://"+k.theirs) {
				t.Errorf("%s: the editor hears %s", tool, got)
			}
		case <-time.After(patience):
			t.Errorf("%s: the editor hears nothing", tool)
		}
	}

	type session struct {
		Name string
		ID   int
	}
	var claudes []session
	eventually(t, "the kept sessions are listed", func() bool {
		e.looks(k.mine)
		e.looks(k.theirs)
		var status struct{ Sessions []session }
		if err := execute("pollux.status", map[string]any{}, &status); err != nil {
			t.Fatal(err)
		}
		claudes = nil
		for _, s := range status.Sessions {
			if strings.HasPrefix(s.Name, "Claude Code #") && strings.Contains(s.Name, " (kept by process ") {
				claudes = append(claudes, s)
			}
		}
		return len(status.Sessions) >= 2 && len(claudes) > 0
	})
	var done struct{ By string }
	newest := claudes[len(claudes)-1]
	if err := execute("pollux.mention", map[string]any{"uri": "file://" + k.theirs, "first": 1, "last": 1, "session": newest.ID}, &done); err != nil || done.By != "protocol" {
		t.Errorf("%s: %+v, %v", newest.Name, done, err)
	}
	cli.hears("a mention", func(m map[string]any) bool {
		p, _ := m["params"].(map[string]any)
		return m["method"] == "at_mentioned" && p["filePath"] == k.theirs
	})
}

// An agent that asks by pollux mcp is in the editor's list of sessions, for its status line too, and leaves it with its process.
func TestMCPIsListedInTheEditor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.newIDE("neovim")
	status := func() string {
		var got struct {
			Sessions []struct{ Name string }
			Agents   string
		}
		if err := e.peer.Call(t.Context(), "workspace/executeCommand", map[string]any{"command": "pollux.status"}, &got); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(got.Sessions, got.Agents)
	}
	c := w.mcpApart("--ide")
	eventually(t, "it is listed", func() bool { return status() == "[{t by pollux mcp}]MCP 1" })
	c.in.Close()
	eventually(t, "it has left", func() bool { return status() == "[]" })
}
