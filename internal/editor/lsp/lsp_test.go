package lsp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/editor/lsp"
	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// SPEC F-2 … F-10: an editor with a plugin is a view like every other.
func TestViewSuite(t *testing.T) {
	reviewtest.Suite(t, func(t *testing.T, r *review.Registry) reviewtest.Subject {
		e := start(t, rpc.Lines, func(review.View) *review.Registry { return r })
		e.hello(nil)
		now := func(d *review.Diff) string { return e.text(d.ID()) }
		forget := func(d *review.Diff) { e.mu.Lock(); defer e.mu.Unlock(); delete(e.texts, d.ID()) }
		version := 0
		return reviewtest.Subject{
			View: e.server,
			Edit: func(d *review.Diff, edited string) {
				edited = text.FromLF(d.Proposal().New, edited) // as a plugin keeps line endings
				e.mu.Lock()
				e.texts[d.ID()] = edited
				e.mu.Unlock()
				version++
				e.peer.Notify("pollux/didChangeDiff", obj{"diffId": d.ID(), "version": version, "content": edited})
				e.drain()
			},
			Accept: func(d *review.Diff) {
				content := now(d)
				forget(d)
				e.peer.Notify("pollux/diffResolved", obj{"diffId": d.ID(), "outcome": "accepted", "content": content})
				e.drain()
			},
			Reject: func(d *review.Diff) {
				forget(d)
				e.peer.Notify("pollux/diffResolved", obj{"diffId": d.ID(), "outcome": "rejected"})
				e.drain()
			},
		}
	})
}

// open proposes a change and returns its diff.
func (e *editor) open(owner *reviewtest.Owner, p review.Proposal) (*review.Diff, error) {
	return e.reg.Open(context.Background(), owner, p, owner.Deliver)
}

func proposal(path string) review.Proposal {
	return review.Proposal{Key: path, Path: path, Old: "old\n", New: "new 😀\r\n", Title: filepath.Base(path) + " – test"}
}

func TestHello(t *testing.T) {
	for _, framing := range []rpc.Framing{rpc.Lines, rpc.Headers} {
		e := start(t, framing, newRegistry)
		var out struct {
			Capabilities struct {
				PositionEncoding string
				TextDocumentSync struct{ Change int }
				Experimental     struct {
					Pollux struct {
						Version, ThrottleMs, MaxSelection int
						Env                               map[string]string
					}
				}
			}
			ServerInfo struct{ Name, Version string }
		}
		if err := json.Unmarshal(e.hello(nil), &out); err != nil {
			t.Fatal(err)
		}
		p := out.Capabilities.Experimental.Pollux
		if out.ServerInfo.Version != "1.2.3" || out.Capabilities.PositionEncoding != "utf-16" || p.Version != 2 || p.ThrottleMs != 50 || p.MaxSelection != 16896 || p.Env["ROOTS"] == "" {
			t.Errorf("framing %d: %+v", framing, out)
		}
	}
}

