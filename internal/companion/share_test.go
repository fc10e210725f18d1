package companion

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/pollux-companion/pollux/internal/agent/claude"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
	"github.com/pollux-companion/pollux/internal/paths"
)

// looker is a session of Claude Code or opencode that hears what the user looks at.
type looker struct {
	t    *testing.T
	conn *websocket.Conn
}

func look(t *testing.T, c *Companion, name string) looker {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, fmt.Sprintf("ws://127.0.0.1:%d/", c.Info().Port), &websocket.DialOptions{
		HTTPHeader: http.Header{claude.TokenHeader: {c.record.DoorOf("claude").Token}}, Subprotocols: []string{"mcp"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"` + name + `","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		if err := conn.Write(ctx, websocket.MessageText, []byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	return looker{t, conn}
}

// says answers the question for its folders.
func (l looker) says(folder string) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), within)
	defer cancel()
	for {
		_, data, err := l.conn.Read(ctx)
		if err != nil {
			l.t.Fatalf("it is not asked for its folders: %v", err)
		}
		if strings.Contains(string(data), `"method":"roots/list"`) {
			break
		}
	}
	answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":"roots","result":{"roots":[{"uri":%q}]}}`, paths.URI(folder))
	if err := l.conn.Write(ctx, websocket.MessageText, []byte(answer)); err != nil {
		l.t.Fatal(err)
	}
}

// hears waits until the file that is told last is want; "" for none.
func (l looker) hears(want string) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), within)
	defer cancel()
	for last := "nothing yet"; last != want; {
		_, data, err := l.conn.Read(ctx)
		if err != nil {
			l.t.Fatalf("it heard %q last, and not %q: %v", last, want, err)
		}
		var m struct {
			Method string
			Params struct{ FilePath string }
		}
		if json.Unmarshal(data, &m) == nil && m.Method == "selection_changed" {
			last = m.Params.FilePath
		}
	}
}

