package mcp

import (
	"context"
	"slices"
	"sync"
)

// A call is the context of one openDiff in work: it ends with the request,
// with the session, or when the peer cancels it. Nearly every call is over before
// anybody waits on it, so what waiting needs is made by the first who does.
type call struct {
	context.Context // the request's

	id string // of the request, as it was sent

	mu      sync.Mutex // guards all below
	ended   bool
	waiting context.Context    // nil until somebody waits
	stop    context.CancelFunc // of waiting
}

// begun notes that a request is in work; the call must be handed to over.
func (s *Session) begun(ctx context.Context, id string) *call {
	c := &call{Context: ctx, id: id}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		c.ended = true
		return c
	}
	s.proposed = true
	s.calls = append(s.calls, c)
	return c
}

func (s *Session) over(c *call) {
	c.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.calls, c); i >= 0 {
		s.calls = slices.Delete(s.calls, i, i+1)
	}
}

func (c *call) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.stop != nil {
		c.stop()
	}
}

// Done implements context.Context.
func (c *call) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting, c.stop = context.WithCancel(c.Context)
		if c.ended {
			c.stop()
		}
	}
	return c.waiting.Done()
}

// Err implements context.Context.
func (c *call) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.waiting != nil:
		return c.waiting.Err()
	case c.ended:
		return context.Canceled
	}
	return c.Context.Err()
}

// Value implements context.Context. Once somebody waits it is that context's,
// by which those derived from it find out that they need no goroutine to hear of its end.
func (c *call) Value(key any) any {
	c.mu.Lock()
	ctx := c.Context
	if c.waiting != nil {
		ctx = c.waiting
	}
	c.mu.Unlock()
	return ctx.Value(key)
}
