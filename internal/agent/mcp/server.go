// Package mcp serves agents that speak MCP: sessions over Streamable HTTP and
// WebSocket, context out of state.Store, diffs into review.Registry, and
// outcomes back through each session's own queue. It knows no tool: the names and
// words are the Dialect's.
package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/core/notify"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/door"
	"github.com/pollux-companion/pollux/internal/proc"
)

// Bounds on what a CLI can make the companion hold (SPEC A-4, docs/limits.md). Package
// door bounds connections and bodies, package review diffs.
const (
	// maxSessions is the number of sessions at one time; the next initialize gets 503.
	maxSessions = 4096
	// maxStreams is the number of streams of a session; the next one ends the oldest.
	maxStreams = 4
	// maxCalls is the number of running requests of one session; the next one gets 429.
	maxCalls = 64
	// maxBatch is the number of messages in a batch (protocol 2025-03-26).
	maxBatch = 64
	// maxOld bounds a file whose diff is shown, in bytes.
	maxOld = 16 << 20
	// bodyBudget is the memory, in bytes, for bodies over 256 KiB that are read at one time.
	bodyBudget = 512 << 20
	// keptSent and keptFor bound the outcomes that are kept after they were sent, until the
	// CLI confirms them by a Last-Event-ID.
	keptSent  = 32
	keptBytes = 64 << 20
	keptFor   = 2 * time.Minute
	// pieceTimeout is how long a stream's peer may take over pieceSize bytes.
	pieceTimeout = 20 * time.Second
	pieceSize    = 256 << 10
	// deletedIDs is how many ids of deleted sessions are remembered one by one.
	deletedIDs = 1024
	// askAfter is how long after a request the search for the process behind its connection begins.
	askAfter = 100 * time.Millisecond
	// readyWithin is how long a request waits for Options.Ready.
	readyWithin = 10 * time.Second
	// lastRequests is how long Shutdown waits for running requests.
	lastRequests = 200 * time.Millisecond
)

// Options configure a Server. Store, Registry and Agents are required.
type Options struct {
	Store    *state.Store
	Registry *review.Registry
	// Agents may come in, each with a token of its own.
	Agents []Agent
	// OlderFor is how long after the start an agent's older token is good; 10 minutes when 0 (SPEC A-1). It opens a session for a
	// process that had one, and serves a session of an earlier life whose process is not known.
	OlderFor time.Duration
	// Known are the processes of sessions of earlier lives, by the sessions' ids, as Server.Known returned them.
	Known map[string][]proc.Info
	// Meet is told the processes of every CLI that connects, and those of Known: its go-betweens first, the CLI itself last. It must not
	// block. With nil nobody hears of them.
	Meet func(processes ...proc.Info)
	// Version is pollux's own, as clients see it.
	Version string
	// ExtraHosts are further names, without port, by which clients may call the listener:
	// host.docker.internal (SPEC T-8).
	ExtraHosts []string
	// MayDecide says why a session's diffs must not be decided here, for the model to read; nil when they may. agent are the processes
	// of its CLI, none when they are not known. A nil function allows every session.
	MayDecide func(agent []proc.Info) error
	// WriteFile serves POST /write-file (SPEC T-11), and returns errors of package workspace; nil turns it off.
	WriteFile func(path string, content []byte) error
	// Process returns the processes of the CLI at the other end of a connection, the CLI itself last; none when they
	// cannot be known. It may take milliseconds. With nil they are never known.
	Process func(client, server netip.AddrPort) []proc.Info
	// Behind returns the same for the process at the other end of a private connection. It is called only when Process
	// is set.
	Behind func(pid int) []proc.Info
	// Journal is told what must survive a crash; nil keeps nothing.
	Journal Journal
	// Ready is closed when the sessions and outcomes of an earlier life are back (Bring, Adopt). Requests of
	// unknown sessions wait for it. With nil they wait for nothing.
	Ready <-chan struct{}
	// Deleted are the ids of sessions that an earlier life deleted. Floor, as Server.Floor returned it, stands for older ones.
	Deleted []string
	Floor   uint64
	// Life counts the lives with this SessionKey. Event and session ids carry it.
	Life uint32
	// KeepAlive is the longest silence of a stream (30 s when 0; SPEC T-5).
	KeepAlive time.Duration
	// Grace is how long a session lives with neither stream nor request (30 s when 0; SPEC T-3).
	Grace time.Duration
	// Retry is when a client comes back after its stream has ended (3 s when 0). A client
	// tries once without a message to its user, so a restarted companion has this time to be
	// back.
	Retry time.Duration
	// Late is how long Shutdown waits for the stream of a CLI that has just connected, or is just coming back, and has an outcome to
	// hear (250 ms when 0).
	Late time.Duration
	// Log discards when nil. It gets no contents and no tokens.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	setDefault(&o.KeepAlive, 30*time.Second)
	setDefault(&o.Grace, 30*time.Second)
	setDefault(&o.Retry, 3*time.Second)
	setDefault(&o.Late, 250*time.Millisecond)
	setDefault(&o.OlderFor, olderFor)
	setDefault(&o.Version, "dev")
	if o.Meet == nil {
		o.Meet = func(...proc.Info) {}
	}
	setDefault(&o.Log, slog.New(slog.DiscardHandler))
	return o
}