// answers returns the text of a tool's answer.
func (l looker) answers(tool string) string {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), within)
	defer cancel()
	if err := l.conn.Write(ctx, websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"`+tool+`","arguments":{}}}`)); err != nil {
		l.t.Fatal(err)
	}
	for {
		_, data, err := l.conn.Read(ctx)
		if err != nil {
			l.t.Fatal(err)
		}
		if strings.Contains(string(data), `"id":7`) {
			return string(data)
		}
	}
}

// sharing starts a companion whose user looks at a file.
func sharing(t *testing.T, share map[string]string) (c *Companion, o Options, file string) {
	t.Helper()
	o, a, _ := options(t)
	o.Settings.Share = share
	return sharingAgain(t, o), o, filepath.Join(a, "f")
}

func sharingAgain(t *testing.T, o Options) *Companion {
	t.Helper()
	file := filepath.Join(o.Roots[0], "f")
	if err := os.WriteFile(file, []byte("secret words"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, o)
	c.store.Report("test", state.Report{Active: file, Open: []string{file}, Selections: []state.Selection{{End: state.Position{Character: 6}, Text: "secret"}}})
	c.store.SetDiagnostics(file, []state.Diagnostic{{Message: "a secret problem"}})
	return c
}

// SPEC C-8: an agent that must not be told hears no file, by context or by any tool; the others hear it. Claude Code and opencode
// come by one lock, and are still two agents.
func TestShareNeverC8(t *testing.T) {
	c, _, file := sharing(t, map[string]string{"claude": "never"})
	one := look(t, c, "claude-code")
	one.hears("")
	other := look(t, c, "opencode")
	other.hears(file)
	for _, tool := range []string{"getCurrentSelection", "getLatestSelection", "getOpenEditors", "getDiagnostics"} {
		if got := one.answers(tool); strings.Contains(got, "secret") || strings.Contains(got, file) {
			t.Errorf("%s says %s", tool, got)
		}
	}
	if got := other.answers("getOpenEditors"); !strings.Contains(got, filepath.Base(file)) {
		t.Errorf("the other agent is told %s", got)
	}
	if got := c.Sharing(); !strings.Contains(got.Sentence, "opencode #2: told your open files") || !strings.Contains(got.Sentence, "Claude Code #1 (as you decided") || got.Untold != "Claude" || got.Agents != "Claude 1, Opencode 1" {
		t.Errorf("%+v", got)
	}
	for _, change := range []struct{ mode, want string }{{"never", ""}, {"always", file}} { // at once, and in both directions
		if err := (backend{c}).SetShare(claude.OpenCode, change.mode); err != nil {
			t.Fatal(err)
		}
		other.hears(change.want)
	}
}

// What a person has decided holds for the folder and those below it, over a restart, and before the settings. Of two roots the
// stricter counts. A file that cannot be used shares nothing.
func TestShareIsKeptC8(t *testing.T) {
	c, o, _ := sharing(t, map[string]string{"*": "ask", "codex": "always"})
	modes := func(c *Companion) map[string]string {
		all := map[string]string{}
		for _, s := range (backend{c}).Status().Shares {
			all[s.Agent] = s.Mode
		}
		return all
	}
	want := map[string]string{"gemini": "ask", "claude": "ask", "qwen": "ask", "copilot": "ask", "opencode": "ask", "codex": "always"}
	is := func(what string, c *Companion) {
		t.Helper()
		if got := modes(c); !maps.Equal(got, want) {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	is("by the settings", c)
	for agent, mode := range map[string]string{"claude": "always", "codex": "never"} {
		if err := (backend{c}).SetShare(agent, mode); err != nil {
			t.Fatal(err)
		}
		want[agent] = mode
	}
	is("decided", c)
	below := filepath.Join(o.Roots[0], "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	again := func(roots ...string) *Companion {
		t.Helper()
		c.Stop(t.Context())
		o := o
		o.Roots = roots
		c = start(t, o)
		return c
	}
	is("after a restart", again(o.Roots[0]))
	is("below", again(below))
	want["claude"] = "ask" // as the other root has it
	is("of two roots", again(o.Roots[0], filepath.Join(filepath.Dir(o.Roots[0]), "b")))
	want["claude"], want["codex"] = "ask", "always"
	is("elsewhere", again(filepath.Join(filepath.Dir(o.Roots[0]), "b")))

	if err := (backend{again(o.Roots[0])}).SetShare("qwen", "sometimes"); err == nil {
		t.Error("an unknown mode is taken")
	}
	if err := (backend{c}).SetShare("claud", "never"); err == nil {
		t.Error("an unknown agent is taken")
	}
	files, _ := filepath.Glob(filepath.Join(o.Dirs.State, "share", "*"))
	if len(files) != 1 {
		t.Fatal(files)
	}
	for name, content := range map[string]string{
		"no JSON": "{", "nothing": "", "a list": "[]", "another folder": `{"folder":"/elsewhere","agents":{"claude":"always"}}`,
		"a wrong mode": fmt.Sprintf(`{"folder":%q,"agents":{"gemini":"x","claude":"Always","qwen":"","copilot":"x","opencode":"x","codex":"ALWAYS"}}`, o.Roots[0]),
	} {
		if err := os.WriteFile(files[0], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		c.lookShares()
		for agent, mode := range modes(c) {
			if mode != "never" && (name != "a wrong mode" || agent != "qwen") { // it says nothing of Qwen Code
				t.Errorf("%s: %s %s", name, agent, mode)
			}
		}
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(o.Roots[0], "f"), files[0]); err != nil {
		t.Log("no links here")
		return
	}
	if c.lookShares(); modes(c)["codex"] != "never" {
		t.Error("a link is followed")
	}
}

// An agent that the settings misname would be told everything, so that nothing starts.
func TestShareOfNobody(t *testing.T) {
	o, _, _ := options(t)
	o.Settings.Share = map[string]string{"claud": "never"}
	if c, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), `"claud"`) || !strings.Contains(err.Error(), "claude") {
		if err == nil {
			c.Stop(t.Context())
		}
		t.Errorf("%v", err)
	}
	nothingLeft(t, o)
}

// Where a companion has several folders, it says to which of them an agent belongs: where the agent says that it works (SPEC CC-19,
// GC-2, CX-2), as far as that is one of them, and otherwise where its process works.
func TestSessionsHaveAFolder(t *testing.T) {
	o, a, b := options(t)
	sub := filepath.Join(b, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(sub)
	o.Roots = []string{a, b}
	c := start(t, o)
	agent := look(t, c, "claude-code")
	folder := func() string {
		for _, s := range c.Sessions() {
			return s.Folder
		}
		return ""
	}
	is := func(want string) {
		t.Helper()
		for limit := time.Now().Add(within); folder() != want; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("it works in %q, want %q", folder(), want)
			}
		}
	}
	is(b)
	if got, want := c.Sharing().Sentence, "Claude Code #1 in "+filepath.Base(b)+":"; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	agent.says(filepath.Join(a, "deep"))
	is(a)
	if err := c.SetRoots([]string{b}); err != nil || folder() != "" {
		t.Errorf("the only folder is told: %q, %v", folder(), err)
	}
}

// What an agent says of its folder counts only for a folder of the workspace, and what it says of its process only if that works in one.
func TestSessionsSayTooMuch(t *testing.T) {
	o, a, b := options(t)
	o.Roots = []string{a, b}
	c := start(t, o)
	t.Chdir(b)
	link := filepath.Join(a, "link")
	if err := os.Symlink(filepath.Dir(a), link); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		says mcp.SessionInfo
		want string
	}{
		"a folder":                   {mcp.SessionInfo{Folder: a, PID: os.Getpid()}, a},
		"one beside it":              {mcp.SessionInfo{Folder: a + "-other", PID: os.Getpid()}, b},
		"one above it":               {mcp.SessionInfo{Folder: filepath.Dir(a), PID: os.Getpid()}, b},
		"a link out of it":           {mcp.SessionInfo{Folder: link, PID: os.Getpid()}, b},
		"a process":                  {mcp.SessionInfo{Says: os.Getpid()}, b},
		"no process of this user's":  {mcp.SessionInfo{Says: 1 << 29}, ""},
		"a process elsewhere":        {mcp.SessionInfo{Says: os.Getppid(), PID: os.Getpid()}, b},
		"nothing, and no process":    {mcp.SessionInfo{}, ""},
		"a folder, and no process":   {mcp.SessionInfo{Folder: filepath.Join(a, "new")}, a},
		"no folder, and no process ": {mcp.SessionInfo{Folder: "/"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.folderOf(test.says); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// pageAnswers opens a page that answers every question.
func pageAnswers(t *testing.T, address string, answer func(title string) *string) {
	t.Helper()
	origin, key := webtest.Login(t, address)
	page := webtest.Connect(t, origin, key)
	page.OnAsk(func(title, _ string, _ []string) *string { return answer(title) })
	page.Call("hello", map[string]any{"clientId": "one"}, nil)
}

// With ask, nothing is told until the person has answered in a view, once, for every session and for the next start.
func TestShareAskC8(t *testing.T) {
	for answer, told := range map[string]bool{"Share": true, "Never share": false} {
		t.Run(answer, func(t *testing.T) {
			c, o, file := sharing(t, map[string]string{"claude": "ask"})
			one := look(t, c, "claude-code") // before anybody looks at a page
			one.hears("")
			if got := c.Sharing(); !strings.Contains(got.Sentence, "until you agree") || got.Untold != "Claude" {
				t.Errorf("%+v", got)
			}
			address, err := c.PageAddress()
			if err != nil {
				t.Fatal(err)
			}
			questions := make(chan string, 9)
			pageAnswers(t, address, func(title string) *string { questions <- title; return &answer })
			two := look(t, c, "claude-code")
			if told {
				one.hears(file)
				two.hears(file)
			}
			select {
			case q := <-questions:
				if !strings.Contains(q, "Claude Code") {
					t.Error(q)
				}
			case <-time.After(within):
				t.Fatal("nobody is asked")
			}
			want := map[bool]string{true: "always", false: "never"}[told]
			for deadline := time.Now().Add(within); c.shares.Mode("claude") != want; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal(c.shares.Mode("claude"))
				}
			}
			c.Stop(t.Context())
			c = sharingAgain(t, o)
			three := look(t, c, "claude-code")
			three.hears(map[bool]string{true: file}[told])
			if len(questions) > 0 {
				t.Error("asked again")
			}
		})
	}
}

// A question that is sent away is not asked again in this life, and nothing is told.
func TestShareUnansweredC8(t *testing.T) {
	c, _, _ := sharing(t, map[string]string{"*": "ask"})
	address, err := c.PageAddress()
	if err != nil {
		t.Fatal(err)
	}
	questions := make(chan string, 9)
	pageAnswers(t, address, func(title string) *string { questions <- title; return nil })
	look(t, c, "claude-code").hears("")
	<-questions
	look(t, c, "claude-code").hears("")
	look(t, c, "opencode").hears("")
	if q := <-questions; !strings.Contains(q, "opencode") {
		t.Error(q)
	}
	if mode := c.shares.Mode("claude"); mode != "ask" {
		t.Error(mode)
	}
}
