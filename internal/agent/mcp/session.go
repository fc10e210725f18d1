package mcp

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/proc"
)

// A Session belongs to one CLI, from its initialize (or its adoption after a restart)
// until it is deleted, or has had neither stream nor request for Options.Grace (SPEC
// T-3). It is the review.Owner of its diffs.
type Session struct {
	server  *Server
	agent   *entrance
	id      string // Mcp-Session-Id
	number  int
	label   string
	since   time.Time
	gone    chan struct{} // closed when the session ends
	adopted bool          // it began in an earlier life
	heir    bool          // it was opened with an older token
	grace   *time.Timer

	mu        sync.Mutex // guards all below
	ended     bool
	requests  int
	quiet     time.Time // since when there is neither stream nor request
	untimed   bool      // the grace timer has found it busy, and does not run
	client    string
	version   string
	protocol  string
	proposed  bool                 // it has proposed a diff
	looks     []*look              // running searches for its processes
	processes []proc.Info          // of its CLI, as far as they are known
	cli       proc.Info            // the one that is shown; zero when not known
	claim     claim                // where it says that it works
	calls     []*call              // running openDiffs; ending the session cancels them
	streams   []*stream            // oldest first; the last one gets everything
	outcomes  []*outcome           // not confirmed yet, in order
	closed    map[string]time.Time // when the CLI last took back the diff of a path
	seq       uint64               // of the newest outcome
	life      string               // the life that seq counts in: the server's, or an earlier one
}

var _ review.Owner = (*Session)(nil)

// Label returns the session's name for a person.
func (s *Session) Label() string { return s.label }

func (s *Session) describe() SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return SessionInfo{ID: s.number, Label: s.label, Agent: s.agent.Name, Since: s.since, Client: s.client, Version: s.version, PID: s.cli.PID, Process: s.cli.Name, Folder: s.claim.folder, Says: s.claim.pid}
}

func sortByID(infos []SessionInfo) {
	slices.SortFunc(infos, func(a, b SessionInfo) int { return cmp.Compare(a.ID, b.ID) })
}

// create makes a session, with a new id when id is "". It returns nil when there are too
// many, or when the server is closing.
func (s *Server) create(agent *entrance, id string, number int) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess := s.sessions[id]; sess != nil {
		return sess // another request has adopted it meanwhile
	}
	if s.closing.Load() || len(s.sessions) >= maxSessions {
		return nil
	}
	if number <= 0 || s.numbers[number] {
		for number = s.next; s.numbers[number] || s.isKept(number); number++ {
		}
	}
	s.next = max(s.next, number+1)
	s.numbers[number] = true
	adopted := id != ""
	if !adopted {
		id = newSessionID(agent.SessionKey, birth{number, s.o.Life})
	}
	sess := &Session{server: s, agent: agent, id: id, adopted: adopted, number: number, label: fmt.Sprintf("%s #%d", agent.Label, number), since: time.Now(), quiet: time.Now(), life: s.life,
		gone: make(chan struct{}), closed: map[string]time.Time{},
	}
	if adopted {
		sess.knew(s.known[id])
	}
	sess.mu.Lock() // locked, because the grace timer may fire at once
	sess.grace = time.AfterFunc(s.o.Grace, sess.expire)
	sess.mu.Unlock()
	s.sessions[id] = sess
	if s.beating == nil {
		s.beating = time.AfterFunc(NextBeat(time.Now(), s.o.KeepAlive), s.beat)
	}
	return sess
}

// find returns an agent's session by its id. It adopts a session of an earlier life, and returns nil for a foreign id.
func (s *Server) find(agent *entrance, id string) *Session {
	s.mu.RLock()
	sess := s.sessions[id]
	good := sess == nil && !slices.Contains(s.deleted, id)
	floor, known := s.floor, len(s.known[id]) > 0
	s.mu.RUnlock()
	if sess != nil && sess.agent != agent {
		return nil
	}
	if !good {
		return sess
	}
	born, own := openSessionID(agent.SessionKey, id)
	if !own || born.order() <= floor && !known {
		return nil
	}
	if sess = s.create(agent, id, born.number); sess != nil {
		s.o.Log.Info("session adopted", "session", sess.label)
		s.watch.Send(struct{}{})
	}
	return sess
}

