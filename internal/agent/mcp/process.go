package mcp

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/proc"
)

// maxProcesses bounds the processes that are kept for one session, and the searches that wait.
const maxProcesses = 16

// knowWithin bounds how long a proposal waits until its session's process is known.
const knowWithin = 3 * time.Second

// A look is the search for the process at the other end of one connection.
type look struct {
	find    func() []proc.Info
	hurry   func()        // begins the search now
	hurried chan struct{} // closed by hurry
	done    chan struct{} // closed when it has ended
}

// lookFor searches, a moment later, for the process behind a request's connection. The search costs milliseconds
// and must not delay the CLI's first answers.
func (s *Session) lookFor(r *http.Request) {
	if s.server.o.Process == nil {
		return
	}
	ctx := context.WithoutCancel(r.Context()) // the connection's values must outlive the request
	l := &look{find: func() []proc.Info { return s.server.behindOf(ctx) }, hurried: make(chan struct{}), done: make(chan struct{})}
	l.hurry = sync.OnceFunc(func() { close(l.hurried) })
	s.mu.Lock()
	busy := s.ended || len(s.looks) >= maxProcesses
	if !busy {
		s.looks = append(s.looks, l)
	}
	s.mu.Unlock()
	if !busy {
		go s.search(l)
	}
}

// lookAgain searches behind a request of a session whose process is not known, mostly a session of an earlier life.
func (s *Session) lookAgain(r *http.Request) {
	s.mu.Lock()
	known := len(s.processes) > 0 || len(s.looks) > 0
	s.mu.Unlock()
	if !known {
		s.lookFor(r)
	}
}

// search runs on a goroutine of its own. Of all sessions, one searches at a time.
func (s *Session) search(l *look) {
	defer func() {
		s.mu.Lock()
		s.looks = slices.DeleteFunc(s.looks, func(other *look) bool { return other == l })
		s.mu.Unlock()
		close(l.done)
	}()
	wait := time.NewTimer(askAfter)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-l.hurried:
	case <-s.gone:
		return
	}
	select {
	case s.server.asking <- struct{}{}:
	case <-s.gone:
		return
	}
	found := l.find()
	<-s.server.asking
	s.know(found)
}

// know adds processes to those of the session's CLI; the last is the CLI itself.
func (s *Session) know(found []proc.Info) {
	if len(found) == 0 {
		return
	}
	s.server.o.Meet(found...)
	s.mu.Lock()
	if len(s.processes) >= maxProcesses { // anybody who knows the session may connect: nobody pushes the CLI out
		s.processes = slices.DeleteFunc(s.processes, func(old proc.Info) bool { return !proc.Same(old.PID, old.Start) })
	}
	for _, p := range found {
		i := slices.IndexFunc(s.processes, func(old proc.Info) bool { return old.PID == p.PID })
		switch {
		case i >= 0:
			s.processes[i] = p
		case len(s.processes) < maxProcesses:
			s.processes = append(s.processes, p)
		}
	}
	if !proc.Same(s.cli.PID, s.cli.Start) { // a later connection may belong to another program
		s.cli = found[len(found)-1]
	}
	cli, all := s.cli, slices.Clone(s.processes)
	s.mu.Unlock()
	s.server.remember(s, cli, all)
	s.server.watch.Send(struct{}{})
}

// knew takes over what an earlier life knew of the session's processes. The session is not shared yet.
func (s *Session) knew(processes []proc.Info) {
	for _, p := range processes {
		if now, ok := proc.Lookup(p.PID); ok && now.Start == p.Start {
			p.Name = now.Name
			s.cli = p // the last is the CLI itself
		}
		s.processes = append(s.processes, p)
	}
}

// mayDecide asks Options.MayDecide about the session, when its process is known or knowWithin is over.
func (s *Session) mayDecide(ctx context.Context) error {
	if s.server.o.MayDecide == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, knowWithin)
	defer cancel()
	s.awaitLooks(ctx)
	agent, _ := s.agents()
	return s.server.o.MayDecide(agent)
}

// Unknown returns the labels of the sessions whose process is not known. It waits for running searches until ctx ends; after that,
// Options.Meet has got the processes that they have found.
func (s *Server) Unknown(ctx context.Context) (labels []string) {
	sessions := s.live()
	for _, sess := range sessions {
		sess.awaitLooks(ctx)
	}
	for _, sess := range sessions {
		if _, known := sess.agents(); !known {
			labels = append(labels, sess.label)
		}
	}
	slices.Sort(labels)
	return labels
}

func (s *Session) awaitLooks(ctx context.Context) {
	s.mu.Lock()
	looks := slices.Clone(s.looks)
	s.mu.Unlock()
	for _, l := range looks {
		l.hurry()
	}
	for _, l := range looks {
		select {
		case <-l.done:
		case <-ctx.Done():
		}
	}
}

// agents returns the session's living processes. known is false when there are none and the session may still propose: it has a
// stream, has proposed before, or comes from an earlier life.
func (s *Session) agents() (living []proc.Info, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.processes {
		if proc.Same(p.PID, p.Start) {
			living = append(living, p)
		}
	}
	open := len(s.streams) > 0 || len(s.processes) == 0 && (s.adopted || s.proposed)
	return living, len(living) > 0 || !open
}
