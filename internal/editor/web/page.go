package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// maxRunning is how many requests of one page run at once. Further ones stay unread in
// its socket until one has ended.
const maxRunning = 8

// oldProtocol is the protocol of pages that send a token, which the server no longer accepts.
const oldProtocol = "pollux.v1"

// statusDenied is the close code that tells a page that its secret is not known here, and
// that it need not try again.
const statusDenied websocket.StatusCode = 4401

// statusBarred is the close code that tells a page that its secret is good and it may not come in all the same; the reason is for the user.
const statusBarred websocket.StatusCode = 4403

// A page is one WebSocket of one browser tab, until it breaks. After a reload or a
// reconnection, a new page takes over the window.
// Goroutines: the HTTP handler's (serveSocket); the wire's writer; the pinger; and one
// for each running request, at most maxRunning. All end with the connection.
// serveSocket, which reads, returns when the others have ended.
type page struct {
	*rpc.Peer
	s    *Server
	wire *wire
	done chan struct{} // closed when the page has gone
	// mayDecide is Options.Decides for this page's connection; nil: it may.
	mayDecide func(context.Context) error

	// Guarded by s.mu:

	greeted  bool
	clientID string
	window   string               // its name in state.Store
	open     []string             // documents, as the page names them
	dirty    []string             // the documents with unsaved changes
	known    map[string]string    // versions that the page has been told, by path
	dirs     []string             // folders that it has listed, the latest last
	diffs    map[string]*pageDiff // the diffs whose texts it has read, by id
	promised []*review.Diff       // told at hello, and not compared with the open ones yet; see settleHello
	settled  bool                 // settleHello has run
}

// serveSocket runs one page.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Origin") == "" { // the door has refused foreign ones
		http.Error(w, "only the page itself may connect", http.StatusForbidden)
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:       []string{protocol, oldProtocol},
		InsecureSkipVerify: true, // the door has compared the Origin exactly
	})
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = conn.CloseNow() }()
	switch conn.Subprotocol() {
	case protocol:
	case oldProtocol:
		s.refuse(conn, statusDenied, "this page is of an older pollux; run: pollux page")
		return
	default:
		s.refuse(conn, websocket.StatusProtocolError, "subprotocol "+protocol+" expected")
		return
	}
	mayDecide := s.deciderOf(r)
	var no deniedError
	switch err := s.prove(context.WithoutCancel(r.Context()), conn, s.ownOrigin(), mayDecide); {
	case errors.As(err, &no):
		s.log.Warn("a page is refused", "remote", r.RemoteAddr, "err", err)
		s.refuse(conn, statusBarred, err.Error())
		return
	case errors.Is(err, errUnknown):
		s.refuse(conn, statusDenied, err.Error())
		return
	case err != nil:
		return
	}
	p := &page{s: s, wire: newWire(conn), done: make(chan struct{}), mayDecide: mayDecide, known: map[string]string{}, diffs: map[string]*pageDiff{}}
	p.Peer = rpc.NewPeer(p.wire, rpc.PeerOptions{Handle: p.method, MaxAside: maxRunning, Log: s.log})
	if !s.join(p) {
		s.refuse(conn, websocket.StatusTryAgainLater, "too many pages")
		return
	}
	p.serve() //nolint:contextcheck // the request's context says nothing of a connection that was taken over
}

// deciderOf returns Options.Decides for the connection of a request. A page may answer the user's questions and edit proposals, so a
// key alone does not let it in: an agent's shell can read that key in the record of this companion (SPEC §11.1).
func (s *Server) deciderOf(r *http.Request) func(context.Context) error {
	server, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	there, err := netip.ParseAddrPort(r.RemoteAddr)
	here, err2 := netip.ParseAddrPort(fmt.Sprint(server))
	if s.o.Decides == nil || err != nil || err2 != nil {
		return func(context.Context) error { return nil }
	}
	return func(ctx context.Context) error { return s.o.Decides(ctx, there, here) }
}

// refuse tells the peer why it is refused, unless too many others are being told.
func (s *Server) refuse(conn *websocket.Conn, status websocket.StatusCode, reason string) {
	select {
	case s.refusals <- struct{}{}:
		_ = conn.Close(status, reason)
		<-s.refusals
	default:
	}
}

func (s *Server) join(p *page) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.pages) >= maxPages {
		return false
	}
	s.counter++
	p.window = fmt.Sprintf("page-%d", s.counter)
	s.pages[p] = true
	return true
}

// serve works until the connection ends.
func (p *page) serve() {
	defer close(p.done)
	var others sync.WaitGroup
	others.Go(p.wire.write)
	others.Go(p.ping)
	_ = p.Run(p.wire.ctx) // however it ends, the connection is over
	p.wire.cancel()
	others.Wait()
	p.s.leave(p)
}

// method answers one request or takes one notification.
func (p *page) method(ctx context.Context, name string, params json.RawMessage) (any, error) {
	h, ok := handlers(name)
	if !ok {
		return nil, rpc.Errorf(rpc.CodeNoMethod, "unknown method %.100q", name)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if decides(name) && p.mayDecide != nil {
		if err := p.mayDecide(ctx); err != nil { // an agent may have connected since the page came in
			return nil, rpc.Errorf(codeForbidden, "%s", err)
		}
	}
	result, err := h(ctx, p, params)
	if err != nil {
		return nil, wireError(err)
	}
	return result, nil
}

// ping notices a peer that has died silently.
func (p *page) ping() {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.wire.ctx.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(p.wire.ctx, pingTimeout)
		err := p.wire.conn.Ping(ctx)
		cancel()
		if err != nil {
			p.wire.cancel()
			return
		}
	}
}

// leave forgets a page. Its window stays for a moment, in case the page comes back.
func (s *Server) leave(p *page) {
	s.mu.Lock()
	delete(s.pages, p)
	s.gone = time.Now()
	if s.front == p {
		s.front = nil
	}
	window, client := p.window, p.clientID
	now := client == "" || s.closed
	if !now {
		if before := s.leaving[client]; before != nil && before.timer.Stop() {
			defer s.o.Store.Leave(before.window)
		}
		d := &departed{window: window}
		d.timer = time.AfterFunc(s.grace, func() { s.depart(client, d) })
		s.leaving[client] = d
	}
	s.mu.Unlock()
	if now {
		s.o.Store.Leave(window)
	}
	s.watchOpen()
}

// depart ends the grace of a window, unless its page is back.
func (s *Server) depart(client string, d *departed) {
	s.mu.Lock()
	if s.leaving[client] != d {
		s.mu.Unlock()
		return
	}
	delete(s.leaving, client)
	s.mu.Unlock()
	s.o.Store.Leave(d.window)
}

// takeOver gives the page the window that it had before its reload. The caller holds s.mu.
func (s *Server) takeOver(p *page, client string) {
	p.clientID = client
	if d := s.leaving[client]; d != nil {
		d.timer.Stop()
		delete(s.leaving, client)
		p.window = d.window
	}
}
