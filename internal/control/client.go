package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/creachadair/jrpc2"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/ownpipe"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/rpc"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// socketSuffix ends the name of every socket.
const socketSuffix = ".sock"

// dialTimeout bounds how long a companion may take to say who it is. A stopped companion
// never answers, and is passed over; a busy machine must not look like that.
const dialTimeout = 2 * time.Second

// settling is longer than it can take from a socket's creation until its owner listens.
const settling = 2 * time.Second

// A Client talks to one companion, from Dial to Close. Its methods may be called from any goroutine.
type Client struct {
	Status Status // as it was when the client dialled
	rpc    *jrpc2.Client
	conn   *carrier
	path   string
	server proc.Info              // the process that listens there; its PID is 0 when the system does not say
	ended  bool                   // that process has ended, and another one answers
	opened atomic.Pointer[func()] // the callback of Propose
	gone   chan struct{}          // closed when the connection has ended
}

// Dial connects to the companion behind a socket.
func Dial(ctx context.Context, path string) (*Client, error) { return join(ctx, path, false) }

// join is Dial; with takes, it also accepts a listening socket with an answer.
func join(ctx context.Context, path string, takes bool) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := ownpipe.Dial(ctx, ownpipe.Name(path))
	if err != nil {
		return nil, err
	}
	c := &Client{conn: carry(conn, takes), path: path, gone: make(chan struct{})}
	c.server, err = ownpipe.Who(conn) // Dial has checked whose it is
	c.ended = errors.Is(err, ownpipe.ErrEnded)
	c.rpc = jrpc2.NewClient(rpc.NewChannel(c.conn, c.conn, nil), &jrpc2.ClientOptions{OnNotify: c.notified, OnStop: func(*jrpc2.Client, error) { close(c.gone) }})
	if err := c.call(ctx, methodStatus, empty{}, &c.Status); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Again connects once more to the companion of c. It fails when another process listens at that socket by now, which any program of the
// user's can bring about.
func (c *Client) Again(ctx context.Context) (*Client, error) {
	again, err := Dial(ctx, c.path)
	if err != nil {
		return nil, err
	}
	if again.ended || again.server.PID != c.server.PID || again.server.Start != c.server.Start {
		again.Close()
		return nil, fmt.Errorf("another program listens at %s, where process %d did; start that companion again", c.path, c.server.PID)
	}
	return again, nil
}

// Path returns the absolute path of the companion's socket, which no other companion has.
func (c *Client) Path() string { return c.path }

// Began says when the process began that listens at the socket, whatever Status says; 0 when the system does not tell.
func (c *Client) Began() proc.Stamp { return c.server.Start }

// Close ends the connection.
func (c *Client) Close() {
	_ = c.rpc.Close()
	c.conn.drop()
}

// ErrStopped: the companion ended before it answered, cleanly or not.
var ErrStopped = errors.New("the companion has stopped before it answered; open its editor again, or run pollux serve, and ask again")

// call turns the companion's errors into plain text for a person. When the connection
// ends, the library reports its calls as cancelled; call says ErrStopped then, since the
// caller has cancelled nothing. It says so as well when the companion had the time to answer that it ends.
func (c *Client) call(ctx context.Context, method string, params, result any) error {
	err := c.rpc.CallResult(ctx, method, params, result)
	var je *jrpc2.Error
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.As(err, &je) && je.Code == jrpc2.SystemError && je.Message != ErrStopped.Error() && je.Message != review.ErrShut.Error():
		return errors.New(je.Message)
	case je != nil && je.Code == jrpc2.SystemError, c.rpc.IsStopped(), errors.Is(err, context.Canceled):
		return ErrStopped
	}
	return err
}

// Sessions lists the connected CLIs.
func (c *Client) Sessions(ctx context.Context) (v []Session, err error) {
	return v, c.call(ctx, methodSessions, empty{}, &v)
}

// agents returns the agents that the companion knows, also by their go-betweens.
func (c *Client) agents(ctx context.Context) (v Agents, err error) {
	return v, c.call(ctx, methodAgents, empty{}, &v)
}