// What an editor says of itself, in all the ways that clients have.
func TestHelloForms(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	wd, _ := os.Getwd()
	for name, tt := range map[string]struct {
		params string
		ide    lsp.IDE
		pid    int
		roots  []string
		full   bool
	}{
		"nothing":     {`{}`, lsp.IDE{Name: "lsp", DisplayName: "Editor"}, 0, []string{wd}, false},
		"null":        {`null`, lsp.IDE{Name: "lsp", DisplayName: "Editor"}, 0, []string{wd}, false},
		"client":      {`{"clientInfo":{"name":"Sublime Text LSP"},"rootUri":"file://` + dir + `","processId":7}`, lsp.IDE{Name: "sublime-text-lsp", DisplayName: "Sublime Text LSP"}, 7, []string{dir}, false},
		"old client":  {`{"rootPath":"` + dir + `","processId":0,"workspaceFolders":null}`, lsp.IDE{Name: "lsp", DisplayName: "Editor"}, 0, []string{dir}, false},
		"folders":     {`{"workspaceFolders":[{"uri":"file://` + dir + `"},{"uri":"file:///no/such"},{"uri":"untitled:x"},{"uri":"file://` + other + `"},{"uri":"file://` + dir + `"}]}`, lsp.IDE{Name: "lsp", DisplayName: "Editor"}, 0, []string{dir, other}, false},
		"lua":         {`{"workspaceFolders":{},"initializationOptions":{"pollux":{"ide":{"name":"x"},"openDiffs":{},"idePid":9}},"processId":8,"capabilities":[]}`, lsp.IDE{Name: "x", DisplayName: "x"}, 9, []string{wd}, true},
		"capability":  {`{"capabilities":{"experimental":{"pollux":{"version":1,"ide":{"name":"y","displayName":"Y"}}}}}`, lsp.IDE{Name: "y", DisplayName: "Y"}, 0, []string{wd}, true},
		"both":        {`{"initializationOptions":{"pollux":{"version":1}},"capabilities":{"experimental":{"pollux":{"ide":{"name":"y"},"context":true}}}}`, lsp.IDE{Name: "y", DisplayName: "y"}, 0, []string{wd}, true},
		"wrong types": {`{"processId":"x","clientInfo":5,"workspaceFolders":"no","rootUri":{},"capabilities":{"experimental":7}}`, lsp.IDE{Name: "lsp", DisplayName: "Editor"}, 0, []string{wd}, false},
	} {
		var got lsp.Hello
		toServer, fromServer := newPipes(t)
		s := lsp.New(rpc.NewChannel(toServer.r, fromServer.w, nil), lsp.Options{Start: func(_ context.Context, h lsp.Hello) (lsp.Companion, error) {
			got = h
			return nil, errors.New("enough")
		}})
		go func() { _ = s.Serve(t.Context()) }()
		fmt.Fprintf(toServer.w, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":%s}`+"\n", tt.params)
		answer, _ := rpc.NewChannel(fromServer.r, nil, nil).Next()
		if !strings.Contains(string(answer), "pollux cannot start: enough") {
			t.Errorf("%s: %s", name, answer)
		}
		if got.IDE != tt.ide || got.PID != tt.pid || (got.Pollux != nil) != tt.full || !cmp.Equal(got.Roots, tt.roots) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// F-6, in every line ending: texts go both ways byte for byte.
func TestExact(t *testing.T) {
	e := full(t)
	owner := &reviewtest.Owner{Name: "a"}
	for i, content := range []string{"x\r\ny\n", "no end", "\ufeffbom\n", "a\rb\r", "tab\t\u0001 😀 e\u0301 \u2028\n", strings.Repeat("0123456789abcdef\n", 300_000)} {
		d, err := e.open(owner, review.Proposal{Key: "k", Path: "/p/ü%x y.go", Old: "old", New: content, Title: "t"})
		if err != nil {
			t.Fatal(err)
		}
		var p struct{ URI, FilePath, OldText, NewText string }
		_ = json.Unmarshal(e.last("pollux/openDiff"), &p)
		if i == 0 && (p.URI != "file:///p/%C3%BC%25x%20y.go" || p.FilePath != "/p/ü%x y.go") {
			t.Errorf("%q %q", p.URI, p.FilePath)
		}
		if got := e.text(d.ID()); got != content {
			t.Errorf("%d: the editor got %.40q", i, got)
		}
		edited := content + "edited 😀"
		e.peer.Notify("pollux/diffResolved", obj{"diffId": d.ID(), "outcome": "accepted", "content": edited})
		told := owner.ExpectTold(t, kinds(i+1)...)
		if got := told[i].Outcome; got.Content != edited || !got.Edited {
			t.Errorf("%d: the agent got %.40q", i, got.Content)
		}
	}
}

func kinds(n int) (all []review.Kind) {
	for range n {
		all = append(all, review.Accepted)
	}
	return all
}

// A text that is no Unicode is refused, and the diff is opened again; so is one that the user emptied.
func TestRefusedText(t *testing.T) {
	for name, content := range map[string]string{
		"half a surrogate": `"\ud83d"`, "the other half": `"x\ude00"`, "half, then more": `"\ud83d\u0041"`, "bytes": "\"\xff\"", "a number": `5`, "emptied": `""`,
	} {
		e := full(t)
		owner := &reviewtest.Owner{Name: "a"}
		d, err := e.open(owner, proposal("/p/a"))
		if err != nil {
			t.Fatal(err)
		}
		e.mu.Lock()
		delete(e.texts, d.ID())
		e.mu.Unlock()
		msg := `{"jsonrpc":"2.0","method":"pollux/diffResolved","params":{"diffId":"` + d.ID() + `","outcome":"accepted","content":` + content + `}}`
		if err := e.raw.Send([]byte(msg)); err != nil {
			t.Fatal(err)
		}
		e.shown(1)
		if got := string(e.heard("window/showMessage")); !strings.Contains(got, "a is still open") {
			t.Errorf("%s: %s", name, got)
		}
		e.peer.Notify("pollux/diffResolved", obj{"diffId": d.ID(), "outcome": "accepted", "content": "whole 😀"})
		owner.ExpectTold(t, review.Accepted)
	}
}

// Only {"opened":true} is success; everything else goes to the page, and the
// editor is told to close what it may open late.
func TestFallback(t *testing.T) {
	for name, answer := range map[string]func(json.RawMessage) (any, error){
		"null":     func(json.RawMessage) (any, error) { return nil, nil },
		"false":    func(json.RawMessage) (any, error) { return obj{"opened": false}, nil },
		"string":   func(json.RawMessage) (any, error) { return "yes", nil },
		"busy":     func(json.RawMessage) (any, error) { return nil, rpc.Errorf(-32001, "busy") },
		"encoding": func(json.RawMessage) (any, error) { return nil, rpc.Errorf(-32002, "latin1") },
		"too big":  func(json.RawMessage) (any, error) { return nil, rpc.Errorf(-32003, "too big") },
	} {
		e := full(t)
		e.on("pollux/openDiff", answer)
		owner := &reviewtest.Owner{Name: "a"}
		if _, err := e.open(owner, proposal("/p/a")); err == nil {
			t.Errorf("%s: opened although nobody looks at a page", name)
		}
		e.heard("pollux/closeDiff")
		e.page.mu.Lock()
		e.page.err = nil
		e.page.mu.Unlock()
		d, err := e.open(owner, proposal("/p/a"))
		if err != nil || !e.page.shows(d.ID()) {
			t.Fatalf("%s: %v", name, err)
		}
		if err := e.reg.Reject(d.ID()); err != nil {
			t.Error(err)
		}
		owner.ExpectTold(t, review.Rejected)
	}
}

// An editor that does not answer within five seconds loses the diff to the page.
func TestNoAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("takes five seconds")
	}
	t.Parallel()
	hang := make(chan struct{})
	e := startWithin(t, 0, rpc.Lines, func(v review.View) *review.Registry {
		return review.New(review.Options{View: v, ShowTimeout: pace.Slack * 8 * time.Second})
	})
	e.hello(nil)
	e.on("pollux/openDiff", func(json.RawMessage) (any, error) { <-hang; return obj{"opened": true}, nil })
	e.page.mu.Lock()
	e.page.err = nil
	e.page.mu.Unlock()
	begun, watch := time.Now(), pace.Start(t)
	d, err := e.open(&reviewtest.Owner{Name: "a"}, proposal("/p/a"))
	if took := time.Since(begun); err != nil || !e.page.shows(d.ID()) || took < 5*time.Second || watch.Took() > pace.Slack*6*time.Second {
		t.Errorf("%v after %v", err, took)
	}
	e.heard("pollux/closeDiff")
	close(hang)
}

// F-4: the agent takes the diff back; the editor's newest text counts, and no
// second closeDiff follows.
func TestWithdraw(t *testing.T) {
	e := full(t)
	owner := &reviewtest.Owner{Name: "a"}
	d, err := e.open(owner, proposal("/p/a"))
	if err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	e.texts[d.ID()] = "typed just now\r\n"
	e.mu.Unlock()
	o, err := e.reg.Withdraw(t.Context(), owner, "/p/a")
	if err != nil || o.Content != "typed just now\r\n" || !o.Edited {
		t.Errorf("%+v, %v", o, err)
	}
	e.peer.Notify("pollux/diffResolved", obj{"diffId": d.ID(), "outcome": "rejected"}) // too late
	e.drain()
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, c := range e.got {
		if c.Method == "pollux/closeDiff" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("closeDiff came %d times", n)
	}
}

// L-3: what the editor still shows after a crash is not opened again, and its
// text counts; what no agent waits for any more is closed.
func TestAnnounced(t *testing.T) {
	owner := &reviewtest.Owner{Name: "a"}
	e := start(t, rpc.Headers, newRegistry)
	e.attached = func(r *review.Registry) {
		d, err := r.Restore(owner, "kept", "an older edit", nil, time.Now(), proposal("/p/a"))
		if err != nil {
			t.Error(err)
		}
		owner.Deliver(d)
	}
	e.mu.Lock()
	e.texts["kept"], e.texts["gone"] = "the newest edit", "x"
	e.mu.Unlock()
	e.hello(obj{"openDiffs": []obj{{"diffId": "kept", "filePath": "/p/a", "content": "the newest edit"}, {"diffId": "gone", "filePath": "/p/b", "content": "x"}}})
	e.shown(1)
	e.until("the text", func() bool {
		d, ok := e.reg.Get("kept")
		if !ok {
			return false
		}
		now, _ := d.Text()
		return now == "the newest edit"
	})
	said := func() (messages []string) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, c := range e.got {
			if c.Method == "window/showMessage" {
				messages = append(messages, string(c.Params))
			}
		}
		return messages
	}
	e.until("a word about the one that is gone", func() bool { return len(said()) > 0 })
	if m := said(); len(m) != 1 || !strings.Contains(m[0], "/p/b") || !strings.Contains(m[0], "history") {
		t.Errorf("said: %q", m)
	}
	if text, ok := e.server.StillShown("gone"); ok {
		t.Errorf("%q is still shown", text)
	}
	e.mu.Lock()
	for _, c := range e.got {
		if c.Method == "pollux/openDiff" {
			t.Errorf("opened again: %s", c.Params)
		}
	}
	e.mu.Unlock()
	e.peer.Notify("pollux/diffResolved", obj{"diffId": "kept", "outcome": "accepted", "content": "final"})
	owner.ExpectTold(t, review.Accepted)
}

