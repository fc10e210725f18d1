package mcp

import (
	"maps"
	"net/http"

	"github.com/pollux-companion/pollux/internal/proc"
)

// keep keeps a session's number for its CLI, which may come back with a new session: after a restart, or when it has lost its
// connection. The last of the processes is the CLI itself. The caller holds s.mu.
func (s *Server) keep(number int, processes []proc.Info) {
	if number <= 0 || len(processes) == 0 {
		return
	}
	if len(s.kept) >= maxSessions {
		maps.DeleteFunc(s.kept, func(cli proc.Info, _ int) bool { return !proc.Same(cli.PID, cli.Start) })
	}
	if cli := stamp(processes[len(processes)-1]); cli.Start != 0 && len(s.kept) < maxSessions {
		s.kept[cli] = number
	}
}

// stamp is what makes a process the same one; its name may change.
func stamp(p proc.Info) proc.Info { return proc.Info{PID: p.PID, Start: p.Start} }

// isKept says whether a number is kept for a CLI that still runs. The caller holds s.mu.
func (s *Server) isKept(number int) bool {
	for cli, its := range s.kept {
		if its == number && proc.Same(cli.PID, cli.Start) {
			return true
		}
	}
	return false
}

// numberOf returns the number that the CLI behind a request had in a session that has ended; 0 for a CLI that is new. The search for
// the CLI may take milliseconds, so it is left out while no such number is kept.
func (s *Server) numberOf(r *http.Request) int {
	if !s.keeps() {
		return 0
	}
	found := s.behindOf(r.Context())
	if len(found) == 0 {
		return 0
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.kept[stamp(found[len(found)-1])]
}

// keeps says whether some CLI still runs that has a number and no session.
func (s *Server) keeps() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for cli, number := range s.kept {
		if s.numbers[number] {
			continue
		}
		if proc.Same(cli.PID, cli.Start) {
			return true
		}
		delete(s.kept, cli)
	}
	return false
}
