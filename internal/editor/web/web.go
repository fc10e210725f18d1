// Package web serves pollux's own editor, a page in the browser: its listener,
// its one-time codes and keys, its assets and the WebSocket over which the
// page feeds state.Store and shows the diffs of review.Registry.
// A page speaks JSON-RPC 2.0, one message in each text frame. Positions are 0-based in
// UTF-16 units, and paths absolute. Texts have line feeds alone: the exact bytes stay on
// this side (SPEC F-6).
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/attach"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/door"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// Bounds and times of a Server (SPEC A-4).
const (
	maxPages     = 64
	maxMessage   = 64 << 20         // bytes of one message from a page
	maxQueue     = 64 << 20         // bytes that wait for a slow page, besides one message of any size
	maxQueued    = 4096             // messages that wait for a slow page
	writeTimeout = 20 * time.Second // for one message
	pingEvery    = 20 * time.Second
	pingTimeout  = 10 * time.Second
	// windowGrace is how long a page that has gone keeps its window, so that its files do
	// not flicker in the agents' context during a reload.
	windowGrace = 2 * time.Second
	// absence is how long after the last page has gone a diff still counts as shown: the
	// page is probably reloading.
	absence = 10 * time.Second
)

// A Server is the web editor of one companion, for its whole life. It is a
// review.View. Its methods may be called from any goroutine.
// Goroutines: the HTTP server's, which Shutdown ends; the ones of each page (see page);
// its workspace.Watcher's, which Shutdown ends; and for two seconds the timer of a page
// that has gone.
type Server struct {
	o       attach.PageOptions
	log     *slog.Logger
	door    *door.Door
	http    *http.Server
	entry   *entry // codes and keys
	watch   *workspace.Watcher
	unwatch func() // ends the subscription to the registry

	grace    time.Duration // windowGrace, except in tests
	proving  proving
	refusals chan struct{} // one place for each connection that is being told why it is refused

	rewatch sync.Mutex // held while watch is told what to watch, so that calls keep their order
	files   sync.Mutex // held while files are saved and while pages are told of changes, so that a page never hears of its own save

	mu      sync.Mutex // guards what follows, and the fields of pages that say so
	origin  string     // "http://127.0.0.1:PORT", "" before Serve
	pages   map[*page]bool
	gone    time.Time // when the last page went
	front   *page     // the page where the user was last seen
	counter int       // counts windows
	leaving map[string]*departed
	shown   map[string]bool // the diffs that the pages were told of, by ID
	closed  bool
}

// A departed window waits for its page to come back.
type departed struct {
	window string
	timer  *time.Timer
}

var _ review.View = (*Server)(nil)

// New returns a server that does not listen yet.
func New(o attach.PageOptions) *Server {
	s := &Server{
		o: o, log: o.Log, entry: newEntry(o.Keys), grace: windowGrace, refusals: make(chan struct{}, 16),
		pages: map[*page]bool{}, leaving: map[string]*departed{}, shown: map[string]bool{},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if o.Expected {
		s.gone = time.Now()
	}
	s.door = door.New(door.Options{Log: s.log})
	s.http = s.door.Server(s.routes())
	s.watch = o.Workspace.Watch(s.changed, s.log)
	s.unwatch = o.Registry.Watch(s.heard)
	return s
}

// Serve answers on l, which must be on loopback, until Shutdown; it then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.door.Admit(l.Addr()); err != nil {
		return err
	}
	s.mu.Lock()
	s.origin = "http://" + l.Addr().String()
	s.mu.Unlock()
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the page on %s: %w", l.Addr(), err)
	}
	return nil
}

// Keys prove the pages of this companion, and of the companions before it. The newest comes first, each has 256 random
// bits: for the record of the next companion. They are never logged.
func (s *Server) Keys() [][]byte {
	var keys [][]byte
	for _, k := range s.entry.keys {
		keys = append(keys, k.secret)
	}
	return keys
}

// ownOrigin returns the origin of the page; "" before Serve.
func (s *Server) ownOrigin() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.origin
}

// PageURL returns an address that opens the page once, within five minutes.
func (s *Server) PageURL() (string, error) {
	origin := s.ownOrigin()
	if origin == "" {
		return "", errors.New("the page is not being served yet")
	}
	return origin + "/#code=" + s.entry.newCode(time.Now()), nil
}

// Pages is the number of pages that are connected.
func (s *Server) Pages() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pages)
}

// Shutdown says goodbye to every page, and closes the pages and the listener, at the
// latest when ctx ends. It does not touch diffs: shut the registry first.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	for id, d := range s.leaving {
		d.timer.Stop()
		delete(s.leaving, id)
	}
	pages := slices.Collect(maps.Keys(s.pages))
	s.mu.Unlock()
	s.proving.stop()
	s.unwatch()
	for _, p := range pages {
		p.Notify("bye", map[string]string{"reason": "pollux is stopping"})
		p.wire.finish("pollux is stopping")
	}
	for _, p := range pages {
		select {
		case <-p.done:
		case <-ctx.Done():
			// On a goroutine: the library waits up to 5 s for a closing handshake, and nothing else ends the connection meanwhile.
			go p.wire.abort()
		}
	}
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	s.watch.Close()
	return err
}

// everyPage returns the pages that have said hello.
func (s *Server) everyPage() []*page {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ps []*page
	for p := range s.pages {
		if p.greeted {
			ps = append(ps, p)
		}
	}
	return ps
}

// broadcast notifies every page that has said hello.
func (s *Server) broadcast(method string, params any) {
	for _, p := range s.everyPage() {
		p.Notify(method, params)
	}
}
