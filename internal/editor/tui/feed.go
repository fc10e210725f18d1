package tui

import (
	"context"
	"errors"
	"time"

	"github.com/pollux-companion/pollux/internal/control"
)

// rejoinEvery is how often the feed looks for a companion.
const rejoinEvery = time.Second

// errGone: the connection has ended, whatever the error said.
var errGone = errors.New("the companion has ended")

// Messages that the companion sends unasked.
type (
	joinedMsg struct{ c Companion }
	lostMsg   struct{ err error }
	fatalMsg  struct{ err error }
	queueMsg  struct{ queue control.Queue }
)

// A feed keeps the model up to date: it joins the companion, rejoins when it has gone, and passes on its queue. It
// owns the connection.
type feed struct {
	join func(context.Context) (Companion, error)
	send func(any)
}

// run follows companions until ctx ends.
func (f *feed) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := f.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if err.Error() == control.ErrFromAgent.Error() { // the error lost its identity on the wire
			f.send(fatalMsg{control.ErrFromAgent})
			return
		}
		f.send(lostMsg{err})
		select {
		case <-ctx.Done():
		case <-time.After(rejoinEvery):
		}
	}
}

// follow stays with one companion and returns why the connection ended.
func (f *feed) follow(ctx context.Context) error {
	c, err := f.join(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := attach(ctx, c); err != nil {
		return err
	}
	f.send(joinedMsg{c})
	for seen := uint64(0); ; {
		q, err := watch(ctx, c, seen)
		if err != nil {
			return errGone
		}
		if q.Version != seen {
			f.send(queueMsg{q})
		}
		seen = q.Version
	}
}

func attach(ctx context.Context, c Companion) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return c.Attach(ctx)
}

// watch waits for a new queue, at most askWithin: a stopped companion must not hold it for ever.
func watch(ctx context.Context, c Companion, seen uint64) (control.Queue, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return c.Watch(ctx, seen)
}
