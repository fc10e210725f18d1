package control

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/proc"
)

// fake is a companion of a test's.
type fake struct {
	*reviewed
	status   Status
	agent    int // the process of its only session
	socket   string
	unknown  []string // sessions of no known process
	decided  []Decision
	opened   []Location
	saved    []string
	mentions int
	paused   []bool
	shared   []string
	withheld []string
	lent     atomic.Pointer[state.Snapshot]
	door     *os.File // that HandOver hands on
	met      proc.Set
	joins    proc.Set
	over     func() // of HandOver and Stop
}

func (f *fake) Status() Status { return f.status }
func (f *fake) Connection() Connection {
	return Connection{PID: 1, Port: 2, Token: "tok", Roots: f.status.Roots}
}
func (f *fake) Sessions() []Session {
	return []Session{{ID: 1, Label: "Gemini CLI #1", PID: f.agent}}
}
func (f *fake) Meet(agents ...proc.Info) { f.met.Add(agents...) }
func (f *fake) Joined(p proc.Info)       { f.joins.Add(p) }
func (f *fake) Agents(context.Context) Agents {
	a := Agents{Unknown: f.unknown, Processes: f.met.All()}
	if f.agent != 0 {
		a.Processes = append(a.Processes, proc.Info{PID: f.agent})
	}
	return a
}
func (f *fake) Diffs() []Diff { return []Diff{{ID: "d", Path: "/p", IsNew: true}} }
func (f *fake) Decide(d Decision) error {
	if d.ID == "gone" {
		return errors.New("this diff has been decided already")
	}
	f.decided = append(f.decided, d)
	return nil
}
func (f *fake) Open(_ context.Context, l Location) error { f.opened = append(f.opened, l); return nil }
func (f *fake) Save(_ context.Context, path string) error {
	f.saved = append(f.saved, path)
	return nil
}
func (f *fake) Ask(_ context.Context, q Question) (*string, error) {
	if len(q.Choices) == 0 {
		return nil, nil
	}
	return &q.Choices[0], nil
}
func (f *fake) Mention(_ context.Context, m Mention) (Mentioned, error) {
	f.mentions++
	return Mentioned{Session: "x #1", By: "protocol"}, nil
}
func (f *fake) Pause(paused bool) { f.paused = append(f.paused, paused) }
func (f *fake) SetShare(agent, mode string) error {
	f.shared = append(f.shared, agent+" "+mode)
	return nil
}
func (f *fake) Lend(_ any, snap *state.Snapshot, _ bool) { f.lent.Store(snap) }
func (f *fake) Context() *state.Snapshot {
	return &state.Snapshot{Active: "/p", Roots: f.status.Roots, Withheld: f.withheld}
}
func (f *fake) HandOver() (Handing, *os.File, func(), error) {
	return Handing{Editor: f.status.Editor, Roots: f.status.Roots, Port: 2}, f.door, f.over, nil
}
func (f *fake) Stop() (func(), error) { return f.over, nil }
func (f *fake) Page() (string, error) { return "http://127.0.0.1:1/#code=x", nil }

// shortDir makes a folder whose name is short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "px")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "run")
}

