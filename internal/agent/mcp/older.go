package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/ownpipe"
	"github.com/pollux-companion/pollux/internal/proc"
)

// olderFor is how long after its start a server lets an older token open sessions (SPEC A-1).
const olderFor = 10 * time.Minute

// inherited says whether an agent's older token may serve a request. It serves sessions of an earlier life, for processes that had it,
// and sessions that such a process has opened since (some agents come back with a new session). A process that got hold of the
// token otherwise gains nothing (SPEC A-1).
func (s *Server) inherited(agent *entrance, r *http.Request) bool {
	id := header(r, sessionHeader)
	if agent.Socket {
		return r.URL.Path == "/" && s.early() && s.hadSession(r)
	}
	if id == "" {
		opens := r.Method == http.MethodPost && r.URL.Path == "/mcp" || r.URL.Path == "/stream"
		return opens && s.early() && s.hadSession(r)
	}
	_, own := openSessionID(agent.SessionKey, id)
	s.mu.RLock()
	sess, processes := s.sessions[id], s.known[id]
	s.mu.RUnlock()
	switch {
	case !own:
		return false
	case sess != nil && !sess.adopted:
		return sess.heir && s.hadSession(r)
	case len(processes) > 0:
		return s.comesFrom(r, processes)
	}
	return sess != nil || s.early() // its process was never known: it may run in a container
}

// early says whether this life began less than Options.OlderFor ago.
func (s *Server) early() bool { return time.Since(s.begun) < s.o.OlderFor }

// hadSession says whether a request comes from a process that had a session in an earlier life.
func (s *Server) hadSession(r *http.Request) bool { return s.comesFrom(r, s.heirs) }

// comesFrom says whether one of these processes is behind a request.
func (s *Server) comesFrom(r *http.Request, processes []proc.Info) bool {
	return slices.ContainsFunc(s.behindOf(r.Context()), func(p proc.Info) bool {
		return slices.ContainsFunc(processes, func(known proc.Info) bool {
			return p.PID == known.PID && p.Start == known.Start && p.Start != 0
		})
	})
}

type behindKey struct{}

// A behind remembers the processes behind one connection. The first question searches for them, which may take milliseconds.
type behind struct {
	find func() []proc.Info

	mu    sync.Mutex // guards found; held during a search
	found []proc.Info
}

// withBehind prepares behindOf for the connections of an HTTP server.
func (s *Server) withBehind(h *http.Server) {
	inner := h.ConnContext
	h.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		from, err := ownpipe.Who(conn) // now: when that process has ended, another may get its number
		private := s.o.Behind != nil && (from.PID > 0 || errors.Is(err, ownpipe.ErrEnded))
		return context.WithValue(inner(ctx, conn), behindKey{}, &behind{find: func() []proc.Info {
			if private {
				found := s.o.Behind(from.PID)
				if err != nil || !proc.Same(from.PID, from.Start) { // asked after Behind, so that Behind saw this process
					return nil
				}
				return found
			}
			peer, _ := netip.ParseAddrPort(fmt.Sprint(conn.RemoteAddr()))
			local, _ := netip.ParseAddrPort(fmt.Sprint(conn.LocalAddr()))
			return s.o.Process(peer, local)
		}})
	}
}

// behindOf returns the processes behind the connection of a request; none when they cannot be known. Then another call tries again.
func (s *Server) behindOf(ctx context.Context) []proc.Info {
	b, ok := ctx.Value(behindKey{}).(*behind)
	if !ok || s.o.Process == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.found) == 0 {
		b.found = b.find()
	}
	return b.found
}

// Known returns the processes of the sessions of this life and earlier ones, by the sessions' ids. Pass it as
// Options.Known to the next life. A session of an earlier life that has ended with all its processes is deleted: nobody can come back to it.
func (s *Server) Known() map[string][]proc.Info {
	for _, id := range s.deserted() {
		s.bury(id)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.known)
}

// deserted returns the known sessions of earlier lives that have ended with all their processes, which alone could use their tokens. Until
// Options.Ready, one may still be brought back.
func (s *Server) deserted() (ids []string) {
	if s.o.Ready != nil {
		select {
		case <-s.o.Ready:
		default:
			return nil
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for id, processes := range s.known {
		if s.sessions[id] == nil && birthOf(id).life != s.o.Life && !slices.ContainsFunc(processes, lives) {
			ids = append(ids, id)
		}
	}
	return ids
}

func lives(p proc.Info) bool { return proc.Same(p.PID, p.Start) }

// remember keeps the processes of a session, so that its older token serves nobody else, and its number stays its CLI's. The slice
// must not be changed afterwards.
func (s *Server) remember(sess *Session, cli proc.Info, processes []proc.Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[sess.id] == nil {
		return // it has ended meanwhile, perhaps for good
	}
	s.known[sess.id] = processes
	s.keep(sess.number, []proc.Info{cli})
	if len(s.known) <= maxSessions {
		return
	}
	maps.DeleteFunc(s.known, func(id string, processes []proc.Info) bool {
		return s.sessions[id] == nil && !slices.ContainsFunc(processes, lives)
	})
	for old := range s.known { // forget any session that has ended: no CLI comes back that late
		if len(s.known) > maxSessions && s.sessions[old] == nil {
			delete(s.known, old)
		}
	}
}