func TestContext(t *testing.T) {
	e := full(t)
	send := func(params string) {
		t.Helper()
		if err := e.raw.Send([]byte(`{"jsonrpc":"2.0","method":"pollux/didChangeContext","params":` + params + `}`)); err != nil {
			t.Fatal(err)
		}
		e.drain()
	}
	send(`{"textDocument":{"uri":"file:///p/a%20b.go"},"position":{"line":1,"character":12},"selection":{"start":{"line":1,"character":12},"end":{"line":1,"character":17},"text":" 😀 x"},"openDocuments":["file:///p/a%20b.go","untitled:x","file:///p/c"]}`)
	snap := e.store.Snapshot()
	if snap.Active != "/p/a b.go" || *snap.Cursor != (state.Position{Line: 1, Character: 12}) || len(snap.Selections) != 1 || snap.Selections[0].Text != " 😀 x" || len(snap.Files) != 2 {
		t.Errorf("%+v", snap)
	}
	send(`{"textDocument":{"uri":"file:///p/c"},"position":{"line":-1,"character":0},"selection":null}`)
	if snap = e.store.Snapshot(); snap.Active != "/p/c" || snap.Cursor != nil || len(snap.Files) != 2 {
		t.Errorf("%+v", snap)
	}
	send(`{"textDocument":null,"openDocuments":{}}`)
	if snap = e.store.Snapshot(); snap.Active != "" || len(snap.Files) != 0 {
		t.Errorf("%+v", snap)
	}
	send(`{"textDocument":{"uri":"file:///p/c"}}`)
	e.peer.Notify("workspace/didRenameFiles", obj{"files": []obj{{"oldUri": "file:///p/c", "newUri": "file:///p/d"}}})
	e.peer.Notify("pollux/didChangeTrust", obj{"trusted": true})
	e.peer.Notify("pollux/didChangeDiagnostics", obj{"uri": "file:///p/d", "diagnostics": []obj{{"message": "m", "severity": 1, "range": obj{}}}})
	e.drain()
	if snap = e.store.Snapshot(); snap.Active != "/p/d" || snap.Trusted == nil || !*snap.Trusted || len(snap.Diagnostics["/p/d"]) != 1 {
		t.Errorf("%+v", snap)
	}
	e.peer.Notify("workspace/didDeleteFiles", obj{"files": []obj{{"uri": "file:///p/d"}}})
	e.drain()
	if snap = e.store.Snapshot(); len(snap.Files) != 0 {
		t.Errorf("%+v", snap)
	}
}