// judged returns what the companion takes this process for, whatever this process can see: the system tells the companion which process asks.
func (c *Client) judged(ctx context.Context) (verdict string, err error) {
	var v judgeReply
	err = c.call(ctx, methodJudge, empty{}, &v)
	return v.Verdict, err
}

// Diffs lists the open proposals, oldest first.
func (c *Client) Diffs(ctx context.Context) (v []Diff, err error) {
	return v, c.call(ctx, methodDiffs, empty{}, &v)
}

// Decide settles a proposal.
func (c *Client) Decide(ctx context.Context, d Decision) error {
	p := decideParams{ID: d.ID, Accept: d.Accept, Seen: d.Seen, InAgent: inAgent()}
	if d.Content != nil {
		p.Content, p.HasText = []byte(*d.Content), true
	}
	return c.call(ctx, methodDecide, p, &empty{})
}

// Open shows a file in the companion's editor.
func (c *Client) Open(ctx context.Context, l Location) error {
	return c.call(ctx, methodOpen, l, &empty{})
}

// Save has the companion's editor write its unsaved changes of a file. A model's shell gets ErrFromAgent.
func (c *Client) Save(ctx context.Context, path string) error {
	return c.call(ctx, methodSave, saveParams{path, inAgent()}, &empty{})
}

// Ask puts a question to the person in front of the editor; nil when they made no choice.
func (c *Client) Ask(ctx context.Context, q Question) (*string, error) {
	var v askReply
	err := c.call(ctx, methodAsk, q, &v)
	return v.Choice, err
}

// Context returns what the user looks at.
func (c *Client) Context(ctx context.Context) (v *state.Snapshot, err error) {
	return v, c.call(ctx, methodContext, contextParams{inAgent()}, &v)
}

// Page returns a fresh address of the editor page.
func (c *Client) Page(ctx context.Context) (string, error) {
	var v pageReply
	err := c.call(ctx, methodPage, pageParams{inAgent()}, &v)
	return v.Address, err
}

// Pause stops telling agents what the user looks at, or resumes it. A model's shell may only stop it, and otherwise gets ErrFromAgent.
func (c *Client) Pause(ctx context.Context, paused bool) error {
	return c.call(ctx, methodPause, pauseParams{paused, inAgent()}, &empty{})
}

// Share says whether an agent is told what the user looks at, in the companion's workspace: "always", "ask" or "never". A
// model's shell may only say never, and otherwise gets ErrFromAgent.
func (c *Client) Share(ctx context.Context, agent, mode string) error {
	return c.call(ctx, methodShare, shareParams{agent, mode, inAgent()}, &empty{})
}

// Lend tells a companion what the user of another one looks at; active says that this user was active just now. What is lent ends with
// the connection. It returns the sessions of that companion.
func (c *Client) Lend(ctx context.Context, snap *state.Snapshot, active bool) ([]Session, error) {
	var v lendReply
	err := c.call(ctx, methodLend, lendParams{snap, active}, &v)
	return v.Sessions, err
}

// Gone is closed when the connection has ended.
func (c *Client) Gone() <-chan struct{} { return c.gone }

// Connection returns what a CLI needs to reach the companion.
func (c *Client) Connection(ctx context.Context) (v Connection, err error) {
	return v, c.call(ctx, methodEnv, empty{}, &v)
}

// List connects to every companion of this user whose socket lies in dirs, newest first.
// It removes sockets on which nobody listens. The caller closes the clients.
func List(ctx context.Context, dirs []string) []*Client {
	clients, _ := ListAll(ctx, dirs)
	return clients
}

// Others is List without the companion whose socket is own: it is not asked, so that it need not wake to answer itself.
func Others(ctx context.Context, dirs []string, own string) []*Client {
	clients, _ := list(ctx, slices.DeleteFunc(sockets(dirs), func(path string) bool { return path == own }))
	return clients
}

// A Silent is a process that holds a socket and does not say who it is.
type Silent struct {
	PID  int  // as the socket's name says
	Full bool // it takes no more connections; otherwise it hangs, or is stopped
}

// ListAll is List, and also returns the processes that hold a socket and do not answer: see SilentError.
func ListAll(ctx context.Context, dirs []string) (clients []*Client, silent []Silent) {
	return list(ctx, sockets(dirs))
}

