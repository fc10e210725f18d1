package web_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/attach"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/history"
	"github.com/pollux-companion/pollux/internal/workspace"
)

type fileResult struct {
	Path, Content, Version, EOL string
	BOM, FinalNewline, ReadOnly bool
}

type obj = map[string]any

func TestHello(t *testing.T) {
	b := newBench(t, func(o *attach.PageOptions) {
		o.Sessions = func() []control.Session {
			return []control.Session{{ID: 1, Label: "Gemini CLI #1", Since: time.UnixMilli(1234), PID: 7}}
		}
	})
	p := b.connect()
	p.ExpectError(-32602, "hello", obj{"clientId": ""})
	p.ExpectError(-32602, "hello", []int{1})
	var h struct {
		Version, Name, Platform string
		PID                     int
		Agent                   struct{ Port int }
		Roots                   []struct{ Path, Name string }
		Sessions                []struct {
			ID, PID int
			Label   string
			Since   int64
		}
		Diffs []any
		Rules []review.Rule
	}
	p.Call("hello", obj{"clientId": "a", "new": "field"}, &h)
	if h.Version != "1.2.3" || h.Name != "pollux" || h.PID != 42 || h.Agent.Port != 4711 || h.Platform == "" ||
		len(h.Roots) != 1 || h.Roots[0].Path != b.root || h.Roots[0].Name != filepath.Base(b.root) ||
		h.Diffs == nil || h.Rules == nil || len(h.Sessions) != 1 || h.Sessions[0].Since != 1234 || h.Sessions[0].PID != 7 {
		t.Errorf("%+v", h)
	}
	b.server.SessionsChanged()
	p.Expect("sessions/changed", nil)
	b.registry.SetRule(review.Rule{Mode: review.Ask})
	p.Expect("rules/changed", nil)
	b.server.RootsChanged()
	p.Expect("roots/changed", nil)
	p.ExpectError(-32601, "no/such", nil)
	p.ExpectError(-32601, "rpc.serverInfo", nil)
}

func TestTree(t *testing.T) {
	b := newBench(t)
	b.write(".gitignore", "*.log\n/out/\n")
	b.write("b10.txt", "")
	b.write("b2.txt", "")
	b.write("src/a.go", "")
	b.write("x.log", "")
	b.write("out/x", "")
	b.write(".git/HEAD", "")
	p := b.page("a")
	var list struct {
		Entries []struct {
			Name, Path, Kind string
			Ignored          bool
		}
		Truncated bool
	}
	names := func(showIgnored bool) string {
		list.Entries = nil
		p.Call("tree/list", obj{"path": b.root, "showIgnored": showIgnored}, &list)
		var s []string
		for _, e := range list.Entries {
			if e.Path != filepath.Join(b.root, e.Name) {
				t.Errorf("%+v", e)
			}
			s = append(s, fmt.Sprintf("%s %s %v", e.Name, e.Kind, e.Ignored))
		}
		return strings.Join(s, "\n")
	}
	if got, want := names(false), "src dir false\n.gitignore file false\nb2.txt file false\nb10.txt file false"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := names(true); !strings.Contains(got, "out dir true") || !strings.Contains(got, "x.log file true") || strings.Contains(got, ".git dir") {
		t.Errorf("with ignored:\n%s", got)
	}
	var found struct {
		Files     []string
		Truncated bool
	}
	p.Call("tree/find", obj{"query": "ago", "limit": 5}, &found)
	if len(found.Files) != 1 || found.Files[0] != filepath.Join(b.root, "src/a.go") {
		t.Errorf("%+v", found)
	}
	p.ExpectError(-32013, "tree/list", obj{"path": "/"})
	p.ExpectError(-32010, "tree/list", obj{"path": filepath.Join(b.root, "none")})

	b.write("fresh.txt", "")
	var changed struct{ Dirs []string }
	p.Expect("tree/changed", &changed)
	if len(changed.Dirs) != 1 || changed.Dirs[0] != b.root {
		t.Errorf("%+v", changed)
	}
}

