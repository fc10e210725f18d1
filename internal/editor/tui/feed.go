package tui

import (
	"context"
	"errors"
	"time"

	"github.com/pollux-companion/pollux/internal/control"
)

// rejoinEvery is how often a companion is looked for.
const rejoinEvery = time.Second

// errGone: the connection has ended, in whatever words.
var errGone = errors.New("the companion has ended")

// What the companion says by itself.
type (
	joinedMsg struct{ c Companion }
	lostMsg   struct{ err error }
	fatalMsg  struct{ err error }
	queueMsg  struct{ queue control.Queue }
)

// A feed keeps the model up to date: it joins the companion, again when it has gone, and passes on its queue. It
// owns the connection.
type feed struct {
	join func(context.Context) (Companion, error)
	send func(any)
}

// run ends with ctx.
func (f *feed) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := f.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if err.Error() == control.ErrFromAgent.Error() { // it has lost its identity on the wire
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

// follow stays with one companion and returns why that ended.
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

// watch does not wait for a companion that is stopped.
func watch(ctx context.Context, c Companion, seen uint64) (control.Queue, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return c.Watch(ctx, seen)
}