func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// A Server is one companion's side for CLIs. Its methods may be called from any
// goroutine. Never take the server's mu while
// you hold a session's mu. The journal is called with a session's mu held, and must not
// call back.
// Goroutines: net/http's one per connection, ended by the door's timeouts; for
// each event stream one that waits for its end (session.attach starts it, the
// end of the connection stops it) and, only while a peer reads slowly, one that
// writes (stream.kick starts it; it ends when nothing is left, or on a peer that
// reads nothing for 20 s); for each new session and stream, a short one that calls
// Options.Process. Keep-alives and the ends of sessions are timers.
type Server struct {
	o       Options
	agents  []*entrance
	door    *door.Door
	http    *http.Server
	bodies  *door.Budget
	watch   notify.List[struct{}]
	stop    func()        // ends the subscription to the store
	life    string        // distinguishes event ids of this life from those before a restart
	asking  chan struct{} // one place, so that one call of Options.Process runs at a time
	closing atomic.Bool   // Shutdown has begun
	begun   time.Time
	heirs   []proc.Info // the processes of Options.Known, of sessions with one that lives

	mu       sync.RWMutex           // guards all below
	known    map[string][]proc.Info // see Known
	sessions map[string]*Session
	numbers  map[int]bool      // of live sessions
	kept     map[proc.Info]int // numbers of CLIs that may come back; see keep
	next     int               // the next number
	deleted  []string          // ids that were deleted, newest last
	floor    uint64            // see trimDeleted
	beating  *time.Timer       // keep-alives; nil while there is no session
}

// New returns a server that is subscribed to the store, and listens nowhere yet.
func New(o Options) *Server {
	s := &Server{
		o:        o.withDefaults(),
		bodies:   door.NewBudget(bodyBudget),
		life:     rand.Text()[:8],
		asking:   make(chan struct{}, 1),
		sessions: map[string]*Session{},
		numbers:  map[int]bool{},
		kept:     map[proc.Info]int{},
		next:     1,
		deleted:  slices.Clone(o.Deleted),
		floor:    o.Floor,
		begun:    time.Now(),
		known:    map[string][]proc.Info{},
	}
	maps.Copy(s.known, o.Known)
	for _, id := range o.Deleted {
		delete(s.known, id)
	}
	s.trimDeleted()
	for _, id := range slices.SortedFunc(maps.Keys(s.known), func(a, b string) int { return cmp.Compare(birthOf(a).order(), birthOf(b).order()) }) {
		if processes := s.known[id]; slices.ContainsFunc(processes, lives) {
			s.heirs = append(s.heirs, processes...)
			s.keep(birthOf(id).number, processes)
			s.o.Meet(processes...)
		}
	}
	for _, a := range o.Agents {
		s.agents = append(s.agents, newEntrance(a))
	}
	s.door = door.New(door.Options{
		Credential: func(r *http.Request) bool { return s.entered(r) != nil },
		Eighths:    5,
		Full:       string(jsonrpc.Error(nil, jsonrpc.CodeInternal, tooMany)),
		TooLarge:   string(jsonrpc.Error(nil, jsonrpc.CodeInvalidRequest, tooLarge)),
		Log:        s.o.Log,
	})
	s.http = s.door.Server(s.routes())
	s.withBehind(s.http)
	s.stop = o.Store.Subscribe(s.publish)
	for _, e := range s.everyone() {
		e.context.CompareAndSwap(nil, newFrame(e.Dialect.Context(o.Store.Snapshot().For(e.Name))))
	}
	return s
}