// A client without a plugin: files by didOpen, the cursor wherever it asks.
func TestPlainTier(t *testing.T) {
	e := start(t, rpc.Headers, newRegistry)
	caps := string(e.initialize(obj{"capabilities": obj{"window": obj{"showMessage": obj{}}}, "clientInfo": obj{"name": "Kate"}}))
	if !strings.Contains(caps, `"documentHighlightProvider":true`) || strings.Contains(caps, "hoverProvider") {
		t.Errorf("%s", caps)
	}
	doc := obj{"uri": "file:///p/a"}
	e.peer.Notify("textDocument/didSave", obj{"textDocument": obj{"uri": "file:///p/never-opened"}})
	e.peer.Notify("textDocument/didOpen", obj{"textDocument": obj{"uri": "file:///p/a", "languageId": "go", "version": 0, "text": "x"}})
	if got := string(e.ask("textDocument/documentHighlight", obj{"textDocument": doc, "position": obj{"line": 3, "character": 4}})); got != "[]" {
		t.Error(got)
	}
	e.peer.Notify("textDocument/didChange", obj{"textDocument": doc, "contentChanges": []obj{{"text": "y"}}})
	e.drain()
	if snap := e.store.Snapshot(); snap.Active != "/p/a" || snap.Cursor == nil || snap.Cursor.Line != 3 || len(snap.Files) != 2 {
		t.Errorf("%+v", snap)
	}
	if got := string(e.ask("textDocument/hover", obj{"textDocument": doc, "position": obj{"line": 5, "character": 0}})); got != "null" {
		t.Error(got)
	}
	e.ask("textDocument/selectionRange", obj{"textDocument": doc, "positions": []obj{{"line": 6, "character": 1}}})
	e.ask("textDocument/codeAction", obj{"textDocument": doc, "range": obj{"start": obj{"line": 6, "character": 1}, "end": obj{"line": 7, "character": 2}}})
	if snap := e.store.Snapshot(); snap.Cursor == nil || *snap.Cursor != (state.Position{Line: 7, Character: 2}) {
		t.Errorf("%+v", snap)
	}
	e.peer.Notify("textDocument/didClose", obj{"textDocument": doc})
	e.drain()
	if snap := e.store.Snapshot(); snap.Active != "" {
		t.Errorf("%+v", snap)
	}
}

