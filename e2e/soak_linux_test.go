package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/child"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/rpc"
)

var soakFor = flag.Duration("soak", 30*time.Second, "how long TestSoak works; an hour has 100,000 diffs, 10,000 sessions and 1,000 restarts")

// TestSoak is a day in a short time: agents come, propose, are told of the decisions and go, some without a word; the user
// decides and moves the cursor; the machine sleeps (SIGSTOP). In one life the companion has an editor and lives on, in many lives it
// is ended or killed about every two seconds. Afterwards, with everybody gone, it holds no more memory, descriptors,
// threads, goroutines and files than it did after the first third. What happens to the texts is TestChaos's matter
// (SPEC T-6, L-4).
func TestSoak(t *testing.T) {
	t.Parallel()
	t.Run("one life", func(t *testing.T) { t.Parallel(); newSoak(t).oneLife() })
	t.Run("many lives", func(t *testing.T) { t.Parallel(); newSoak(t).manyLives() })
}

// agentsAtOnce is how many agents work at once; each has a rest of soakPace after each diff.
const (
	agentsAtOnce = 4
	soakPace     = 60 * time.Millisecond
)

// A soak is one companion after another, with what acts on it.
type soak struct {
	t   *testing.T
	b   *bench
	ctx context.Context
	// many says that companions end, which excuses an agent's errors.
	many bool
	// silent has every second session be left without a word; its companion then waits for 30 seconds.
	silent bool

	mu    sync.Mutex // guards the below
	port  int
	token string

	files                              atomic.Int64 // the number in a file's name
	diffs, sessions, restarts, asleeps atomic.Int64
}

func newSoak(t *testing.T) *soak {
	return &soak{t: t, b: newBench(t, nil), ctx: t.Context()}
}

// A size is what a companion holds and has left on the disk.
type size struct {
	anonymous float64 // MB
	fds       int
	threads   int
	files     int
	bytes     int64 // of those files
}

func (z size) String() string {
	return fmt.Sprintf("%.1f MB, %d descriptors, %d threads, %d files of %.1f MB", z.anonymous, z.fds, z.threads, z.files, float64(z.bytes)/(1<<20))
}

// oneLife has an editor move its cursor all the time, and its companion sleep now and then.
func (s *soak) oneLife() {
	e := s.lsp()
	first := s.phase(e.pid, *soakFor/3, e.moves, s.sleeps(e.pid))
	s.silent = true
	last := s.phase(e.pid, *soakFor*2/3, e.moves, s.sleeps(e.pid))
	s.compare(first, last)
	after := e.goroutines()
	fresh := newSoak(s.t)
	f := fresh.lsp()
	fresh.phase(f.pid, 3*time.Second, f.moves)
	before := f.goroutines()
	s.t.Logf("%d goroutines at the end; %d in one that has begun", after, before)
	if after > before+8 {
		s.t.Error("goroutines are left")
	}
}

// manyLives restarts its companion, in turn with a word and without.
func (s *soak) manyLives() {
	s.many = true
	c := s.serve()
	restarts := func(ctx context.Context) {
		for pause(ctx, 1500*time.Millisecond+rand.N(time.Second)) {
			if s.restarts.Add(1)%2 == 0 {
				c.end(syscall.SIGKILL)
			} else {
				c.end(syscall.SIGTERM)
			}
			pause(ctx, rand.N(200*time.Millisecond))
			port := c.Port
			if c = s.serve(); c.Port != port {
				s.t.Errorf("port %d after a restart; it was %d", c.Port, port)
			}
		}
	}
	s.phase(0, *soakFor/3, restarts)
	first := s.size(c.PID)
	s.phase(0, *soakFor*2/3, restarts) // no silent sessions: they would outlive a dozen lives, and grow in number
	s.compare(first, s.size(c.PID))
}

// compare reports growth. A life's memory has not come to rest after seconds, so a little is allowed; 100 bytes for each of an hour's
// diffs would be more.
func (s *soak) compare(first, last size) {
	s.t.Logf("%d diffs decided, %d sessions, %d restarts, asleep %d times. After the first third %v; at the end %v", s.diffs.Load(), s.sessions.Load(), s.restarts.Load(), s.asleeps.Load(), first, last)
	if s.diffs.Load() < int64(*soakFor/time.Second) {
		s.t.Errorf("only %d diffs in %v", s.diffs.Load(), *soakFor)
	}
	if last.anonymous > first.anonymous*1.25+3 {
		s.t.Errorf("memory grew from %.1f to %.1f MB", first.anonymous, last.anonymous)
	}
	if last.fds > first.fds+3 {
		s.t.Errorf("descriptors grew from %d to %d", first.fds, last.fds)
	}
	if last.threads > first.threads+8 { // Go starts one for a call that blocks, and keeps it
		s.t.Errorf("threads grew from %d to %d", first.threads, last.threads)
	}
	if last.files > max(first.files, historyFiles)+20 {
		s.t.Errorf("files grew from %d to %d", first.files, last.files)
	}
}