// lookEvery is how often Deliver checks the sessions.
const lookEvery = 20 * time.Millisecond

// Serve answers on a listener until Shutdown, and then returns nil. It may be called
// for several listeners (SPEC T-8).
func (s *Server) Serve(l net.Listener) error {
	if err := s.door.Admit(l.Addr(), s.o.ExtraHosts...); err != nil {
		return err
	}
	err := s.http.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// A SessionInfo is what is known about one session.
type SessionInfo struct {
	// ID is its number, 1-based, which its Label carries.
	ID    int
	Label string // "Gemini CLI #2"
	Agent string // Agent.Name
	Since time.Time
	// Client and Version are what the CLI says of itself; "" for a session adopted after a restart.
	Client, Version string
	// PID and Process are the CLI's process; 0 and "" when unknown.
	PID     int
	Process string
	// Folder is where the CLI says that it works, absolute and clean; "" when it says nothing. Says is the process that it says it is,
	// 0 for none. Nobody has checked either.
	Folder string
	Says   int
}

// Sessions lists the live sessions by number.
func (s *Server) Sessions() []SessionInfo {
	var infos []SessionInfo
	for _, sess := range s.live() {
		infos = append(infos, sess.describe())
	}
	sortByID(infos)
	return infos
}

// Floor returns a number that stands for the ids of sessions that were deleted long ago. Pass it as Options.Floor to the next life.
func (s *Server) Floor() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.floor
}

// Watch calls f when the result of Sessions may have changed; f must not block. After
// cancel returns, f is not called again.
func (s *Server) Watch(f func()) (cancel func()) {
	return s.watch.Add(func(struct{}) { f() })
}

// Shutdown delivers the waiting outcomes, ends every stream so that its CLI comes back
// by itself (SPEC L-1), and stops serving. The registry must be shut before, so that
// every running request gets its answer. What does not get through before ctx ends is
// cut off. Outcomes that a CLI was not sent stay in the Journal.
func (s *Server) Shutdown(ctx context.Context) error {
	s.closing.Store(true)
	s.stop()
	sessions := s.live()
	for _, sess := range sessions {
		sess.finishStreams()
	}
	late, cancelLate := context.WithTimeout(ctx, s.o.Late)
	s.Deliver(late)
	cancelLate()
	for _, sess := range sessions {
		sess.waitStreams(ctx)
		sess.keepUnheard()
		sess.end()
	}
	// The registry is shut, so running requests have their answers. Connections that are
	// left now belong to peers that have not finished their request.
	ctx, cancel := context.WithTimeout(ctx, lastRequests)
	defer cancel()
	if err := s.http.Shutdown(ctx); err == nil {
		return nil
	}
	return s.http.Close()
}

// Deliver waits until streams have taken every outcome, or ctx ends. A CLI may be just coming back (Options.Retry).
func (s *Server) Deliver(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for slices.ContainsFunc(s.live(), (*Session).waits) {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// publish sends a context to every session, except when its agent could not tell it from
// the last one. The store calls it, one call at a time.
func (s *Server) publish(snap *state.Snapshot) {
	changed := map[*entrance]*frame{}
	for _, e := range s.everyone() {
		f := newFrame(e.Dialect.Context(snap.For(e.Name)))
		if old := e.context.Swap(f); old == nil || !old.equal(f) {
			changed[e] = f
		}
	}
	for _, sess := range s.live() {
		if f := changed[sess.agent]; f != nil {
			sess.tellContext(f)
		}
	}
}

// live returns the sessions of this moment.
func (s *Server) live() []*Session {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*Session, 0, len(s.sessions))
	for _, sess := range s.sessions {
		all = append(all, sess)
	}
	return all
}

// beat keeps silent streams from looking dead (SPEC T-5).
func (s *Server) beat() {
	for _, sess := range s.live() {
		sess.beat()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() || len(s.sessions) == 0 {
		s.beating = nil
		return
	}
	s.beating.Reset(NextBeat(time.Now(), s.o.KeepAlive))
}

// NextBeat returns how long to wait for the next beat. Beats come when the clock shows a multiple of every, so that everything wakes at
// one time: an idle companion wakes twice a minute, however many sessions it has.
func NextBeat(now time.Time, every time.Duration) time.Duration {
	wait := now.Truncate(every).Add(every).Sub(now)
	if wait < every/10 { // this beat came a little early
		wait += every
	}
	return wait
}
