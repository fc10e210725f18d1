package web_test

import (
	"context"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
	"github.com/pollux-companion/pollux/internal/pace"
)

func position(line, character int) obj { return obj{"line": line, "character": character} }

// paths lists the open files of a snapshot, newest focus first.
func paths(s *state.Snapshot) (list []string) {
	for _, f := range s.Files {
		list = append(list, filepath.Base(f.Path))
	}
	return list
}

func TestContext(t *testing.T) { // SPEC C-1, C-4, C-6
	b := newBench(t)
	f, g := b.write("f", "one\ntwo\n"), b.write("g", "")
	p := b.page("a")
	update := func(params obj) *state.Snapshot {
		t.Helper()
		p.Notify("context/update", params)
		p.Call("ping", nil, nil)
		return b.store.Snapshot()
	}
	s := update(obj{
		"focused": true,
		"active": obj{"path": f, "cursor": position(1, 2), "selections": []obj{
			{"start": position(0, 0), "end": position(1, 0), "text": "one\n"},
		}},
		"open": []string{f, g}, "dirty": []string{g},
	})
	if s.Active != f || s.Cursor == nil || *s.Cursor != (state.Position{Line: 1, Character: 2}) ||
		len(s.Selections) != 1 || s.Selections[0].Text != "one\n" || len(s.Files) != 2 || !s.Files[1].Dirty {
		t.Errorf("%+v", s)
	}
	// A diff has the focus: nothing is active, everything stays open.
	if s = update(obj{"focused": true, "active": nil, "open": []string{f, g}, "dirty": []string{}}); s.Active != "" || len(s.Files) != 2 {
		t.Errorf("%+v", s)
	}
	// What is no file is not shared (C-6).
	if s = update(obj{"focused": true, "active": obj{"path": filepath.Join(b.root, "none")}, "open": []string{filepath.Join(b.root, "none"), g}, "dirty": []string{}}); s.Active != "" || len(s.Files) != 1 {
		t.Errorf("%+v", s)
	}
	many := make([]string, 501)
	for i := range many {
		many[i] = f
	}
	for _, bad := range []obj{
		{"active": obj{"path": "relative"}},
		{"active": obj{"path": f, "cursor": position(-1, 0)}},
		{"active": obj{"path": f, "selections": []obj{{"start": position(0, -1), "end": position(0, 1)}}}},
		{"open": []string{"relative"}},
		{"open": many},
		{"dirty": []string{"/" + strings.Repeat("x", 5000)}},
	} {
		p.ExpectError(-32602, "context/update", bad)
	}
	// An endless selection is cut, not refused.
	s = update(obj{"focused": true, "active": obj{"path": f, "selections": []obj{
		{"start": position(0, 0), "end": position(9, 0), "text": strings.Repeat("ä", 3<<20)},
	}}, "open": []string{f}, "dirty": []string{}})
	if n := len(s.Selections[0].Text); n == 0 || n > 1<<20 {
		t.Errorf("%d bytes of selection", n)
	}
}

// Several tabs are several windows of one editor: the one in which the user
// is decides what is active, and what a tab had open goes with it.
func TestContextOfTwoPages(t *testing.T) { // SPEC C-2, C-4
	b := newBench(t)
	f, g := b.write("f", ""), b.write("g", "")
	one, two := b.page("one"), b.page("two")
	show := func(p *webtest.Page, path string) {
		p.Notify("context/update", obj{"focused": true, "active": obj{"path": path, "cursor": position(0, 0)}, "open": []string{path}, "dirty": []string{}})
		p.Call("ping", nil, nil)
	}
	show(one, f)
	show(two, g)
	if s := b.store.Snapshot(); s.Active != g || !reflect.DeepEqual(paths(s), []string{"g", "f"}) {
		t.Errorf("%+v", s)
	}
	var opened struct {
		Path      string
		Position  *state.Position
		TakeFocus bool
	}
	if err := b.server.Open(f, &state.Position{Line: 3}, true); err != nil {
		t.Fatal(err)
	}
	two.Expect("open", &opened)
	if opened.Path != f || opened.Position == nil || opened.Position.Line != 3 || !opened.TakeFocus {
		t.Errorf("%+v", opened)
	}
	one.ExpectNone("open")
	two.Leave()
	b.eventually("the window goes after its grace", func() bool { return reflect.DeepEqual(paths(b.store.Snapshot()), []string{"f"}) })
	if err := b.server.Open(f, nil, false); err != nil {
		t.Fatal(err)
	}
	one.Expect("open", nil)
}

// A reload within the grace keeps the window: its files never leave the context.
func TestReload(t *testing.T) {
	b := newBench(t)
	b.server.SetGrace(time.Hour)
	f := b.write("f", "")
	p := b.page("a")
	p.Notify("context/update", obj{"focused": true, "active": obj{"path": f}, "open": []string{f}, "dirty": []string{}})
	p.Call("ping", nil, nil)
	for range 3 {
		p.Leave()
		b.eventually("gone", func() bool { return b.server.Pages() == 0 })
		if s := b.store.Snapshot(); s.Active != f {
			t.Fatal("the file flickers")
		}
		p = b.page("a")
	}
	p.Notify("context/update", obj{"focused": true, "active": nil, "open": []string{}, "dirty": []string{}})
	b.eventually("it is the same window", func() bool { return len(b.store.Snapshot().Files) == 0 })
}

