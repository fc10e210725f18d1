package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/pollux-companion/pollux/internal/agent/claude"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/paths"
)

const claudeToken = "claude-codes-token-that-is-as-long-as-a-real-one-is"

// withClaude lets Claude Code and opencode in as well.
func withClaude(o *mcp.Options) {
	snapshot := o.Store.Snapshot
	o.Agents = append(o.Agents, mcp.Agent{
		Name: "claude", Label: "Claude Code", Token: claudeToken, TokenHeader: claude.TokenHeader, Socket: true,
		Dialect: &claude.Dialect{Snapshot: snapshot},
		Also: map[string]mcp.Agent{
			claude.OpenCode: {Name: "opencode", Label: "opencode", Dialect: &claude.Dialect{Snapshot: snapshot, First: 1}},
		},
	})
}

// A talker is an agent at the other end of a socket.
type talker struct {
	t    testing.TB
	conn *websocket.Conn
	seen []map[string]any // that nobody has asked for yet
}

func (b *bench) handshake(token string, headers ...string) (*websocket.Conn, *http.Response, error) {
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	h := http.Header{claude.TokenHeader: {token}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return websocket.Dial(ctx, "ws://"+b.addr+"/", &websocket.DialOptions{HTTPHeader: h, Subprotocols: []string{"mcp"}})
}

func (b *bench) talker(client string) *talker {
	b.t.Helper()
	return b.talkerWith(client, `{}`)
}

func (b *bench) talkerWith(client, capabilities string) *talker {
	b.t.Helper()
	conn, _, err := b.handshake(claudeToken)
	if err != nil {
		b.t.Fatal(err)
	}
	conn.SetReadLimit(64 << 20)
	b.t.Cleanup(func() { _ = conn.CloseNow() })
	k := &talker{t: b.t, conn: conn}
	k.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"` + client + `","version":"2"}}}`)
	k.answer(0)
	k.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return k
}

func (k *talker) send(message string) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), patience)
	defer cancel()
	if err := k.conn.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
		k.t.Fatal(err)
	}
}

// await reads until a message fits.
func (k *talker) await(what string, fits func(map[string]any) bool) map[string]any {
	k.t.Helper()
	for i, m := range k.seen {
		if fits(m) {
			k.seen = append(k.seen[:i:i], k.seen[i+1:]...)
			return m
		}
	}
	for {
		ctx, cancel := context.WithTimeout(k.t.Context(), patience)
		_, data, err := k.conn.Read(ctx)
		cancel()
		if err != nil {
			k.t.Fatalf("%s: %v; seen %v", what, err, k.seen)
		}
		m := map[string]any{}
		if err := json.Unmarshal(data, &m); err != nil {
			k.t.Fatal(err)
		}
		if fits(m) {
			return m
		}
		k.seen = append(k.seen, m)
	}
}

// answer is the result of a request, or its error, as JSON.
func (k *talker) answer(id float64) string {
	k.t.Helper()
	m := k.await("an answer", func(m map[string]any) bool { return m["id"] == id })
	data, _ := json.Marshal(m)
	return string(data)
}

func (k *talker) call(id int, tool string, args map[string]string) {
	k.t.Helper()
	data, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": args}})
	k.send(string(data))
}

func (k *talker) propose(id int, path, content string) {
	k.t.Helper()
	k.call(id, "openDiff", map[string]string{"old_file_path": path, "new_file_path": path, "new_file_contents": content, "tab_name": "tab of " + path})
}

// texts are the blocks of an answer.
func texts(t testing.TB, answer string) []string {
	t.Helper()
	var m struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	if err := json.Unmarshal([]byte(answer), &m); err != nil {
		t.Fatal(err)
	}
	var all []string
	if m.Result.IsError {
		all = append(all, "error")
	}
	for _, c := range m.Result.Content {
		all = append(all, c.Text)
	}
	return all
}

func (b *bench) opened(path string) *review.Diff {
	b.t.Helper()
	eventually(b.t, path+" is shown", func() bool {
		for _, d := range b.registry.Pending() {
			if d.Proposal().Path == path {
				return true
			}
		}
		return false
	})
	for _, d := range b.registry.Pending() {
		if d.Proposal().Path == path {
			return d
		}
	}
	b.t.Fatal("gone again")
	return nil
}

// SPEC CC-5: the door of Claude Code's sockets: its own token in its own header and no other, no Origin at all, one path.
func TestClaudeDoor(t *testing.T) {
	b := newBench(t, withClaude)
	for name, tt := range map[string]struct {
		token   string
		headers []string
		want    int
	}{
		"no token":                          {"", nil, 401},
		"another token":                     {"x", nil, 401},
		"Gemini CLI's token":                {testToken, nil, 401},
		"Gemini CLI's token as a bearer":    {"", []string{"Authorization", "Bearer " + testToken}, 404},
		"its own token as a bearer":         {"", []string{"Authorization", "Bearer " + claudeToken}, 401},
		"a page's origin":                   {claudeToken, []string{"Origin", "https://example.org"}, 403},
		"the listener's own origin":         {claudeToken, []string{"Origin", "http://" + b.addr}, 403},
		"an origin that is null":            {claudeToken, []string{"Origin", "null"}, 403},
		"a session's name is not looked at": {claudeToken, []string{"Mcp-Session-Id", "x"}, 101},
	} {
		conn, res, err := b.handshake(tt.token, tt.headers...)
		if res == nil || res.StatusCode != tt.want {
			t.Errorf("%s: %v, %v; want %d", name, res, err, tt.want)
		}
		if conn != nil {
			_ = conn.CloseNow()
		}
	}
	c := b.cli()
	for _, path := range []string{"/mcp", "/stream", "/keep-alive", "/write-file"} {
		r := c.request(http.MethodPost, path, "{}")
		r.Header.Del("Authorization")
		r.Header[claude.TokenHeader] = []string{claudeToken}
		if got := c.do(r).status; got != 404 {
			t.Errorf("%s with Claude Code's token: %d", path, got)
		}
	}
}

// SPEC CC-6, OC-3: both hear what the user looks at, each counting lines as it does.
func TestClaudeContext(t *testing.T) {
	b := newBench(t, withClaude)
	claudes, open := b.talker("claude-code"), b.talker("opencode")
	file := b.file("a.go", "x")
	b.store.Report("w", state.Report{Open: []string{file}, Active: file, Cursor: &state.Position{Line: 3, Character: 4},
		Selections: []state.Selection{{Start: state.Position{Line: 3}, End: state.Position{Line: 3, Character: 4}, Text: "text"}}})
	for k, first := range map[*talker]float64{claudes: 3, open: 4} {
		m := k.await("selection_changed of the file", func(m map[string]any) bool {
			p, _ := m["params"].(map[string]any)
			return m["method"] == "selection_changed" && p["filePath"] == file
		})
		p := m["params"].(map[string]any)
		line := p["selection"].(map[string]any)["start"].(map[string]any)["line"]
		if p["text"] != "text" || line != first {
			t.Errorf("%v", p)
		}
	}
	b.store.Leave("w")
	claudes.await("nothing is looked at", func(m map[string]any) bool {
		p, _ := m["params"].(map[string]any)
		return m["method"] == "selection_changed" && p["filePath"] == "" && p["text"] == ""
	})
	var labels []string
	for _, s := range b.server.Sessions() {
		labels = append(labels, s.Agent+" "+s.Label)
	}
	if got := strings.Join(labels, ", "); got != "claude Claude Code #1, opencode opencode #2" {
		t.Errorf("sessions: %s", got)
	}
}

// SPEC CC-8, CC-9: openDiff answers with the user's decision; nothing but an acceptance is answered by a word that means one.
func TestClaudeDiffs(t *testing.T) {
	b := newBench(t, withClaude)
	k := b.talker("claude-code")
	crlf := b.file("crlf", "one\r\ntwo\r\n")
	id := 0
	decide := func(path, proposal string, how func(d *review.Diff)) []string {
		t.Helper()
		id++
		k.propose(id, path, proposal)
		d := b.opened(path)
		how(d)
		return texts(t, k.answer(float64(id)))
	}
	accept := func(content *string) func(*review.Diff) {
		return func(d *review.Diff) {
			if err := b.registry.Accept(d.ID(), d.Now().Seen, content); err != nil {
				t.Error(err)
			}
		}
	}
	edited, editedCRLF := "edited\n", "ONE\r\ntwo\r\n"
	for name, tt := range map[string]struct {
		got  []string
		want string
	}{
		"accepted":         {decide(b.dir+"/new", "proposed\n", accept(nil)), "FILE_SAVED|proposed\n"},
		"edited":           {decide(b.dir+"/new2", "proposed\n", accept(&edited)), "FILE_SAVED|edited\n"},
		"rejected":         {decide(b.dir+"/new3", "x", func(d *review.Diff) { _ = b.registry.Reject(d.ID()) }), "DIFF_REJECTED|tab of " + b.dir + "/new3"},
		"CRLF, as it came": {decide(crlf, "one\nTWO\n", accept(nil)), "FILE_SAVED|one\nTWO\n"},
		"CRLF, edited":     {decide(crlf, "one\nTWO\n", accept(&editedCRLF)), "FILE_SAVED|ONE\ntwo\n"},
		"in the terminal": {decide(b.dir+"/new4", "x", func(*review.Diff) {
			k.call(100, "close_tab", map[string]string{"tab_name": "tab of " + b.dir + "/new4"})
		}), "error|nobody has decided this change in the editor; decide it in the terminal"},
		"at the next prompt": {decide(b.dir+"/new5", "x", func(*review.Diff) { k.call(101, "closeAllDiffTabs", nil) }), "error|nobody has decided this change in the editor; decide it in the terminal"},
		"cancelled": {decide(b.dir+"/new6", "x", func(*review.Diff) {
			k.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
		}), "error|nobody has decided this change in the editor; decide it in the terminal"},
	} {
		if got := strings.Join(tt.got, "|"); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if n := len(b.registry.Pending()); n != 0 {
		t.Errorf("%d diffs are left", n)
	}
	for name, args := range map[string]map[string]string{
		"a relative path": {"old_file_path": "a", "new_file_path": "a", "new_file_contents": "x", "tab_name": "t"},
		"no contents":     {"old_file_path": "/a", "new_file_path": "/a", "tab_name": "t"},
		"a binary file":   {"old_file_path": b.file("bin", "\x00"), "new_file_path": b.dir + "/bin", "new_file_contents": "x", "tab_name": "t"},
	} {
		id++
		k.call(id+200, "openDiff", args)
		if got := texts(t, k.answer(float64(id+200))); got[0] != "error" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// SPEC CC-11, CC-12: a session's diffs are its own, and end with its socket; the end of the companion is no refusal, and keeps what the
// user wrote.
func TestClaudeEnds(t *testing.T) {
	b := newBench(t, withClaude)
	one, two := b.talker("claude-code"), b.talker("claude-code")
	one.propose(1, b.dir+"/one", "1")
	two.propose(1, b.dir+"/two", "2")
	first, second := b.opened(b.dir+"/one"), b.opened(b.dir+"/two")
	two.call(2, "closeAllDiffTabs", nil)
	if got := texts(t, two.answer(1)); got[0] != "error" {
		t.Errorf("its own diff: %q", got)
	}
	if _, over := first.Outcome(); over {
		t.Error("another session's closeAllDiffTabs took a diff away")
	}
	_ = second
	_ = one.conn.CloseNow()
	<-first.Ended()
	if o, _ := first.Outcome(); o.Kind != review.Withdrawn {
		t.Errorf("the socket's end: %+v", o)
	}
	eventually(t, "its session ends at once", func() bool { return len(b.server.Sessions()) == 1 })

	two.propose(3, b.dir+"/three", "3")
	d := b.opened(b.dir + "/three")
	if _, err := b.registry.Edit(d.ID(), review.Edit{Text: "the user's"}); err != nil {
		t.Fatal(err)
	}
	b.registry.Shut()
	if got := texts(t, two.answer(3)); got[0] != "error" {
		t.Errorf("the companion's end is a decision: %q", got)
	}
	if o, _ := d.Outcome(); o.Kind != review.Withdrawn || o.Content != "the user's" {
		t.Errorf("the user's text: %+v", o)
	}
}

// SPEC CC-17: the other tools answer, also with nothing open; a call of an unknown tool is an error.
func TestClaudeTools(t *testing.T) {
	b := newBench(t, withClaude)
	k := b.talker("claude-code")
	k.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	list := k.answer(1)
	for i, tool := range []string{"getCurrentSelection", "getLatestSelection", "getOpenEditors", "getWorkspaceFolders", "closeAllDiffTabs"} {
		if !strings.Contains(list, `"`+tool+`"`) {
			t.Errorf("%s is not listed", tool)
		}
		k.call(10+i, tool, map[string]string{})
		if got := texts(t, k.answer(float64(10+i))); len(got) != 1 || got[0] == "error" {
			t.Errorf("%s: %q", tool, got)
		}
	}
	b.store.SetDiagnostics(b.dir+"/a.go", []state.Diagnostic{{Severity: 1, Message: "wrong", Source: "vet", Start: state.Position{Line: 2}}})
	eventually(t, "the diagnostics are there", func() bool { return len(b.store.Snapshot().Diagnostics) == 1 })
	k.call(30, "getDiagnostics", map[string]string{"uri": "file://" + b.dir + "/a.go"})
	if got := texts(t, k.answer(30)); len(got) != 1 || !strings.Contains(got[0], `"message":"wrong","severity":"Error","range":{"start":{"line":2`) {
		t.Errorf("diagnostics: %q", got)
	}
	k.call(31, "executeCode", map[string]string{})
	if got := k.answer(31); !strings.Contains(got, "-32602") {
		t.Errorf("no such tool: %s", got)
	}
}

// SPEC CC-17: a file is saved by the editor, which may refuse; a file that the agent may not know to be open is not even asked for.
func TestClaudeSave(t *testing.T) {
	asked := make(chan string, 16)
	b := newBench(t, func(o *mcp.Options) {
		withClaude(o)
		d := o.Agents[len(o.Agents)-1].Dialect.(*claude.Dialect)
		d.Save = func(_ context.Context, path string) error {
			asked <- path
			if strings.HasSuffix(path, "changed") {
				return errors.New("it has changed on disk")
			}
			return nil
		}
	})
	good, changed := b.file("good", "x"), b.file("changed", "x")
	b.store.Report("w", state.Report{Open: []string{good, changed}, Active: good})
	eventually(t, "both are open", func() bool { return len(b.store.Snapshot().Files) == 2 })
	k := b.talker("claude-code")
	for i, tt := range []struct{ path, want string }{
		{good, `"saved":true,"success":true`}, {changed, "it has changed on disk"}, {changed, `"saved":false,"success":false`},
		{b.dir + "/closed", "Document not open"}, {"good", "Document not open"}, {"", "Document not open"}, {"/etc/passwd", "Document not open"},
	} {
		k.call(i, "saveDocument", map[string]string{"filePath": tt.path})
		if got := texts(t, k.answer(float64(i))); len(got) != 1 || !strings.Contains(got[0], tt.want) {
			t.Errorf("%q: %q, want %q", tt.path, got, tt.want)
		}
	}
	if n := len(asked); n != 3 {
		t.Errorf("the editor is asked %d times", n)
	}
}

// SPEC CC-13: where no tool of the editor has looked the answer is an error, and no empty list: Claude Code would take every problem
// that it hears of later for new. A file that does not exist yet has none.
func TestClaudeDiagnosticsNotKnown(t *testing.T) {
	b := newBench(t, withClaude)
	k := b.talker("claude-code")
	n := 100
	ask := func(uri string) []string {
		t.Helper()
		n++
		args := map[string]string{}
		if uri != "" {
			args["uri"] = uri
		}
		k.call(n, "getDiagnostics", args)
		return texts(t, k.answer(float64(n)))
	}
	write := func(name string) string {
		t.Helper()
		path := b.dir + "/" + name
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad, clean, odd, other := write("bad.go"), write("clean.go"), write("a#b c%.go"), write("other.go")
	for _, uri := range []string{"", "file://" + bad, bad, "file://" + b.dir} {
		if got := ask(uri); len(got) != 2 || got[0] != "error" || !strings.Contains(got[1], "not known") {
			t.Errorf("nothing known, %q: %q", uri, got)
		}
	}
	if got := ask("file://" + b.dir + "/new.go"); len(got) != 1 || !strings.HasSuffix(got[0], `/new.go","diagnostics":[]}]`) {
		t.Errorf("a new file: %q", got)
	}
	b.store.SetDiagnostics(bad, []state.Diagnostic{{Severity: 1, Message: "wrong"}})
	b.store.SetDiagnostics(clean, []state.Diagnostic{})
	b.store.SetDiagnostics(odd, []state.Diagnostic{{Severity: 2, Message: "odd"}})
	eventually(t, "the diagnostics are there", func() bool { return len(b.store.Snapshot().Diagnostics) == 3 })
	for uri, want := range map[string]string{
		"": "wrong", "file://" + bad: "wrong", "file://" + clean: `"diagnostics":[]`, "file://" + odd: "odd", "file://" + other: "error",
	} {
		if got := strings.Join(ask(uri), " "); !strings.Contains(got, want) {
			t.Errorf("%q: %s; want %s", uri, got, want)
		}
	}
	b.store.SetDiagnostics(bad, nil) // its tool has gone
	eventually(t, "the diagnostics are gone", func() bool { return len(b.store.Snapshot().Diagnostics) == 2 })
	if got := ask("file://" + bad); got[0] != "error" {
		t.Errorf("its tool has gone: %q", got)
	}
}