// historyFiles is a little more than the history has when it is full, with its 100 proposals.
const historyFiles = 105

// phase has everybody act for a while, and then waits until the agents' sessions are over. It measures a process, unless pid is 0.
func (s *soak) phase(pid int, long time.Duration, others ...func(context.Context)) (z size) {
	ctx, cancel := context.WithTimeout(s.ctx, long)
	defer cancel()
	var all sync.WaitGroup
	for range agentsAtOnce {
		all.Go(func() { s.agents(ctx) })
	}
	users, gone := context.WithCancel(s.ctx) // agents in the middle of a diff want its decision
	var user sync.WaitGroup
	user.Go(func() { s.user(users) })
	for _, other := range others {
		all.Go(func() { other(ctx) })
	}
	all.Wait()
	gone()
	user.Wait()
	s.alone()
	if pid != 0 {
		time.Sleep(2 * time.Second) // the history is written, and memory given back
		z = s.size(pid)
	}
	return z
}

// alone waits until the companion has no session: one that was left ends 30 seconds after its agent.
func (s *soak) alone() {
	for end := time.Now().Add(second(120)); ; time.Sleep(200 * time.Millisecond) {
		client, err := s.client(s.ctx)
		var left []control.Session
		if err == nil {
			left, err = client.Sessions(s.ctx)
			client.Close()
		}
		if err == nil && len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%d sessions are left, %v", len(left), err)
		}
	}
}

func (s *soak) client(ctx context.Context) (*control.Client, error) {
	run := filepath.Join(s.b.home.Dir, ".local", "state", "pollux", "run")
	return control.Find(ctx, []string{run}, s.b.dir)
}

// size measures a process, and what is in the user's folders.
func (s *soak) size(pid int) (z size) {
	proc := fmt.Sprintf("/proc/%d/", pid)
	fds, err := os.ReadDir(proc + "fd")
	if err != nil {
		s.t.Fatal(err)
	}
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		s.t.Fatal(err)
	}
	z.fds, z.threads, z.anonymous = len(fds), statusNumber(status, "Threads"), float64(statusNumber(status, "RssAnon"))/1024
	err = filepath.WalkDir(filepath.Dir(s.b.home.Dir), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			z.files++
			if info, err := e.Info(); err == nil {
				z.bytes += info.Size()
			}
		}
		return nil // it may have gone meanwhile
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return z
}

func statusNumber(status []byte, name string) int {
	_, rest, _ := bytes.Cut(status, []byte("\n"+name+":"))
	n, _ := strconv.Atoi(string(bytes.Fields(rest)[0]))
	return n
}

// pause waits; false when it is over.
func pause(ctx context.Context, long time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(long):
		return true
	}
}

// sleeps stops a process now and then, as a closed laptop does.
func (s *soak) sleeps(pid int) func(context.Context) {
	return func(ctx context.Context) {
		for pause(ctx, 3*time.Second+rand.N(6*time.Second)) {
			s.asleeps.Add(1)
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			pause(ctx, rand.N(2*time.Second))
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

// user decides what is open, but for what its agent takes back itself. Now and then the reviewer is closed and opened again.
func (s *soak) user(ctx context.Context) {
	for pause(ctx, 20*time.Millisecond) {
		client, err := s.client(ctx)
		if err != nil {
			continue // between two lives
		}
		if s.many && client.Attach(ctx) != nil { // where there is no editor
			client.Close()
			continue
		}
		for range 100 {
			open, err := client.Diffs(ctx)
			if err != nil {
				break
			}
			for _, d := range open {
				if !strings.Contains(d.Path, "back") {
					n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(d.Path), "a"), ".txt"))
					s.decide(ctx, client, d, n)
				}
			}
			if !pause(ctx, 20*time.Millisecond) {
				break
			}
		}
		client.Close()
	}
}

// decide accepts, edits and accepts, or rejects. It may fail: the companion can end at any time.
func (s *soak) decide(ctx context.Context, client *control.Client, d control.Diff, n int) {
	seen := control.Seen{Version: d.Version, Base: d.Base}
	way := n % 4
	if d.Conflict != nil { // these agents never write what was accepted before, so the file is not what it was to be; it waits (SPEC F-13)
		way = 0
	}
	switch way {
	case 0:
		_ = client.Decide(ctx, control.Decision{ID: d.ID, Seen: seen})
	case 1:
		text := "edited\n"
		_ = client.Decide(ctx, control.Decision{ID: d.ID, Accept: true, Content: &text, Seen: seen})
	default:
		_ = client.Decide(ctx, control.Decision{ID: d.ID, Accept: true, Seen: seen})
	}
}

