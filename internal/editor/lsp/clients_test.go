package lsp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// EDITOR-PROTOCOL: pollux/didChangeStatus names every session with its version.
func TestStatusNamesVersions(t *testing.T) {
	e := full(t)
	var status struct {
		Sessions    []map[string]any
		PendingDiff int
	}
	if err := json.Unmarshal(e.heard("pollux/didChangeStatus"), &status); err != nil || len(status.Sessions) != 1 {
		t.Fatalf("%+v, %v", status, err)
	}
	if s := status.Sessions[0]; s["name"] != "Gemini CLI #1" || s["version"] != "0.61.0" {
		t.Errorf("%v", s)
	}
}

// A question that is answered elsewhere, or whose asker has gone, is taken back.
func TestQuestionIsTakenBack(t *testing.T) {
	e := full(t)
	asked := make(chan struct{})
	release := make(chan struct{})
	e.on("pollux/ask", func(json.RawMessage) (any, error) {
		close(asked)
		<-release
		return obj{"choice": "Yes"}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := e.server.Ask(ctx, "t", "m", []string{"Yes", "No"})
		done <- err
	}()
	<-asked
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(release)
	if got := string(e.heard("$/cancelRequest")); !strings.Contains(got, `"id":`) {
		t.Error(got)
	}
}

// What clients answer to requests that they do not know: null from eglot, an
// error from others. Neither is success, and neither ends anything.
func TestUnknownRequests(t *testing.T) {
	for name, answer := range map[string]func(json.RawMessage) (any, error){
		"null":   func(json.RawMessage) (any, error) { return nil, nil },
		"error":  func(json.RawMessage) (any, error) { return nil, rpc.Errorf(rpc.CodeNoMethod, "unknown") },
		"list":   func(json.RawMessage) (any, error) { return []int{}, nil },
		"string": func(json.RawMessage) (any, error) { return "ok", nil },
	} {
		e := full(t)
		for _, method := range []string{"pollux/openDiff", "pollux/openDocument", "pollux/ask", "pollux/closeDiff"} {
			e.on(method, answer)
		}
		if err := e.server.SaveDocument(t.Context(), "/p/a"); err == nil {
			t.Error("an editor without a plugin saves")
		}
		if err := e.server.OpenDocument(t.Context(), "/p/a", &state.Position{}, true); err == nil {
			t.Errorf("%s: the document counts as open", name)
		}
		if got, _ := e.server.Ask(t.Context(), "t", "m", []string{"Yes"}); got != "" {
			t.Errorf("%s: a choice %q", name, got)
		}
		owner := &reviewtest.Owner{Name: "a"}
		if _, err := e.open(owner, proposal("/p/a")); err == nil {
			t.Errorf("%s: the diff counts as open", name)
		}
		e.ask("workspace/executeCommand", obj{"command": "pollux.status"})
	}
}

// Kate saves before it tells the change, Neovim saves what was never opened
// (after :saveas), others close twice or change what is closed.
func TestOrders(t *testing.T) {
	e := start(t, rpc.Headers, newRegistry)
	e.initialize(obj{"processId": 0, "rootUri": nil, "workspaceFolders": nil, "capabilities": obj{}}) // and no initialized
	doc := func(path string) obj { return obj{"textDocument": obj{"uri": "file://" + path}} }
	for _, n := range []struct{ method, path string }{
		{"didSave", "/p/saved"}, {"didChange", "/p/changed"}, {"didOpen", "/p/a"}, {"didSave", "/p/a"}, {"didChange", "/p/a"},
		{"didOpen", "/p/a"}, {"didClose", "/p/never"}, {"didClose", "/p/changed"}, {"didClose", "/p/changed"}, {"didSave", "/p/a"},
	} {
		e.peer.Notify("textDocument/"+n.method, doc(n.path))
	}
	e.drain()
	snap := e.store.Snapshot()
	if snap.Active != "/p/a" || len(snap.Files) != 2 {
		t.Errorf("%+v", snap)
	}
	for _, odd := range []string{`{}`, `null`, `[]`, `{"textDocument":null}`, `{"textDocument":{"uri":5}}`, `{"textDocument":{"uri":"untitled:1"}}`} {
		for _, method := range []string{"didOpen", "didChange", "didSave", "didClose", "willSave"} {
			e.peer.Notify("textDocument/"+method, json.RawMessage(odd))
		}
		for _, method := range []string{"hover", "documentHighlight", "codeAction", "selectionRange", "signatureHelp", "inlayHint"} {
			e.ask("textDocument/"+method, json.RawMessage(odd))
		}
	}
	if snap := e.store.Snapshot(); snap.Active != "/p/a" || len(snap.Files) != 2 {
		t.Errorf("%+v", snap)
	}
}

// A selection that an editor cut inside a surrogate pair is told with a
// replacement at the cut; a proposal that was cut so is refused (SPEC F-6).
func TestHalfSurrogates(t *testing.T) {
	e := full(t)
	for _, cut := range []string{`"a \ud83d"`, `"\ude00 a"`, `"\ud83dx"`, `"\ude00\ud83d"`} {
		msg := `{"jsonrpc":"2.0","method":"pollux/didChangeContext","params":{"textDocument":{"uri":"file:///p/a"},"position":{"line":0,"character":1},` +
			`"selection":{"start":{"line":0,"character":0},"end":{"line":0,"character":1},"text":` + cut + `}}}`
		if err := e.raw.Send([]byte(msg)); err != nil {
			t.Fatal(err)
		}
		e.drain()
		snap := e.store.Snapshot()
		if len(snap.Selections) != 1 || !strings.Contains(snap.Selections[0].Text, "\ufffd") {
			t.Errorf("%s: %+v", cut, snap.Selections)
		}
	}
	owner := &reviewtest.Owner{Name: "a"}
	d, err := e.open(owner, proposal("/p/a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.try("pollux/didChangeDiff", json.RawMessage(`{"diffId":"`+d.ID()+`","version":9,"content":"\ud83d"}`)); err == nil {
		t.Error("half a pair became the proposal's text")
	}
	if now, _ := d.Text(); now != d.Proposal().New {
		t.Errorf("the text is %q", now)
	}
}

// SPEC A-4: a message of 64 MiB is taken; one that is longer ends the
// connection in good order, with the diffs rejected and the companion stopped.
func TestBigMessages(t *testing.T) {
	pace.NotRaced(t, "the same code as with small texts, and half a minute of it")
	big := func(size int) string {
		const head, tail = `{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///p/a"},"text":"`, `"}}` + "\n"
		return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	}
	for name, tt := range map[string]struct {
		framing rpc.Framing
		fits    string // "" for none
		tooBig  string
	}{
		"headers": {rpc.Headers, "", fmt.Sprintf("Content-Length: %d\r\n\r\n{", rpc.MaxBody+1)},
		"lines":   {rpc.Lines, big(rpc.MaxBody), big(rpc.MaxBody + 1)},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, tt.framing, newRegistry)
			e.hello(nil)
			e.drain() // nothing of the queue is on its way any more
			if _, err := io.WriteString(e.in, tt.fits); err != nil {
				t.Fatal(err)
			}
			e.ask("workspace/executeCommand", obj{"command": "pollux.status"})
			owner := &reviewtest.Owner{Name: "a"}
			if _, err := e.open(owner, proposal("/p/a")); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.WriteString(e.in, tt.tooBig) }() // the server hangs up in the middle
			select {
			case err := <-e.served:
				if stopped := e.comp.stops(); err == nil || stopped != 1 {
					t.Errorf("%v, stopped %d times", err, stopped)
				}
			case <-time.After(patience):
				t.Fatal("it goes on")
			}
			owner.ExpectTold(t, review.Rejected)
		})
	}
}