func listen(t *testing.T, dirs []string, b Backend) *Server {
	t.Helper()
	s, err := Listen(dirs, b, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// SPEC §11.1: each method, there and back.
func TestMethods(t *testing.T) {
	dirs := []string{shortDir(t)}
	f := &fake{reviewed: newReviewed(), status: Status{PID: 1, Version: "v", Editor: "pollux", Roots: []string{"/r"}, Started: time.Unix(5, 0).UTC()}}
	s := listen(t, dirs, f)
	ctx := t.Context()
	c, err := Dial(ctx, s.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	check := func(what string, want, got any, err error) {
		t.Helper()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", what, err, diff)
		}
	}
	check("status", f.status, c.Status, nil)
	conn, err := c.Connection(ctx)
	check("env", f.Connection(), conn, err)
	sessions, err := c.Sessions(ctx)
	check("sessions", f.Sessions(), sessions, err)
	diffs, err := c.Diffs(ctx)
	check("diffs", f.Diffs(), diffs, err)
	snap, err := c.Context(ctx)
	check("context", f.Context(), snap, err)
	page, err := c.Page(ctx)
	check("page", "http://127.0.0.1:1/#code=x", page, err)
	choice, err := c.Ask(ctx, Question{Choices: []string{"yes", "no"}})
	yes := "yes"
	check("ask", &yes, choice, err)
	choice, err = c.Ask(ctx, Question{})
	check("ask, dismissed", (*string)(nil), choice, err)
	text := strings.Repeat("ä\n", 1<<20)
	for _, d := range []Decision{{ID: "a", Accept: true, Content: &text}, {ID: "b"}} {
		check("decide", nil, nil, c.Decide(ctx, d))
	}
	check("decisions", []Decision{{ID: "a", Accept: true, Content: &text}, {ID: "b"}}, f.decided, nil)
	check("open", nil, nil, c.Open(ctx, Location{Path: "/p", Position: &state.Position{Line: 3}}))
	check("opened", []Location{{Path: "/p", Position: &state.Position{Line: 3}}}, f.opened, nil)
	check("save", nil, nil, c.Save(ctx, "/p"))
	check("saved", []string{"/p"}, f.saved, nil)
	hear, err := c.Lend(ctx, &state.Snapshot{Active: "/p"}, true)
	check("lend", f.Sessions(), hear, err)
	// An error arrives in the companion's own words.
	if err := c.Decide(ctx, Decision{ID: "gone"}); err == nil || err.Error() != "this diff has been decided already" {
		t.Errorf("decide: %v", err)
	}
}

// SPEC §11.6: the nearest root, then the newest.
func TestFind(t *testing.T) {
	dirs := []string{shortDir(t), shortDir(t)}
	start := func(i, pid int, roots ...string) {
		listen(t, dirs[i:], &fake{status: Status{PID: pid, Roots: roots, Started: time.Unix(int64(pid), 0)}})
	}
	start(0, 1, "/w", "/other")
	start(1, 2, "/w/sub")
	start(0, 3, "/w")
	listen(t, dirs, &fake{status: Status{PID: 4, Roots: []string{"/w", "/kept"}, Started: time.Unix(4, 0), Keeper: true}}) // L-4: others have an editor
	for folder, want := range map[string]int{"/w": 3, "/w/x": 3, "/w/sub": 2, "/w/sub/y": 2, "/w/subx": 3, "/other": 1, "/kept": 4} {
		c, err := Find(t.Context(), dirs, folder)
		if err != nil {
			t.Errorf("%s: %v", folder, err)
			continue
		}
		if c.Status.PID != want {
			t.Errorf("%s: process %d, want %d", folder, c.Status.PID, want)
		}
		c.Close()
	}
	for _, folder := range []string{"/", "/elsewhere", "/wx"} {
		if _, err := Find(t.Context(), dirs, folder); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), `process 2 serves "/w/sub"`) {
			t.Errorf("%s: %v", folder, err)
		}
	}
	if _, err := Find(t.Context(), []string{shortDir(t)}, "/w"); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "pollux serve") {
		t.Errorf("nobody at all: %v", err)
	}
}