// Diffs of a plain client: on the page, decidable by commands, code actions and a question.
func TestPlainDiffs(t *testing.T) {
	e := start(t, rpc.Headers, newRegistry)
	asked := make(chan struct{})
	answer := make(chan string)
	e.on("window/showMessageRequest", func(json.RawMessage) (any, error) {
		asked <- struct{}{}
		return obj{"title": <-answer}, nil
	})
	e.initialize(obj{"capabilities": obj{"window": obj{"showMessage": obj{"messageActionItem": obj{}}}}})
	owner := &reviewtest.Owner{Name: "a"}
	d, err := e.open(owner, proposal("/p/a")) // no page: the question alone
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	if got := string(e.ask("textDocument/codeAction", obj{"textDocument": obj{"uri": "file:///p/a"}, "range": obj{}})); !strings.Contains(got, `"Accept a – test"`) || !strings.Contains(got, d.ID()) {
		t.Error(got)
	}
	answer <- "Accept"
	owner.ExpectTold(t, review.Accepted)
	e.page.mu.Lock()
	e.page.err = nil
	e.page.mu.Unlock()
	if d, err = e.open(owner, proposal("/p/b")); err != nil || !e.page.shows(d.ID()) {
		t.Fatal(err)
	}
	<-asked // and never answered
	e.ask("workspace/executeCommand", obj{"command": "pollux.reject", "arguments": []obj{}})
	owner.ExpectTold(t, review.Accepted, review.Rejected)
	close(answer)
}