// await is find, once Options.Ready is closed; ready is false when that takes too long.
func (s *Server) await(ctx context.Context, agent *entrance, id string) (sess *Session, ready bool) {
	if s.o.Ready == nil {
		return s.find(agent, id), true
	}
	s.mu.RLock()
	sess = s.sessions[id]
	s.mu.RUnlock()
	if sess != nil && sess.agent == agent && !sess.adopted {
		return sess, true
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	select {
	case <-s.o.Ready:
		return s.find(agent, id), true
	case <-ctx.Done():
		return nil, false
	}
}

// Adopt returns the owner of a session of an earlier life of this companion, for a diff
// that was open then (SPEC L-3). id is what SessionID returned for the owner then. ok is
// false for a foreign id.
func (s *Server) Adopt(id string) (owner review.Owner, ok bool) {
	sess := s.earlier(id)
	if sess == nil {
		return nil, false
	}
	return sess, true
}

// earlier returns a session of an earlier life, of any agent.
func (s *Server) earlier(id string) *Session {
	for _, agent := range s.agents {
		if agent.Socket || agent.Private {
			continue // its sessions have ended with their sockets
		}
		if sess := s.find(agent, id); sess != nil {
			return sess
		}
	}
	return nil
}

// delete ends a session for good: its id cannot be adopted again.
func (s *Server) delete(sess *Session) {
	s.bury(sess.id)
	sess.end()
}

// bury makes an id one that is never valid again.
func (s *Server) bury(id string) {
	s.mu.Lock()
	delete(s.known, id)
	s.deleted = append(s.deleted, id)
	s.trimDeleted()
	s.mu.Unlock()
	if s.o.Journal != nil {
		s.o.Journal.Ended(id, false)
	}
}

// trimDeleted replaces the oldest deleted ids by a floor. Below the floor, only sessions that are open, or whose processes are
// known, are valid. The caller holds s.mu.
func (s *Server) trimDeleted() {
	for len(s.deleted) > deletedIDs {
		s.floor = max(s.floor, birthOf(s.deleted[0]).order())
		s.deleted = slices.Delete(s.deleted, 0, 1)
	}
}

// begin counts a running request; false when there are too many, or the session has just
// ended.
func (s *Session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.requests >= maxCalls {
		return false
	}
	s.requests++
	return true
}

func (s *Session) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests--
	s.rests()
}

// busy says whether the session has a stream or a request. The caller holds s.mu.
func (s *Session) busy() bool { return s.requests > 0 || len(s.streams) > 0 }

// rests begins the session's grace when it has neither stream nor request any more. The caller holds s.mu.
func (s *Session) rests() {
	if s.busy() {
		return
	}
	s.quiet = time.Now()
	if s.untimed && !s.ended {
		s.untimed = false
		s.grace.Reset(s.server.o.Grace)
	}
}

// expire is called by the grace timer. It ends the session, waits for the rest of its grace, or stops the timer of a busy session, which
// would wake an idle machine for nothing.
func (s *Session) expire() {
	s.mu.Lock()
	left, ended := s.server.o.Grace-time.Since(s.quiet), s.ended
	s.untimed = s.busy()
	if left > 0 && !s.untimed && !ended {
		s.grace.Reset(left)
	}
	on := left > 0 || s.untimed || ended
	s.mu.Unlock()
	if on {
		return
	}
	s.server.o.Log.Info("session expired", "session", s.label)
	s.end()
}

// end ends the session with everything that belongs to it (SPEC F-9).
func (s *Session) end() {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.ended = true
	close(s.gone)
	for _, c := range s.calls { // before Leave, so that no diff opens after it
		c.end()
	}
	streams := s.streams
	s.streams = nil
	s.letGo(func(*outcome) bool { return true })
	s.mu.Unlock()

	s.grace.Stop()
	for _, st := range streams {
		st.close()
	}
	srv := s.server
	srv.mu.Lock()
	delete(srv.sessions, s.id)
	delete(srv.numbers, s.number)
	srv.mu.Unlock()
	srv.o.Registry.Leave(s)
	if srv.o.Journal != nil && !srv.closing.Load() { // while the server closes, the outcomes that are left wait for the next life
		srv.o.Journal.Ended(s.id, true)
	}
	srv.watch.Send(struct{}{})
}

// introduce records what the CLI says of itself, and starts the search for its process.
func (s *Session) introduce(r *http.Request, client, version, protocol string, roots bool) {
	s.mu.Lock()
	s.client, s.version, s.protocol = client, version, protocol
	s.claim = claim{pid: saidProcess(r, s.agent), roots: roots}
	s.mu.Unlock()
	srv := s.server
	srv.o.Log.Info("session opened", "session", s.label, "client", client, "version", version, "protocol", protocol)
	srv.watch.Send(struct{}{})
	s.lookFor(r)
}

// Settled queues what the agent is told of one of the session's diffs (SPEC F-3). The registry calls it.
func (s *Session) Settled(d *review.Diff, o review.Outcome) {
	for _, as := range s.agent.Dialect.Outcomes(o.Kind) {
		if o.Kind != review.Accepted && as != Rejected {
			o.Content, _ = d.Text()
		}
		s.tellOutcome(d, as, o)
	}
}
