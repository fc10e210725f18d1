package door

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// conns counts the connections of a server, and lists the strangers: connections
// without a request that brought a credential. An honest peer sends its first request
// at once, so the oldest stranger is the one to send away.
type conns struct {
	mu        sync.Mutex
	open      map[net.Conn]*conn
	strangers list.List // of *conn, oldest first
}

// A conn is one accepted connection, from its first to its last state.
type conn struct {
	net    net.Conn
	proven atomic.Bool
	place  *list.Element // in strangers; guarded by conns.mu
}

type connKey struct{}

func (c *conns) context(ctx context.Context, nc net.Conn) context.Context {
	known := &conn{net: nc}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[net.Conn]*conn{}
	}
	if len(c.open) >= MaxConns {
		_ = nc.Close()
		return ctx
	}
	c.open[nc] = known
	known.place = c.strangers.PushBack(known)
	if c.strangers.Len() > strangers() {
		oldest := c.strangers.Front()
		c.strangers.Remove(oldest)
		oldest.Value.(*conn).place = nil
		_ = oldest.Value.(*conn).net.Close()
	}
	return context.WithValue(ctx, connKey{}, known)
}

func (c *conns) state(nc net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.open[nc]; known != nil {
		delete(c.open, nc)
		c.acquaint(known)
	}
}

// strangers is MaxStrangers, or a quarter of the descriptors that this process may have, where that is less. With every descriptor taken,
// nobody could connect until the first stranger's time is over.
var strangers = sync.OnceValue(func() int { return min(MaxStrangers, max(4, descriptors()/4)) })

// prove takes the request's connection off the list of strangers.
func (c *conns) prove(ctx context.Context) {
	known, _ := ctx.Value(connKey{}).(*conn)
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