func list(ctx context.Context, paths []string) (clients []*Client, silent []Silent) {
	var (
		mu   sync.Mutex
		wait sync.WaitGroup
	)
	for _, path := range paths {
		wait.Go(func() {
			c, err := dialBusy(ctx, path)
			if errors.Is(err, ownpipe.ErrRefused) && settled(path) {
				_ = os.Remove(path)
			}
			mu.Lock()
			defer mu.Unlock()
			pid, _, _ := strings.Cut(filepath.Base(path), "-")
			n, noNumber := strconv.Atoi(pid)
			switch {
			case err == nil:
				clients = append(clients, c)
			case noNumber == nil && (busy(err) || errors.Is(err, context.DeadlineExceeded)):
				silent = append(silent, Silent{n, busy(err)})
			}
		})
	}
	wait.Wait()
	slices.SortFunc(clients, func(a, b *Client) int {
		if n := b.Status.Started.Compare(a.Status.Started); n != 0 {
			return n
		}
		return b.Status.PID - a.Status.PID
	})
	slices.SortFunc(silent, func(a, b Silent) int { return a.PID - b.PID })
	return clients, silent
}

// busyFor is how long a companion that takes no connection is asked again: one that is just stopping is gone after that.
const busyFor = 300 * time.Millisecond

// dialBusy is Dial, again and again for busyFor while the companion takes no connection.
func dialBusy(ctx context.Context, path string) (c *Client, err error) {
	for limit := time.Now().Add(busyFor); ; time.Sleep(20 * time.Millisecond) {
		if c, err = Dial(ctx, path); !busy(err) || ctx.Err() != nil || time.Now().After(limit) {
			return c, err
		}
	}
}

// busy says whether an error of Dial is that of a companion whose connections are all taken: it closes further ones, or lets them wait.
func busy(err error) bool {
	return slices.ContainsFunc([]error{ErrStopped, syscall.EAGAIN, syscall.EPIPE, syscall.ECONNRESET}, func(e error) bool { return errors.Is(err, e) })
}

// settled says that a socket is old enough to be removed. A fresh one refuses connections
// between its creation and its owner's listening.
func settled(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && time.Since(info.ModTime()).Abs() > settling
}

// maxSockets bounds how many sockets are asked, so that asking them all stays cheap.
const maxSockets = 256

// sockets lists the paths of the sockets in dirs, each once, as many as are asked.
func sockets(dirs []string) []string {
	paths := socketsIn(dirs)
	return paths[:min(len(paths), maxSockets)]
}

func socketsIn(dirs []string) (paths []string) {
	for _, dir := range dirs {
		for _, path := range filesIn(dir, socketSuffix) {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// filesIn lists the files of a folder whose names have a suffix: none when the folder is missing, or other users could put files there.
func filesIn(dir, suffix string) (paths []string) {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() || safefile.PrivateDir(dir) != nil {
		return nil
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// ErrSilent: a companion that may serve the folder runs, but does not answer. The error's text says which.
var ErrSilent = errors.New("a companion does not answer")

// SilentError is an ErrSilent about these processes, with what helps.
func SilentError(silent []Silent) error {
	var hang, full []string
	for _, s := range silent {
		if pid := strconv.Itoa(s.PID); s.Full {
			full = append(full, pid)
		} else {
			hang = append(hang, pid)
		}
	}
	var parts []string
	if len(hang) > 0 {
		parts = append(parts, fmt.Sprintf("process %s hangs or is stopped (Ctrl-Z); take it up again (kill -CONT %s), or end it and start it again",
			strings.Join(hang, ", "), strings.Join(hang, " ")))
	}
	if len(full) > 0 {
		parts = append(parts, fmt.Sprintf("process %s runs, but other programs of yours hold all connections of its control socket; end those, an agent's shell perhaps, or end it and start it again",
			strings.Join(full, ", ")))
	}
	return fmt.Errorf("%w: %s", ErrSilent, strings.Join(parts, "; "))
}

// quoted lists names for a person; the names may hold anything.
func quoted(names []string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = strconv.Quote(n)
	}
	return strings.Join(list, ", ")
}