func TestCommands(t *testing.T) {
	e := full(t)
	owner := &reviewtest.Owner{Name: "a"}
	first, _ := e.open(owner, proposal("/p/a"))
	second, _ := e.open(owner, proposal("/p/b"))
	run := func(command string, argument any) string {
		t.Helper()
		out, err := e.try("workspace/executeCommand", obj{"command": command, "arguments": []any{argument}})
		if err != nil {
			return "error: " + err.Error()
		}
		return string(out)
	}
	for _, tt := range []struct {
		command  string
		argument obj
		want     string
	}{
		{"pollux.status", nil, `"title":"b – test"`},
		{"pollux.accept", nil, "error: 2 diffs are open; say which one"},
		{"pollux.accept", obj{"diffId": "x"}, `error: no diff "x" is open`},
		{"pollux.nothing", nil, `error: there is no command`},
		{"pollux.setPolicy", obj{"policy": "x"}, `error: "x" is not a policy`},
		{"pollux.setPolicy", obj{"policy": "accept", "scope": "x"}, `error: "x" is not a scope`},
		{"pollux.setPolicy", obj{"policy": "accept", "scope": "pattern"}, `error: the scope pattern needs`},
		{"pollux.setPolicy", obj{"policy": "accept", "scope": "file", "diffId": first.ID()}, `"pattern":"/p/a"`},
		{"pollux.setPolicy", obj{"policy": "accept", "scope": "session", "diffId": second.ID()}, `"owner":"a"`},
		{"pollux.review", nil, "error: "},
		{"pollux.setContext", obj{"state": "x"}, `error: "x" is not a state: on or paused`},
		{"pollux.setContext", obj{"state": "paused"}, `"state":"paused"`},
	} {
		if got := run(tt.command, tt.argument); !strings.Contains(got, tt.want) {
			t.Errorf("%s %v: %s", tt.command, tt.argument, got)
		}
	}
	owner.ExpectTold(t, review.Accepted, review.Accepted)
	e.shown(0) // the editor was told to close them
	if !e.store.Paused() {
		t.Error("sharing goes on")
	}
	e.until("the status", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return slices.ContainsFunc(e.got, func(c call) bool {
			return c.Method == "pollux/didChangeStatus" && strings.Contains(string(c.Params), `"context":"paused"`)
		})
	})
}

// The environment follows the folders, the status the diffs.
func TestFoldersAndStatus(t *testing.T) {
	e := full(t)
	dir := t.TempDir()
	e.peer.Notify("workspace/didChangeWorkspaceFolders", obj{"event": obj{"added": []obj{{"uri": "file://" + dir}}, "removed": []obj{}}})
	if got := string(e.heard("pollux/didChangeEnv")); !strings.Contains(got, dir) || !strings.Contains(got, `"unset":[]`) {
		t.Error(got)
	}
	if _, err := e.open(&reviewtest.Owner{Name: "a"}, proposal("/p/a")); err != nil {
		t.Fatal(err)
	}
	e.until("the status", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, c := range e.got {
			if c.Method == "pollux/didChangeStatus" && strings.Contains(string(c.Params), `"pendingDiffs":1`) && strings.Contains(string(c.Params), "Gemini CLI #1") {
				return true
			}
		}
		return false
	})
}