// A CLI that has roots is asked for them once, as soon as it listens; its first folder is where it says that it works (SPEC CC-19).
// An answer that nobody awaits, or that names no folder of this machine, changes nothing.
func TestRoots(t *testing.T) {
	here := t.TempDir()
	uri := paths.URI(filepath.Join(here, "a b"))
	for name, test := range map[string]struct{ capabilities, answer, want string }{
		"its folder":           {`{"roots":{"listChanged":true}}`, `"result":{"roots":[{"uri":"` + uri + `","name":"a b"},{"uri":"file:///other"}]}`, filepath.Join(here, "a b")},
		"it has none":          {`{"roots":{}}`, `"result":{"roots":[]}`, ""},
		"it does not know":     {`{"roots":{}}`, `"error":{"code":-32601,"message":"unknown"}`, ""},
		"another scheme":       {`{"roots":{}}`, `"result":{"roots":[{"uri":"https://example.org/w"}]}`, ""},
		"not absolute":         {`{"roots":{}}`, `"result":{"roots":[{"uri":"file:w"}]}`, ""},
		"its name is too long": {`{"roots":{}}`, `"result":{"roots":[{"uri":"` + uri + strings.Repeat("/a", 4096) + `"}]}`, ""},
		"another shape":        {`{"roots":{}}`, `"result":{"roots":{"uri":7}}`, ""},
		"nobody asks":          {`{}`, `"result":{"roots":[{"uri":"` + uri + `"}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, withClaude)
			k := b.talkerWith("claude-code", test.capabilities)
			isQuestion := func(m map[string]any) bool { return m["method"] == "roots/list" }
			if test.capabilities != `{}` {
				k.await("the question", isQuestion)
			}
			says := func() string { return b.server.Sessions()[0].Folder }
			k.send(`{"jsonrpc":"2.0","id":"roots",` + test.answer + `}`)
			eventually(t, "what it says is known", func() bool { return says() == test.want })
			if test.want != "" { // nobody awaits a second one
				k.send(`{"jsonrpc":"2.0","id":"roots","result":{"roots":[{"uri":"` + paths.URI(here) + `"}]}}`)
			}
			k.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			for id := range 3 { // messages are served side by side
				k.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id+1))
				k.answer(float64(id + 1))
			}
			if slices.ContainsFunc(k.seen, isQuestion) {
				t.Error("it is asked again")
			}
			if got := says(); got != test.want {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}
