package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pollux-companion/pollux/internal/core/review"
)

// A call is a running request that shows a proposal. Ending the call ends the wait for it.
type call struct {
	id  string // of the request, as it was sent
	end context.CancelFunc
}

// calling returns a context that ends with the request, with the session, or when the peer cancels the request. Call over when done.
func (s *Session) calling(ctx context.Context, id string) (_ context.Context, over func()) {
	ctx, end := context.WithCancel(ctx)
	c := &call{id, end}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		end()
		return ctx, end
	}
	s.proposed = true
	s.calls = append(s.calls, c)
	return ctx, func() {
		end()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls = slices.DeleteFunc(s.calls, func(other *call) bool { return other == c })
	}
}

// maxKey bounds a proposal's key, in bytes. A peer chooses it, and the journal and each notification repeat it.
const maxKey = 64 << 10

// errKey is the error for a longer one.
var errKey = fmt.Errorf("no diff is open: its name has more than %d bytes; review this change in the terminal", maxKey)

// Open shows a proposal of the session. It calls opened when the view is open, and before any outcome can come. request is the id
// of the agent's request, by which the agent may cancel it. The error tells the model, or its user, why no view is
// open and what to do.
func (s *Session) Open(ctx context.Context, request string, p review.Proposal, opened func()) error {
	if len(p.Key) > maxKey {
		return errKey
	}
	if err := s.mayDecide(ctx); err != nil {
		return err
	}
	s.forget(p.Key)
	if err := s.listens(); err != nil {
		return err
	}
	ctx, over := s.calling(ctx, request)
	defer over()
	_, err := s.server.o.Registry.Open(ctx, s, p, func(d *review.Diff) {
		if s.server.o.Journal != nil {
			s.server.o.Journal.Opened(s.id, d)
		}
		opened()
	})
	return explain(p.Key, err)
}

// explain turns an error of the registry into one that says what to do.
func explain(key string, err error) error {
	if err == nil {
		return nil
	}
	advice := "review this change in the terminal"
	switch {
	case errors.Is(err, review.ErrShut), errors.Is(err, context.Canceled), errors.Is(err, review.ErrSettled):
		advice = "propose it again if it is still wanted"
	case errors.Is(err, review.ErrTooMany):
		advice = "then propose this one again"
	}
	return fmt.Errorf("no diff of %q is open: %w; %s", key, err, advice)
}

// Withdraw takes the session's diff of a key back and returns its last text. No outcome of it follows. When the user has accepted the
// diff and the agent has not heard of it, Withdraw returns that text. It fails with review.ErrNoDiff when there is neither.
func (s *Session) Withdraw(ctx context.Context, key string) (review.Outcome, error) {
	outcome, err := s.server.o.Registry.Withdraw(ctx, s, key)
	accepted, ok := s.forget(key)
	if err != nil && ok {
		return accepted, nil
	}
	return outcome, err
}

// Ask shows a proposal of the session and waits for its end; the proposal's Waits must be true. The outcome is Withdrawn when nobody
// decided. When ctx or the session ends, the diff is taken away. The error is as in Open.
func (s *Session) Ask(ctx context.Context, request string, p review.Proposal) (review.Outcome, error) {
	if len(p.Key) > maxKey {
		return review.Outcome{}, errKey
	}
	if err := s.mayDecide(ctx); err != nil {
		return review.Outcome{}, err
	}
	ctx, over := s.calling(ctx, request)
	defer over()
	journal := s.server.o.Journal
	d, err := s.server.o.Registry.Open(ctx, s, p, func(d *review.Diff) {
		if journal != nil {
			journal.Opened(s.id, d)
		}
	})
	if err != nil {
		return review.Outcome{}, explain(p.Path, err)
	}
	select {
	case <-d.Ended():
	case <-ctx.Done():
		_, _ = s.server.o.Registry.Withdraw(context.WithoutCancel(ctx), s, p.Key)
		<-d.Ended()
	}
	if journal != nil {
		journal.Forget(d.ID()) // the answer to the request is all that the agent is told
	}
	outcome, _ := d.Outcome()
	return outcome, nil
}

// WithdrawAll takes every diff of the session back, and returns their number.
func (s *Session) WithdrawAll(ctx context.Context) (n int) {
	for _, d := range s.server.o.Registry.Pending() {
		if d.Owner() != s {
			continue
		}
		if _, err := s.Withdraw(ctx, d.Proposal().Key); err == nil {
			n++
		}
	}
	return n
}