func TestOpenAndAsk(t *testing.T) {
	e := full(t)
	e.on("pollux/openDocument", func(p json.RawMessage) (any, error) { return obj{"opened": true}, nil })
	e.on("pollux/ask", func(json.RawMessage) (any, error) { return obj{"choice": "Yes"}, nil })
	if err := e.server.OpenDocument(t.Context(), "/p/a", &state.Position{Line: 4}, true); err != nil {
		t.Error(err)
	}
	if got := string(e.heard("pollux/openDocument")); !strings.Contains(got, `"uri":"file:///p/a"`) || !strings.Contains(got, `"line":4`) {
		t.Error(got)
	}
	answers := map[string]obj{"saved": {"saved": true}, "changed": {"saved": false, "why": "it has changed on disk"}, "silent": {}}
	e.on("pollux/saveDocument", func(p json.RawMessage) (any, error) {
		var at struct{ URI string }
		_ = json.Unmarshal(p, &at)
		if answer, ok := answers[strings.TrimPrefix(at.URI, "file:///p/")]; ok {
			return answer, nil
		}
		return nil, errors.New("no such method")
	})
	for name, want := range map[string]string{"saved": "", "changed": "it has changed on disk", "silent": "does not say why", "unknown": "did not save"} {
		if err := e.server.SaveDocument(t.Context(), "/p/"+name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := e.server.Ask(t.Context(), "t", "m", []string{"Yes", "No"}); got != "Yes" || err != nil {
		t.Error(got, err)
	}
	e.on("pollux/ask", func(json.RawMessage) (any, error) { return nil, nil })
	if got, err := e.server.Ask(t.Context(), "t", "m", []string{"Yes"}); got != "" || err != nil {
		t.Error(got, err)
	}
}

// Whatever real clients send, the server goes on.
func TestSurvives(t *testing.T) {
	e := start(t, rpc.Lines, newRegistry)
	for _, msg := range []string{
		`{"jsonrpc":"2.0","method":"initialized","params":null}`, `{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{}}`,
		`{}`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"1.0","method":"x"}`, `{"jsonrpc":"2.0","method":5}`, `{"jsonrpc":"2.0","id":{},"method":"x"}`, `[]`, `{"broken`,
		`{"jsonrpc":"2.0","id":99,"result":null}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`,
	} {
		if err := e.raw.Send([]byte(msg)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.try("pollux/status", nil); err == nil {
		t.Error("a request before initialize was answered")
	}
	e.hello(nil)
	if _, err := e.try("initialize", obj{}); err == nil {
		t.Error("initialize worked twice")
	}
	for _, msg := range []string{
		`{"jsonrpc":"2.0","method":"pollux/didChangeContext","params":null}`, `{"jsonrpc":"2.0","method":"pollux/didChangeContext","params":[1,2]}`,
		`{"jsonrpc":"2.0","method":"pollux/didChangeContext","params":{"textDocument":7,"openDocuments":"x","selection":{"text":"\ud83d"}}}`,
		`{"jsonrpc":"2.0","method":"pollux/diffResolved","params":{"diffId":"nobody's","outcome":"accepted"}}`,
		`{"jsonrpc":"2.0","method":"pollux/didChangeDiff","params":{"diffId":"nobody's","content":"x"}}`,
		`{"jsonrpc":"2.0","method":"textDocument/didSave","params":{"textDocument":{"uri":"file:///p/never"}}}`,
		`{"jsonrpc":"2.0","method":"workspace/didChangeWorkspaceFolders","params":{"event":{"removed":null,"added":null}}}`,
		`{"jsonrpc":"2.0","method":"no/such","params":{}}`,
	} {
		if err := e.raw.Send([]byte(msg)); err != nil {
			t.Fatal(err)
		}
	}
	e.ask("workspace/executeCommand", obj{"command": "pollux.status"})
	for i := range 5000 { // a storm
		e.peer.Notify("pollux/didChangeContext", obj{"textDocument": obj{"uri": "file:///p/a"}, "position": obj{"line": i, "character": 0}})
		if i%1000 == 999 {
			e.drain()
		}
	}
	if got := e.store.Snapshot().Cursor; got == nil || got.Line != 4999 {
		t.Errorf("the cursor is at %v", got)
	}
}