// agents are processes one after the other, with five sessions each.
func (s *soak) agents(ctx context.Context) {
	for ctx.Err() == nil {
		way, end := s.process()
		for n := range 5 {
			if ctx.Err() == nil {
				s.session(ctx, way, !s.silent || n%2 == 0)
			}
		}
		end()
	}
}

// process starts a process whose connections are an agent's.
func (s *soak) process() (address string, end func()) {
	s.mu.Lock()
	port := s.port
	s.mu.Unlock()
	return passing(s.t, port)
}

// session is one session of an agent, with ten diffs.
func (s *soak) session(ctx context.Context, way string, polite bool) {
	c := s.join(way)
	if c == nil {
		pause(ctx, 20*time.Millisecond)
		return
	}
	defer c.leave(polite)
	s.sessions.Add(1)
	for range 10 {
		n := s.files.Add(1)
		name := fmt.Sprintf("a%d.txt", n%40)
		if n%5 == 0 {
			name = fmt.Sprintf("back%d.txt", n%40)
		}
		if !c.propose(s.b.path(name), n) || !pause(ctx, soakPace/2+rand.N(soakPace)) {
			return
		}
	}
}

// serve starts a companion without an editor.
func (s *soak) serve() *companion {
	c := s.b.serve()
	s.at(c.Port, tokenOf(s.t, c))
	return c
}

func (s *soak) at(port int, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.port, s.token = port, token
}

// A soakEditor is an editor that shows what it is told to.
type soakEditor struct {
	t    *testing.T
	dir  string
	pid  int
	peer *rpc.Peer
	said *bytes.Buffer // what pollux wrote to its standard error; to be read after ended
	over chan struct{}
}

// lsp starts a companion with an editor.
func (s *soak) lsp() *soakEditor {
	t := s.t
	cmd := exec.Command(shared.pollux, "lsp")
	e := &soakEditor{t: t, dir: s.b.dir, said: &bytes.Buffer{}, over: make(chan struct{})}
	cmd.Dir, cmd.Env, cmd.Stderr = s.b.dir, s.b.home.Env(), e.said
	in, out := child.Start(t, cmd)
	e.pid = cmd.Process.Pid
	e.peer = rpc.NewPeer(rpc.NewQueue(rpc.NewChannel(out, in, &rpc.Options{First: rpc.Lines})), rpc.PeerOptions{Handle: e.handle})
	go func() { _ = e.peer.Run(s.ctx); _ = cmd.Wait(); close(e.over) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); in.Close(); <-e.over })
	ctx, cancel := context.WithTimeout(s.ctx, second(60))
	defer cancel()
	var answer struct {
		Capabilities struct {
			Experimental struct {
				Pollux struct{ Env map[string]string }
			}
		}
	}
	if err := e.peer.Call(ctx, "initialize", object{
		"processId": os.Getpid(), "workspaceFolders": []object{{"uri": "file://" + s.b.dir}},
		"initializationOptions": object{"pollux": object{"version": 2, "context": true, "openDiff": true, "ide": object{"name": "soak", "displayName": "Soak"}}},
	}, &answer); err != nil {
		t.Fatal(err)
	}
	env := answer.Capabilities.Experimental.Pollux.Env
	port, err := strconv.Atoi(env["GEMINI_CLI_IDE_SERVER_PORT"])
	if err != nil {
		t.Fatal(err)
	}
	s.at(port, env["GEMINI_CLI_IDE_AUTH_TOKEN"])
	return e
}

// handle is the plugin: it edits nothing, and shows nothing to anybody.
func (e *soakEditor) handle(_ context.Context, method string, _ json.RawMessage) (any, error) {
	switch method {
	case "pollux/openDiff":
		return object{"opened": true}, nil
	case "pollux/closeDiff":
		return object{}, nil
	}
	return nil, nil
}

// moves moves the cursor.
func (e *soakEditor) moves(ctx context.Context) {
	path := filepath.Join(e.dir, "cursor.go")
	if err := os.WriteFile(path, []byte("package x\n"), 0o600); err != nil {
		e.t.Error(err)
	}
	for n := 0; pause(ctx, 30*time.Millisecond); n++ {
		e.peer.Notify("pollux/didChangeContext", object{
			"textDocument": object{"uri": "file://" + path}, "position": object{"line": n % 1000, "character": n % 7},
			"selections": []object{{"range": object{"start": object{"line": 0, "character": 0}, "end": object{"line": 0, "character": n % 9}}, "text": strings.Repeat("x", n%9)}},
		})
	}
}

// goroutines ends pollux by a signal at which Go says what all goroutines do, and counts them.
func (e *soakEditor) goroutines() int {
	if err := syscall.Kill(e.pid, syscall.SIGABRT); err != nil {
		e.t.Fatal(err)
	}
	<-e.over
	n := strings.Count(e.said.String(), "\ngoroutine ")
	if n == 0 {
		e.t.Fatalf("%s does not list its goroutines: %s", runtime.Version(), e.said)
	}
	return n
}
