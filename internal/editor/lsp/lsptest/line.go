package lsptest

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/attach"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/editor/lsp"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// A line joins a plugin and a server.
type line struct {
	ends  []io.Closer
	queue *rpc.Queue
	tasks sync.WaitGroup
	store *state.Store
}

// connect starts a server at the far end of a line.
func connect(ctx context.Context, o Options) (*line, rpc.Wire) {
	l := &line{store: state.New(nil)}
	there, in := l.carry(o.Delay)
	back, out := l.carry(o.Delay)
	var s *lsp.Server
	s = lsp.New(rpc.NewChannel(there, out, nil), lsp.Options{Version: "test", OpenWithin: patience, Start: func(context.Context, lsp.Hello) (lsp.Companion, error) {
		s.Attach(attach.Core{Store: l.store, Registry: o.Start(s), Page: nobody{}, Keep: o.Keep})
		if o.Attached != nil {
			o.Attached()
		}
		return companion{o.Left}, nil
	}})
	l.tasks.Go(func() { _ = s.Serve(ctx) })
	l.queue = rpc.NewQueue(rpc.NewChannel(back, in, nil))
	return l, l.queue
}

// Delays are random ones of at least a millisecond, and below most.
func Delays(seed uint64, most time.Duration) func() time.Duration {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 11))
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Millisecond + time.Duration(r.Int64N(int64(most)))
	}
}

// carry is one direction: what is written comes out later.
func (l *line) carry(delay func() time.Duration) (*io.PipeReader, *io.PipeWriter) {
	from, in := io.Pipe()
	out, to := io.Pipe()
	l.ends = append(l.ends, from, in, out, to)
	l.tasks.Go(func() {
		for r := bufio.NewReader(from); ; {
			message, err := r.ReadBytes('\n')
			time.Sleep(delay())
			if err == nil {
				_, err = to.Write(message)
			}
			if err != nil {
				to.CloseWithError(err)
				return
			}
		}
	})
	return out, in
}

// cut ends both directions, and the server.
func (l *line) cut() {
	for _, end := range l.ends {
		end.Close()
	}
	l.queue.Close(time.Second)
	l.tasks.Wait()
	l.store.Shut()
}

// A companion does nothing but to be there, and to leave.
type companion struct{ left func() }

func (companion) Env() (map[string]string, error) { return nil, nil }
func (companion) SetRoots([]string) error         { return nil }
func (companion) Sharing() lsp.Sharing            { return lsp.Sharing{} }
func (companion) Sessions() []lsp.Session         { return nil }
func (companion) Info() lsp.Info                  { return lsp.Info{} }
func (companion) Stop(context.Context) error      { return nil }
func (c companion) Leave(context.Context) error {
	if c.left != nil {
		c.left()
	}
	return nil
}

// A nobody is a page that nobody looks at.
type nobody struct{}

func (nobody) Show(context.Context, *review.Diff) error { return review.ErrNoView }
func (nobody) Close(*review.Diff, review.Outcome)       {}
func (nobody) Bring(context.Context) error              { return nil }
func (nobody) Content(context.Context, *review.Diff) (review.Edit, bool) {
	return review.Edit{}, false
}