// A socket is private, gone at the end, and a dead one is removed by whoever comes next.
func TestSocket(t *testing.T) {
	dir := shortDir(t)
	s := listen(t, []string{dir}, &fake{})
	info, err := os.Stat(s.Path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v", info.Mode())
	}
	s.Close()
	if _, err := os.Stat(s.Path()); err == nil {
		t.Error("the socket is left")
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.Path(), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close() // as after a kill -9
	if got := List(t.Context(), []string{dir}); len(got) != 0 {
		t.Errorf("%d companions", len(got))
	}
	if _, err := os.Stat(s.Path()); err != nil {
		t.Error("a socket was removed that may be about to be listened on")
	}
	old := time.Now().Add(-time.Minute)
	os.Chtimes(s.Path(), old, old)
	List(t.Context(), []string{dir})
	if _, err := os.Stat(s.Path()); err == nil {
		t.Error("the dead socket is left")
	}
}

// A companion that is stopped or hostile does not hold the others up.
func TestMute(t *testing.T) {
	dir := shortDir(t)
	listen(t, []string{dir}, &fake{status: Status{PID: 5}})
	ln, err := net.Listen("unix", filepath.Join(dir, "mute.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	watch := pace.Start(t)
	got := List(t.Context(), []string{dir})
	if len(got) != 1 || got[0].Status.PID != 5 {
		t.Errorf("%d companions", len(got))
	}
	for _, c := range got {
		c.Close()
	}
	if took := watch.Took(); took > pace.Slack*dialTimeout {
		t.Errorf("it took %v", took)
	}
	if _, err := os.Stat(filepath.Join(dir, "mute.sock")); err != nil {
		t.Error("a living socket was removed")
	}
}

// A name too long for a socket, or a folder that is not private, leads to the next place.
func TestListenFallsBack(t *testing.T) {
	good := shortDir(t)
	link := filepath.Join(filepath.Dir(good), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(filepath.Dir(good), strings.Repeat("x", 100))
	s := listen(t, []string{long, link, good}, &fake{})
	if filepath.Dir(s.Path()) != good {
		t.Errorf("it listens at %s", s.Path())
	}
	if _, err := os.Stat(long); err == nil {
		t.Error("a folder was made for nothing")
	}
	_, err := Listen([]string{long, link}, &fake{}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "longer than") || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("nowhere to listen: %v", err)
	}
}

// Garbage, half a message and a flood of connections end without the server (SPEC A-4).
func TestAbuse(t *testing.T) {
	dir := shortDir(t)
	s := listen(t, []string{dir}, &fake{status: Status{PID: 5}})
	for _, in := range []string{"GET / HTTP/1.1\r\n\r\n", "{]\n", "Content-Length: 99999999999\r\n\r\n", `{"jsonrpc":"2.0","id":1,"method":"decide","params":5}` + "\n", `{"jsonrpc":"2.0","id":1,"method":"rpc.exit"}` + "\n"} {
		conn, err := net.Dial("unix", s.Path())
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte(in))
		conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		conn.Read(make([]byte, 100))
		conn.Close()
	}
	var idle []net.Conn
	for range maxPeers + 10 {
		conn, err := net.Dial("unix", s.Path())
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, conn)
	}
	for _, conn := range idle {
		conn.Close()
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		c, err := Dial(t.Context(), s.Path())
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the flood: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// SPEC §11.1: a model's shell cannot approve its own changes, but may ask the rest.
func TestFromAgent(t *testing.T) {
	dirs := []string{shortDir(t)}
	f := &fake{reviewed: newReviewed(), status: Status{Roots: []string{"/r"}}}
	s := listen(t, dirs, f)
	c, err := Dial(t.Context(), s.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, tt := range []struct {
		name   string
		agent  int
		mark   string
		refuse bool
	}{
		{"a terminal of the user's", 0, "", false},
		{"an agent elsewhere", 1 << 30, "", false},
		{"the agent itself", os.Getpid(), "", true},
		{"a child of the agent's", os.Getppid(), "", true},
		{"marked", 0, "1", true},
	} {
		t.Setenv("GEMINI_CLI", tt.mark)
		f.agent = tt.agent
		_, pageErr := c.Page(t.Context())
		for what, err := range map[string]error{"decide": c.Decide(t.Context(), Decision{ID: "x", Accept: true}), "page": pageErr} {
			if refused := err != nil && err.Error() == ErrFromAgent.Error(); refused != tt.refuse || err != nil && !refused {
				t.Errorf("%s: %s: %v", tt.name, what, err)
			}
		}
		if _, err := c.Connection(t.Context()); err != nil {
			t.Errorf("%s: env: %v", tt.name, err)
		}
	}
}
