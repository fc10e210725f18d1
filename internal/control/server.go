package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/handler"

	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/ownpipe"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// Bounds on what a peer can make the companion hold (SPEC A-4).
const (
	maxPeers = 64       // connections at once, fewer where few descriptors are allowed; agents' processes get half of them
	maxBody  = 48 << 20 // bytes of a message: a proposal with two texts of 16 MiB, in base64
	maxCalls = 8        // at once on a connection; some wait for the user
)

// mostPeers is maxPeers, or an eighth of the connections that this process may have.
var mostPeers = sync.OnceValue(func() int { return min(maxPeers, max(4, proc.Connections()/8)) })

// A Server answers on one socket, from Listen to Close. Goroutines: one that
// accepts, and for each connection the ones of its jrpc2 server; Close ends and awaits all.
type Server struct {
	backend Backend
	log     *slog.Logger
	ln      net.Listener
	done    sync.WaitGroup

	orphans orphans
	joined  askers

	mu      sync.Mutex // guards the below
	conns   map[net.Conn]struct{}
	closed  bool
	unpoint func() // of PointFrom; nil for no pointer
}

// Listen opens a socket in the first of dirs that can be made private and whose name is short enough, and serves b on it.
func Listen(dirs []string, b Backend, log *slog.Logger) (*Server, error) {
	ln, err := ownpipe.ListenIn(dirs, socketSuffix)
	if err != nil {
		return nil, fmt.Errorf("no place for the control socket: %w", err)
	}
	s := &Server{backend: b, log: log, ln: ln, conns: map[net.Conn]struct{}{}}
	s.done.Go(s.accept)
	return s, nil
}

// Path returns the socket's absolute path.
func (s *Server) Path() string { return s.ln.Addr().String() }

func (s *Server) accept() {
	for {
		conn, err := s.ln.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			s.log.Warn("the control socket did not accept", "err", err)
			time.Sleep(50 * time.Millisecond) // most likely out of descriptors
			continue
		}
		from, err := ownpipe.Who(conn)
		if err != nil {
			s.log.Warn("a stranger at the control socket", "process", from.PID, "err", err)
			conn.Close()
			continue
		}
		if !s.add(conn) {
			conn.Close()
			continue
		}
		s.done.Go(func() {
			defer s.drop(conn)
			if s.room(from.PID) {
				s.serve(conn, from)
			}
		})
	}
}

// room says whether a process may have one more connection: when half of them are taken, only a person's may, so that an agent cannot
// keep its user's commands out.
func (s *Server) room(pid int) bool {
	s.mu.Lock()
	half := len(s.conns) > mostPeers()/2
	s.mu.Unlock()
	if !half {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	v := guard.Look(pid, s.backend.Agents(ctx).Processes)
	return v != guard.Marked && v != guard.Below
}

func (s *Server) add(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns) >= mostPeers() {
		return false
	}
	s.conns[conn] = struct{}{}
	return true
}

func (s *Server) drop(conn net.Conn) {
	conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

func (s *Server) serve(conn net.Conn, from proc.Info) {
	out := carry(conn, false)
	ch := rpc.NewChannel(conn, out, &rpc.Options{MaxBody: maxBody})
	s.orphans.note(from, s.backend.Meet)
	p := &peer{b: s.backend, from: from, out: out, orphans: &s.orphans, joined: &s.joined, attached: make(chan func(), 1)}
	defer p.end()
	srv := jrpc2.NewServer(p.methods(), &jrpc2.ServerOptions{AllowPush: true, Concurrency: maxCalls}).Start(ch)
	if err := srv.Wait(); err != nil {
		s.log.Debug("a control connection ended", "err", err)
	}
}

// Close ends every connection, removes the socket and waits for what runs.
func (s *Server) Close() {
	s.mu.Lock()
	if s.unpoint != nil {
		s.unpoint() // first: it promises that somebody answers
	}
	s.closed = true
	for conn := range s.conns {
		conn.Close()
	}
	s.mu.Unlock()
	s.ln.Close() // removes the file as well
	s.done.Wait()
}

// method adapts a typed function to a handler.
func method[P, R any](f func(context.Context, P) (R, error)) jrpc2.Handler {
	return func(ctx context.Context, req *jrpc2.Request) (any, error) {
		var p P
		if req.HasParams() {
			if err := req.UnmarshalParams(&p); err != nil {
				return nil, err
			}
		}
		return f(ctx, p)
	}
}

// methods returns the methods of one connection.
func (p *peer) methods() handler.Map {
	b := p.b
	all := handler.Map{
		methodStatus: method(func(context.Context, empty) (Status, error) {
			status := b.Status()
			status.Askers = p.joined.list()
			return status, nil
		}),
		methodJoin: method(func(_ context.Context, a Asker) (empty, error) {
			if p.joined.add(a, p.from) {
				b.Joined(p.from)
			}
			return empty{}, nil
		}),
		methodEnv:      method(func(context.Context, empty) (Connection, error) { return b.Connection(), nil }),
		methodSessions: method(func(context.Context, empty) ([]Session, error) { return b.Sessions(), nil }),
		methodAgents:   method(func(ctx context.Context, _ empty) (Agents, error) { return p.known(ctx), nil }),
		methodJudge:    method(p.judged),
		methodDiffs:    method(func(context.Context, empty) ([]Diff, error) { return b.Diffs(), nil }),
		methodContext: method(func(ctx context.Context, in contextParams) (*state.Snapshot, error) {
			return p.mayKnow(ctx, in.InAgent, b.Context())
		}),
		methodDecide: method(func(ctx context.Context, d decideParams) (empty, error) {
			if err := p.trusted(ctx, d.InAgent); err != nil {
				return empty{}, err
			}
			decision := Decision{ID: d.ID, Accept: d.Accept, Seen: d.Seen}
			if d.HasText {
				text := string(d.Content)
				decision.Content = &text
			}
			return empty{}, b.Decide(decision)
		}),
		methodOpen: method(func(ctx context.Context, l Location) (empty, error) { return empty{}, b.Open(ctx, l) }),
		methodSave: method(func(ctx context.Context, in saveParams) (empty, error) {
			if err := p.trusted(ctx, in.InAgent); err != nil {
				return empty{}, err
			}
			return empty{}, b.Save(ctx, in.Path)
		}),
		methodAsk: method(func(ctx context.Context, q Question) (askReply, error) {
			choice, err := b.Ask(ctx, q)
			return askReply{choice}, err
		}),
		methodPause: method(func(ctx context.Context, in pauseParams) (empty, error) {
			if !in.Paused { // anybody may stop sharing
				if err := p.trusted(ctx, in.InAgent); err != nil {
					return empty{}, err
				}
			}
			b.Pause(in.Paused)
			return empty{}, nil
		}),
		methodShare: method(func(ctx context.Context, in shareParams) (empty, error) {
			if in.Mode != "never" { // anybody may stop sharing
				if err := p.trusted(ctx, in.InAgent); err != nil {
					return empty{}, err
				}
			}
			return empty{}, b.SetShare(in.Agent, in.Mode)
		}),
		methodLend:    method(p.lend),
		methodMention: method(p.mention),
		methodPage: method(func(ctx context.Context, in pageParams) (pageReply, error) {
			if err := p.trusted(ctx, in.InAgent); err != nil {
				return pageReply{}, err
			}
			address, err := b.Page()
			return pageReply{address}, err
		}),
	}
	maps.Copy(all, p.reviewing())
	maps.Copy(all, p.keeping())
	return all
}
