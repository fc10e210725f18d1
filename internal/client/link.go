package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
)

// LinkOptions are the callbacks of a Link.
type LinkOptions struct {
	// Notified is called with each notification, one at a time. It must return soon.
	Notified func(method string, params json.RawMessage)
	// Broken is called, perhaps more than once, when the connection has failed in a way that disconnects the CLI.
	Broken func(error)
	// Strange is called with each malformed message (not JSON, empty data, a response to no request). The CLI
	// disconnects on one, unless it comes before the CLI has connected. nil ignores them.
	Strange func(error)
	// Transport replaces the network in tests.
	Transport http.RoundTripper
}

// A Link is one session with a companion, for programs between a CLI and a companion: it passes messages on
// unchanged. Its methods may be called from any goroutine. Goroutines: those of its session, which Close awaits.
type Link struct {
	o LinkOptions
	s session

	mu    sync.Mutex // guards early
	early error      // a fault before Dial returned
}

// Dial opens a session by one way.
func Dial(ctx context.Context, way Way, o LinkOptions) (*Link, error) {
	l := &Link{o: o}
	s, err := open(ctx, way, version, o.Transport, l)
	if err != nil {
		return nil, err
	}
	l.s = s
	l.mu.Lock()
	early := l.early
	l.mu.Unlock()
	if early != nil {
		s.close()
		return nil, early
	}
	return l, nil
}

// Call sends a request and returns its result. The error is a *RemoteError when the companion returned one, or ctx's.
func (l *Link) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return l.s.request(ctx, method, params)
}

// Close drops the connection. The companion keeps the session for a while.
func (l *Link) Close() { l.s.close() }

// Leave deletes the session, which ends its diffs, and closes.
func (l *Link) Leave(ctx context.Context) {
	l.s.leave(ctx)
	l.s.close()
}

func (l *Link) notified(method string, params []byte) error {
	if l.o.Notified != nil {
		l.o.Notified(method, params)
	}
	return nil
}

// faulted does not count a malformed message as a fault of the link: the CLI judges it, if it receives the message at
// all.
func (l *Link) faulted(err error, standing bool) {
	var one *messageError
	if errors.As(err, &one) {
		if l.o.Strange != nil {
			l.o.Strange(err)
		}
		return
	}
	if !standing {
		l.mu.Lock()
		l.early = err
		l.mu.Unlock()
		return
	}
	if l.o.Broken != nil {
		l.o.Broken(err)
	}
}

func (l *Link) ended() {
	if l.o.Broken != nil {
		l.o.Broken(errNotConnected)
	}
}

// Way returns the way to one candidate by its port, chosen or not; ok is false when its workspace does not contain
// the folder or it names no port.
func (c *Choice) Way(i int, w *World) (way Way, ok bool) {
	cand := c.Candidates[i]
	text, given := cand.Config.Port()
	port := parsePort(text)
	if cand.Config == nil || !cand.checked || cand.Mismatch != nil || !given || port == 0 {
		return Way{}, false
	}
	token, _ := cand.Config.token()
	return Way{Host: w.orHere().Host(), Port: port, Token: token, From: cand.Name}, true
}