// Thousands of events a second of every kind, while diffs are opened and
// decided: nothing is lost that must not be, and the last context counts.
func TestStorm(t *testing.T) {
	e := full(t)
	owner := &reviewtest.Owner{Name: "a"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 4000 {
			doc := obj{"uri": fmt.Sprintf("file:///p/%d", i%50)}
			e.peer.Notify("textDocument/didOpen", obj{"textDocument": doc})
			e.peer.Notify("pollux/didChangeContext", obj{"textDocument": doc, "position": obj{"line": i, "character": 0}})
			if i%500 == 0 {
				e.drain()
			}
		}
	}()
	var want []review.Kind
	for i := range 20 {
		d, err := e.open(owner, proposal(fmt.Sprintf("/p/%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		e.peer.Notify("pollux/diffResolved", obj{"diffId": d.ID(), "outcome": "rejected"})
		want = append(want, review.Rejected)
	}
	<-done
	e.drain()
	owner.ExpectTold(t, want...)
	if snap := e.store.Snapshot(); snap.Active != "/p/49" || snap.Cursor == nil || snap.Cursor.Line != 3999 || len(snap.Files) != 50 {
		t.Errorf("%q at %v, %d files", snap.Active, snap.Cursor, len(snap.Files))
	}
}

// Helix's range is never empty: one character of it is its cursor.
func TestWideCursor(t *testing.T) {
	for client, want := range map[string]int{"helix": 4, "Kate": 6} {
		e := start(t, rpc.Headers, newRegistry)
		e.initialize(obj{"clientInfo": obj{"name": client}})
		ask := func(from, to int) int {
			e.ask("textDocument/codeAction", obj{"textDocument": obj{"uri": "file:///p/a"}, "range": obj{"start": obj{"line": 1, "character": from}, "end": obj{"line": 1, "character": to}}})
			return e.store.Snapshot().Cursor.Character
		}
		if got := ask(4, 6); got != want { // an emoji
			t.Errorf("%s: %d", client, got)
		}
		if got := ask(4, 9); got != 9 {
			t.Errorf("%s, with a selection: %d", client, got)
		}
		if got := ask(4, 4); got != 4 {
			t.Errorf("%s, empty: %d", client, got)
		}
	}
}

// Where there is nothing, the lists are empty, and not null: plugins go through them.
func TestStatusOfNothing(t *testing.T) {
	e := full(t)
	e.comp.mu.Lock()
	e.comp.alone = true
	e.comp.mu.Unlock()
	got := string(e.ask("workspace/executeCommand", obj{"command": "pollux.status"}))
	for _, want := range []string{`"roots":[]`, `"sessions":[]`, `"diffs":[]`, `"rules":[]`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

// Who asks whether a diff would be seen hears it of each kind of editor: one that shows diffs, one that is asked about
// them, and one that can do neither.
func TestShows(t *testing.T) {
	for name, test := range map[string]struct {
		hello obj
		want  bool
	}{
		"shows diffs":        {obj{"initializationOptions": obj{"pollux": obj{"version": 1, "openDiff": true}}}, true},
		"a plugin without":   {obj{"initializationOptions": obj{"pollux": obj{"version": 1}}}, false},
		"is asked":           {obj{"capabilities": obj{"window": obj{"showMessage": obj{}}}}, true},
		"can do neither":     {obj{}, false},
		"a plugin's message": {obj{"capabilities": obj{"window": obj{"showMessage": obj{}}}, "initializationOptions": obj{"pollux": obj{"version": 1}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, rpc.Headers, newRegistry)
			if e.server.Shows() {
				t.Error("it shows diffs before it has said who it is")
			}
			e.initialize(test.hello)
			if got := e.server.Shows(); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}