// SPEC F-6: reading, editing and saving keep every byte that was not edited.
func TestReadSave(t *testing.T) {
	b := newBench(t)
	p := b.page("a")
	for name, tc := range map[string]struct{ disk, content, eol, edited, want string }{
		"lf":         {"a\nb\n", "a\nb\n", "lf", "a\nB\n", "a\nB\n"},
		"crlf":       {"a\r\nb\r\n", "a\nb\n", "crlf", "a\nx\nb\n", "a\r\nx\r\nb\r\n"},
		"cr":         {"a\rb", "a\nb", "cr", "a\nb\nc", "a\rb\rc"},
		"mixed":      {"a\r\nb\nc\r\n", "a\nb\nc\n", "mixed", "a\nb\nC\n", "a\r\nb\nC\r\n"},
		"bom":        {"\ufeffa\r\n", "a\n", "crlf", "z\n", "\ufeffz\r\n"},
		"no newline": {"a\r\nb", "a\nb", "crlf", "a\nc", "a\r\nc"},
		"empty":      {"", "", "lf", "x", "x"},
		"unicode":    {"ä😀\n", "ä😀\n", "lf", "ö😀\n", "ö😀\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := b.write(name, tc.disk)
			var f, again fileResult
			p.Call("file/read", obj{"path": path}, &f)
			if f.Content != tc.content || f.EOL != tc.eol || f.ReadOnly || f.Path != path {
				t.Errorf("%+v", f)
			}
			var saved struct{ Version string }
			p.Call("file/save", obj{"path": path, "content": f.Content, "baseVersion": f.Version}, &saved)
			if got := b.disk(path); got != tc.disk || saved.Version != f.Version {
				t.Errorf("unedited: %q", got)
			}
			p.Call("file/save", obj{"path": path, "content": tc.edited, "baseVersion": f.Version}, &saved)
			if got := b.disk(path); got != tc.want {
				t.Errorf("edited: %q, want %q", got, tc.want)
			}
			p.Call("file/read", obj{"path": path}, &again)
			if again.Version != saved.Version {
				t.Error("the version of the save is not that of the next read")
			}
		})
	}
}

