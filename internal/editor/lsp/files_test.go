package lsp_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/pollux-companion/pollux/internal/attach"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// A watcher is one that tells what the test says.
type watcher struct {
	changed func([]string)

	mu     sync.Mutex // guards what follows
	files  []string
	sets   int
	closed bool
}

func (w *watcher) Set(files, _ []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files, w.sets = files, w.sets+1
}
func (w *watcher) Close()             { w.mu.Lock(); defer w.mu.Unlock(); w.closed = true }
func (w *watcher) watched() []string  { w.mu.Lock(); defer w.mu.Unlock(); return w.files }
func (w *watcher) state() (int, bool) { w.mu.Lock(); defer w.mu.Unlock(); return w.sets, w.closed }

func (e *editor) watch(changed func([]string)) attach.FileWatcher {
	e.watcher.changed = changed
	return &e.watcher
}

// reloads are the files that the editor was told of since the last call, in order.
func (e *editor) reloads() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for _, c := range e.got[e.reloaded:] {
		var p struct{ URIs []string }
		if c.Method == "pollux/filesChanged" && json.Unmarshal(c.Params, &p) == nil {
			all = append(all, p.URIs...)
		}
	}
	e.reloaded = len(e.got)
	return all
}

// SPEC F-8: an editor is told which of its files have changed, as long as an agent is connected, and a plugin of version 1 is not.
func TestFilesChanged(t *testing.T) {
	e := start(t, rpc.Lines, newRegistry)
	e.hello(obj{"version": 2})
	open := func(uris ...string) {
		e.peer.Notify("pollux/didChangeContext", obj{"textDocument": nil, "openDocuments": uris})
		e.drain()
	}
	told := func(want ...string) {
		t.Helper()
		var got []string
		e.until("the files", func() bool { got = append(got, e.reloads()...); return len(got) >= len(want) })
		if !slices.Equal(got, want) {
			t.Errorf("told of %v, want %v", got, want)
		}
	}
	open("file:///p/b", "file:///p/a", "file:///p/a", "untitled:x")
	told("file:///p/a", "file:///p/b") // what has happened before they were watched
	if got := e.watcher.watched(); !slices.Equal(got, []string{"/p/a", "/p/b"}) {
		t.Errorf("watched are %v", got)
	}
	e.watcher.changed([]string{"/p/b"})
	told("file:///p/b")
	open("file:///p/b", "file:///p/a") // the same
	open("file:///p/c %", "file:///p/b")
	told("file:///p/c%20%25")
	if sets, _ := e.watcher.state(); sets != 2 {
		t.Errorf("set %d times", sets)
	}
	e.comp.leave(true)
	e.server.SessionsChanged()
	e.until("the end of the watch", func() bool { return len(e.watcher.watched()) == 0 })
	e.comp.leave(false)
	e.server.SessionsChanged()
	told("file:///p/b", "file:///p/c%20%25")
	_ = e.in.Close()
	e.until("the watcher's end", func() bool { _, closed := e.watcher.state(); return closed })

	old := full(t)
	old.peer.Notify("pollux/didChangeContext", obj{"textDocument": nil, "openDocuments": []string{"file:///p/a"}})
	old.drain()
	if sets, _ := old.watcher.state(); sets != 0 || old.watcher.changed != nil {
		t.Error("version 1 is told")
	}
}