// The grace of an earlier leave does not close the window of the page that is back.
func TestReloadOldGrace(t *testing.T) {
	b := newBench(t)
	b.server.SetGrace(50 * time.Millisecond)
	f, g := b.write("f", ""), b.write("g", "")
	open := func(p *webtest.Page, path string) {
		p.Notify("context/update", obj{"focused": true, "active": obj{"path": path}, "open": []string{path}, "dirty": []string{}})
		p.Call("ping", nil, nil)
	}
	p := b.page("a")
	for range 3 {
		p.Leave()
		b.eventually("gone", func() bool { return b.server.Pages() == 0 })
		p = b.page("a")
		open(p, f)
	}
	other := b.page("b")
	open(other, g)
	other.Leave() // its grace ends after the earlier ones
	b.eventually("the other window's end", func() bool { return reflect.DeepEqual(paths(b.store.Snapshot()), []string{"f"}) })
}

func TestAsk(t *testing.T) {
	b := newBench(t)
	q := []string{"yes", "no"}
	if _, err := b.server.Ask(t.Context(), "t", "m", q); err == nil {
		t.Error("a question without a page was answered")
	}
	p := b.page("a")
	for given, want := range map[string]string{"no": "no", "yes": "yes", "maybe": ""} {
		p.OnAsk(func(title, message string, choices []string) *string {
			if title != "t" || message != "m" || len(choices) != 2 {
				t.Errorf("%q %q %q", title, message, choices)
			}
			return &given
		})
		if got, err := b.server.Ask(t.Context(), "t", "m", q); err != nil || got != want {
			t.Errorf("answer %q: %q %v", given, got, err)
		}
	}
	p.OnAsk(nil)
	if got, err := b.server.Ask(t.Context(), "t", "m", q); err != nil || got != "" {
		t.Errorf("sent away: %q %v", got, err)
	}
	block := make(chan struct{})
	p.OnAsk(func(string, string, []string) *string { <-block; return nil })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := b.server.Ask(ctx, "t", "m", q); err == nil {
		t.Error("no answer within the deadline is no error")
	}
	time.AfterFunc(50*time.Millisecond, p.Leave)
	if _, err := b.server.Ask(t.Context(), "t", "m", q); err == nil {
		t.Error("a page that goes is no error")
	}
	close(block)
}

// SPEC CC-17: every page that has the file open saves it; one that refuses says why, and one that is silent does not hold the agent up.
func TestSaveOpen(t *testing.T) {
	b := newBench(t)
	says := func(what, want string) {
		t.Helper()
		err := b.server.Save(t.Context(), "/p/a")
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"/p/a"`)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	says("no page", "no page has")
	one, two := b.page("one"), b.page("two")
	says("nowhere open", "no page has")
	one.OnSave(func(path string) (bool, string) { return path == "/p/a", "another file" })
	says("saved", "")
	two.OnSave(func(string) (bool, string) { return false, "it has changed on disk" })
	says("refused by one", "changed on disk")
	two.OnSave(func(string) (bool, string) { return false, "" })
	says("refused without a word", "does not say why")
	block := make(chan struct{})
	defer close(block)
	two.OnSave(func(string) (bool, string) { <-block; return true, "" })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := b.server.Save(ctx, "/p/a"); err == nil {
		t.Error("a silent page is taken for one that saved")
	}
}

func TestGoodbye(t *testing.T) { // SPEC L-1
	b := newBench(t)
	one, two := b.page("one"), b.page("two")
	b.connect() // has not said hello
	ctx, cancel := context.WithTimeout(t.Context(), webtest.Patience)
	defer cancel()
	watch := pace.Start(t)
	if err := b.server.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if d := watch.Took(); d > pace.Slack*500*time.Millisecond {
		t.Errorf("Shutdown took %v", d)
	}
	for _, p := range []*webtest.Page{one, two} {
		p.Expect("bye", nil)
		p.ExpectGone()
	}
	if b.server.Pages() != 0 {
		t.Errorf("%d pages", b.server.Pages())
	}
}

// A page that is dead does not hold up the stop.
func TestGoodbyeToTheDead(t *testing.T) { // SPEC L-1
	b := newBench(t)
	origin, key := webtest.Login(t, b.address())
	conn, err := webtest.Enter(origin, key) // never reads, so never answers the closing handshake
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	b.eventually("it is there", func() bool { return b.server.Pages() == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	watch := pace.Start(t)
	_ = b.server.Shutdown(ctx)
	if d := watch.Took(); d > pace.Slack*600*time.Millisecond {
		t.Errorf("Shutdown took %v", d)
	}
}

// Every goroutine of a page ends with it.
func TestNoGoroutineStays(t *testing.T) {
	b := newBench(t)
	b.page("warm").Leave()
	b.eventually("gone", func() bool { return b.server.Pages() == 0 })
	before := runtime.NumGoroutine()
	var ps []*webtest.Page
	for range 20 {
		ps = append(ps, b.page("x"))
	}
	for _, p := range ps {
		p.Leave()
	}
	b.eventually("all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before+2 })
}

func TestBadFrames(t *testing.T) { // SPEC A-4: what is not the protocol ends at most its own connection
	b := newBench(t)
	honest := b.page("honest")
	origin, key := webtest.Login(t, b.address())
	for _, frame := range []string{"", "x", "{", "[]", "null", "[[[", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"1.0","method":"ping","id":1}`,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":9,"result":{}}`, strings.Repeat("[", 1<<20)} {
		conn, err := webtest.Enter(origin, key)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), webtest.Patience)
		_ = conn.Write(ctx, 1, []byte(frame))
		_ = conn.Write(ctx, 2, []byte(frame)) // binary: not the protocol
		for err == nil {
			_, _, err = conn.Read(ctx)
		}
		if ctx.Err() != nil {
			t.Errorf("frame %.40q: the connection hangs", frame)
		}
		cancel()
		conn.CloseNow()
	}
	honest.Call("ping", nil, nil)
}