func TestSaveConflict(t *testing.T) {
	b := newBench(t)
	p := b.page("a")
	path := b.write("f", "one\r\n")
	var f fileResult
	p.Call("file/read", obj{"path": path}, &f)
	b.write("f", "two\r\n")
	e := p.ExpectError(-32014, "file/save", obj{"path": path, "content": "mine\n", "baseVersion": f.Version})
	var now fileResult
	p.Call("file/read", obj{"path": path}, &now)
	if string(e.Data) != fmt.Sprintf(`{"version":%q}`, now.Version) {
		t.Errorf("data %s, version %s", e.Data, now.Version)
	}
	if b.disk(path) != "two\r\n" {
		t.Fatal("a conflict was overwritten")
	}
	p.Call("file/save", obj{"path": path, "content": "mine\n", "baseVersion": f.Version, "force": true}, nil)
	if got := b.disk(path); got != "mine\r\n" {
		t.Errorf("forced: %q", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	e = p.ExpectError(-32014, "file/save", obj{"path": path, "content": "x", "baseVersion": now.Version})
	if string(e.Data) != `{"version":null}` {
		t.Errorf("gone: %s", e.Data)
	}
	p.Call("file/save", obj{"path": path, "content": "x", "baseVersion": ""}, nil)
}

func TestFileErrors(t *testing.T) {
	b := newBench(t)
	p := b.page("a")
	outside := filepath.Join(t.TempDir(), "o")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	big := b.write("big", "")
	if err := os.Truncate(big, 16<<20+1); err != nil {
		t.Fatal(err)
	}
	readonly := b.write("readonly", "x")
	if err := os.Chmod(readonly, 0o444); err != nil {
		t.Fatal(err)
	}
	git := b.write(".git/config", "x")
	b.write("full/x", "")
	for path, code := range map[string]int{
		filepath.Join(b.root, "none"):        -32010,
		filepath.Join(git, "below"):          -32010,
		b.write("binary", "a\x00b"):          -32011,
		b.write("latin1", "\xe9"):            -32011,
		b.root:                               -32011,
		big:                                  -32012,
		outside:                              -32013,
		"relative":                           -32602,
		b.root + "/../x":                     -32602,
		b.root + "/a\x00b":                   -32602,
		b.root + strings.Repeat("/x", 10000): -32602,
	} {
		p.ExpectError(code, "file/read", obj{"path": path})
	}
	for path, code := range map[string]int{outside: -32013, git: -32013, filepath.Join(b.root, ".Gemini/settings.json"): -32013} {
		p.ExpectError(code, "file/save", obj{"path": path, "content": "x", "baseVersion": "", "force": true})
		p.ExpectError(code, "file/create", obj{"path": path + "x"})
		p.ExpectError(code, "file/delete", obj{"path": path})
	}
	var f fileResult
	p.Call("file/read", obj{"path": git}, &f)
	if !f.ReadOnly {
		t.Error("a protected file reads as writable")
	}
	p.Call("file/read", obj{"path": readonly}, &f)
	if !f.ReadOnly {
		t.Error("a read-only file reads as writable")
	}
	p.ExpectError(-32015, "file/save", obj{"path": readonly, "content": "y", "baseVersion": f.Version})
	p.ExpectError(-32016, "file/delete", obj{"path": filepath.Join(b.root, "full")})
	p.ExpectError(-32017, "file/create", obj{"path": readonly})
	p.ExpectError(-32017, "file/rename", obj{"from": big, "to": readonly})
	p.ExpectError(-32015, "file/delete", obj{"path": b.root})
	if b.disk(readonly) != "x" || b.disk(git) != "x" {
		t.Error("something was written")
	}
}

func TestCreateRenameDelete(t *testing.T) {
	b := newBench(t)
	p := b.page("a")
	path := func(s string) string { return filepath.Join(b.root, s) }
	p.Call("file/create", obj{"path": path("d"), "dir": true}, nil)
	p.Call("file/create", obj{"path": path("d/e/f.txt")}, nil)
	p.Notify("context/update", obj{"focused": true, "active": obj{"path": path("d/e/f.txt")}, "open": []string{path("d/e/f.txt")}, "dirty": []string{}})
	b.eventually("the file is open", func() bool { return b.store.Snapshot().Active == path("d/e/f.txt") })
	p.Call("file/rename", obj{"from": path("d/e"), "to": path("g")}, nil)
	if b.disk(path("g/f.txt")) != "" {
		t.Error("not moved")
	}
	b.eventually("the context follows", func() bool { return b.store.Snapshot().Active == path("g/f.txt") })
	p.Call("file/delete", obj{"path": path("g"), "recursive": true}, nil)
	if _, err := os.Stat(path("g")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("not deleted")
	}
}

// Two pages have one file open. Each hears of changes by the other and by other programs, and not of its own.
func TestFileChanged(t *testing.T) {
	b := newBench(t)
	path := b.write("f", "one\n")
	one, two := b.page("one"), b.page("two")
	var f fileResult
	note := obj{"focused": false, "active": nil, "open": []string{path}, "dirty": []string{}}
	one.Call("file/read", obj{"path": path}, &f)
	one.Notify("context/update", note)
	two.Call("file/read", obj{"path": path}, nil)
	two.Notify("context/update", note)
	two.Call("ping", nil, nil)

	var saved struct{ Version string }
	one.Call("file/save", obj{"path": path, "content": "two\n", "baseVersion": f.Version}, &saved)
	var changed struct {
		Path    string
		Version *string
	}
	two.Expect("file/changed", &changed)
	if changed.Path != path || changed.Version == nil || *changed.Version != saved.Version {
		t.Errorf("%+v, saved %s", changed, saved.Version)
	}
	one.ExpectNone("file/changed")

	// As the CLI and other careful programs write: a new file, renamed over the old one.
	if err := os.Rename(b.write("tmp", "three\n"), path); err != nil {
		t.Fatal(err)
	}
	one.Expect("file/changed", &changed)
	two.Expect("file/changed", nil)
	one.Call("file/read", obj{"path": path}, &f)
	if f.Content != "three\n" || f.Version != *changed.Version {
		t.Errorf("%+v", f)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	one.Expect("file/changed", &changed)
	if changed.Version != nil {
		t.Errorf("gone: %v", *changed.Version)
	}
	b.write("f", "four\n")
	one.Expect("file/changed", &changed)
	if changed.Version == nil {
		t.Error("back: null")
	}
}

// A page that reconnects with open files learns their versions, whatever happened while it was away.
func TestVersionsAfterReconnection(t *testing.T) {
	b := newBench(t)
	path := b.write("f", "one\n")
	p := b.page("a")
	p.Notify("context/update", obj{"focused": true, "active": nil, "open": []string{path}, "dirty": []string{path}})
	var changed struct {
		Path    string
		Version *string
	}
	p.Expect("file/changed", &changed)
	var f fileResult
	p.Call("file/read", obj{"path": path}, &f)
	if changed.Version == nil || *changed.Version != f.Version {
		t.Errorf("%+v", changed)
	}
}

// fakeHistory holds one entry.
type fakeHistory struct {
	entry history.Entry
	work  *workspace.Workspace
}

func (h *fakeHistory) List() ([]history.Info, error) { return []history.Info{h.entry.Info}, nil }
func (h *fakeHistory) Get(id string) (history.Entry, error) {
	if id != h.entry.ID {
		return history.Entry{}, fs.ErrNotExist
	}
	return h.entry, nil
}
func (h *fakeHistory) Undo(string) error {
	if h.entry.Outcome == review.Rejected {
		return fs.ErrPermission
	}
	return h.work.Restore(h.entry.Path, h.entry.Final, h.entry.Old, h.entry.IsNew)
}

func TestHistory(t *testing.T) { // SPEC F-12
	h := &fakeHistory{}
	b := newBench(t, func(o *attach.PageOptions) { o.History, h.work = h, o.Workspace })
	path := b.write("f", "new\r\n")
	h.entry = history.Entry{
		Info: history.Info{ID: "h1", Path: path, Title: "t", Owner: "o", Settled: time.UnixMilli(99), Outcome: review.Accepted, Edited: true},
		Old:  "old\r\n", New: "n\n", Final: "new\n",
	}
	p := b.page("a")
	var list struct{ Entries []obj }
	p.Call("history/list", obj{}, &list)
	if len(list.Entries) != 1 || list.Entries[0]["outcome"] != "accepted" || list.Entries[0]["at"] != 99.0 || list.Entries[0]["undoable"] != true {
		t.Errorf("%+v", list)
	}
	var entry struct{ ID, Old, New, Final string }
	p.Call("history/read", obj{"id": "h1"}, &entry)
	if entry.ID != "h1" || entry.Old != "old\n" || entry.New != "n\n" || entry.Final != "new\n" {
		t.Errorf("%+v", entry)
	}
	p.ExpectError(-32010, "history/read", obj{"id": "h2"})
	p.ExpectError(-32010, "history/undo", obj{"id": "h2"})

	b.write("f", "newer\r\n")
	p.ExpectError(-32014, "history/undo", obj{"id": "h1"})
	if b.disk(path) != "newer\r\n" {
		t.Fatal("undo overwrote another change")
	}
	b.write("f", "new\r\n")
	p.Call("history/undo", obj{"id": "h1"}, nil)
	if got := b.disk(path); got != "old\r\n" {
		t.Errorf("undone: %q", got)
	}
	p.ExpectError(-32014, "history/undo", obj{"id": "h1"})

	b.write("f", "new\n")
	h.entry.IsNew = true
	p.Call("history/undo", obj{"id": "h1"}, nil)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("undoing a new file leaves it")
	}
	h.entry.Outcome = review.Rejected
	p.ExpectError(-32015, "history/undo", obj{"id": "h1"})
}

func TestNoHistory(t *testing.T) {
	b := newBench(t)
	p := b.page("a")
	var list struct{ Entries []obj }
	p.Call("history/list", nil, &list)
	if list.Entries == nil || len(list.Entries) != 0 {
		t.Errorf("%+v", list)
	}
	p.ExpectError(-32010, "history/read", obj{"id": "x"})
}
