package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
)

// Refusal returns why a CLI in that world does not even try to connect, in the CLI's words; nil when it tries.
func (c *Choice) Refusal(w *World) error {
	switch {
	case c.Fault != nil:
		return &ConnectError{c.Fault.Error()}
	case c.IDE == nil:
		return &ConnectError{msgUnsupported}
	}
	if err := c.Workspace(w); err != nil {
		return &ConnectError{err.Error()}
	}
	return nil
}

// toldEvery bounds how long Told waits for a new context.
const toldEvery = 2 * time.Second

// A Listener is a CLI that only hears what the user looks at, and opens no diff. It works with any companion. Its
// methods may be called from any goroutine. Goroutines: those of its session, which Close awaits.
type Listener struct {
	link *Link

	mu     sync.Mutex // guards the fields below
	latest json.RawMessage
	broken error
	news   chan struct{} // closed when one of them changes
}

// Listen joins the companion that the CLI would choose, by the first of the ways that answers (Choice.Ways).
func Listen(ctx context.Context, ways []Way) (*Listener, error) {
	l := &Listener{news: make(chan struct{})}
	errs := []error{errors.New("there is no way to it")}
	for _, way := range ways {
		link, err := Dial(ctx, way, LinkOptions{Notified: l.notified, Broken: func(err error) { l.set(nil, err) }})
		if err == nil {
			l.link = link
			return l, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", way, err))
	}
	return nil, errors.Join(errs[min(1, len(ways)):]...)
}

func (l *Listener) notified(method string, params json.RawMessage) {
	if method == wire.NotifyContext {
		l.set(append(json.RawMessage(nil), params...), nil)
	}
}

func (l *Listener) set(latest json.RawMessage, broken error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if latest != nil {
		l.latest = latest
	}
	if broken != nil {
		l.broken = broken
	}
	close(l.news)
	l.news = make(chan struct{})
}

// Told returns the parameters of the latest ide/contextUpdate as soon as they differ from seen, or unchanged after a
// while. The error is ctx's, or says why the CLI would be disconnected.
func (l *Listener) Told(ctx context.Context, seen string) (json.RawMessage, error) {
	again := time.NewTimer(toldEvery)
	defer again.Stop()
	for {
		l.mu.Lock()
		latest, broken, news := l.latest, l.broken, l.news
		l.mu.Unlock()
		if broken != nil {
			return nil, broken
		}
		if latest != nil && string(latest) != seen {
			return latest, nil
		}
		wait := again.C
		if latest == nil {
			wait = nil // a first context must come
		}
		select {
		case <-news:
		case <-wait:
			return latest, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Close ends the session.
func (l *Listener) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	l.link.Leave(ctx)
}
