package door

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/pollux-companion/pollux/internal/proc"
)

// refused is how many connections beyond the bound are taken, only to be told about it.
const refused = 2

// conns counts the connections of a server, and lists the strangers: connections
// without a request that brought a credential. An honest peer sends its first request
// at once, so the oldest stranger is the one to send away.
type conns struct {
	most, mostStrangers int

	mu        sync.Mutex
	open      map[net.Conn]*conn
	strangers list.List // of *conn, oldest first
}

// bound sets how many connections there may be: an eighth, or several, of what the process may have.
func (c *conns) bound(eighths int, credential bool) {
	c.open = map[net.Conn]*conn{}
	c.most = min(maxConns, max(4, proc.Connections()/8*eighths))
	c.mostStrangers = min(MaxStrangers, c.most)
	if credential {
		c.mostStrangers = min(MaxStrangers, max(4, c.most/4))
	}
}

// A conn is one accepted connection, from its first to its last state.
type conn struct {
	net    net.Conn
	full   bool // it is one too many
	proven atomic.Bool
	taken  atomic.Bool   // a handler has hijacked it
	place  *list.Element // in strangers; guarded by conns.mu
}

type connKey struct{}

func (c *conns) context(ctx context.Context, nc net.Conn) context.Context {
	known := &conn{net: nc}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[nc] = known
	known.place = c.strangers.PushBack(known)
	if n := c.strangers.Len(); n > c.mostStrangers || n > 1 && len(c.open) > c.most {
		c.end(c.strangers.Front().Value.(*conn))
	}
	known.full = len(c.open) > c.most
	if len(c.open) > c.most+refused {
		c.end(known)
	}
	return context.WithValue(ctx, connKey{}, known)
}

// end closes a connection. The caller holds c.mu.
func (c *conns) end(known *conn) {
	delete(c.open, known.net)
	c.acquaint(known)
	_ = known.net.Close()
}

func (c *conns) state(nc net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.open[nc]
	switch {
	case known == nil:
	case state == http.StateHijacked:
		known.taken.Store(true)
		c.acquaint(known)
	case state == http.StateClosed:
		delete(c.open, nc)
		c.acquaint(known)
	}
}

// left forgets a hijacked connection whose handler has ended.
func (c *conns) left(ctx context.Context) {
	if known := connOf(ctx); known != nil && known.taken.Load() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, known.net)
	}
}

// connOf returns the connection of a request; nil when it came in by no server.
func connOf(ctx context.Context) *conn {
	known, _ := ctx.Value(connKey{}).(*conn)
	return known
}

// prove takes the request's connection off the list of strangers.
func (c *conns) prove(ctx context.Context) {
	known := connOf(ctx)
	if known == nil || known.proven.Load() || known.proven.Swap(true) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acquaint(known)
}

// acquaint takes a connection off the list. The caller holds c.mu.
func (c *conns) acquaint(known *conn) {
	if known.place != nil {
		c.strangers.Remove(known.place)
		known.place = nil
	}
}
