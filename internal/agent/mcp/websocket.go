package mcp

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/door"
)

// webSocket serves SPEC T-10: the same sessions, with one JSON-RPC message in each text
// frame. A handshake that names a session (Mcp-Session-Id) joins it. Otherwise the first
// message must be an initialize, which opens one. The socket is also the session's
// stream.
func (s *Server) webSocket(w http.ResponseWriter, r *http.Request, agent *entrance) {
	var sess *Session
	if header(r, sessionHeader) != "" {
		if sess = s.session(w, r, agent); sess == nil {
			return
		}
		sess.lookFor(r)
	}
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:       []string{"mcp"},
		InsecureSkipVerify: true, // the door has checked Host and Origin
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = c.CloseNow() }()
	c.SetReadLimit(door.MaxBody)
	if c.Subprotocol() != "mcp" && !agent.Socket {
		_ = c.Close(websocket.StatusPolicyViolation, "ask for the subprotocol mcp")
		return
	}
	socket := &socket{server: s, agent: agent, conn: newSocketConn(c)}
	if sess != nil {
		socket.join(sess)
	}
	socket.run(r)
}

// A socket is one WebSocket, served by the goroutine of its handshake. Calls that wait
// for a view have a goroutine each, at most maxCalls.
type socket struct {
	server *Server
	agent  *entrance
	conn   *socketConn
	sess   *Session
	stream *stream
	calls  sync.WaitGroup
}

func (k *socket) join(sess *Session) bool {
	k.sess = sess
	k.stream = newStream(sess, k.conn)
	return sess.attach(k.stream, nil, "")
}

func (k *socket) run(r *http.Request) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context())) // hijacked: the request is over
	defer func() {
		cancel()
		k.calls.Wait()
		if k.stream != nil {
			k.stream.close()
		}
	}()
	for {
		body, release, err := k.read(ctx)
		if err == nil && k.sess == nil {
			err = k.first(ctx, r, body) //nolint:contextcheck // a write has a deadline of its own, and outlives the reader
		} else if err == nil {
			k.serve(ctx, body)
		}
		release()
		if err != nil {
			_ = k.conn.c.Close(websocket.StatusPolicyViolation, "")
			return
		}
	}
}

// read waits without limit for a message to begin, and then a bounded time for the rest
// of it.
func (k *socket) read(ctx context.Context) (body []byte, release func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if k.sess == nil { // an initialize should come soon
		defer time.AfterFunc(door.HeaderTimeout, cancel).Stop()
	}
	kind, reader, err := k.conn.c.Reader(ctx)
	if err != nil {
		return nil, func() {}, err
	}
	if kind != websocket.MessageText {
		return nil, func() {}, jsonrpc.ErrInvalid
	}
	defer time.AfterFunc(door.RequestTimeout, cancel).Stop()
	return k.server.bodies.Read(reader, -1, door.MaxBody)
}

// first handles the message that opens the session.
func (k *socket) first(ctx context.Context, r *http.Request, body []byte) error {
	m, err := jsonrpc.Decode(body)
	if err != nil || m.Method != jsonrpc.MethodInitialize || m.ID == nil {
		_ = k.conn.write(malformed(m, jsonrpc.ErrInvalid))
		return jsonrpc.ErrInvalid
	}
	sess, reply := k.server.open(r, k.agent, m)
	if err := k.conn.write(reply); err != nil || sess == nil {
		if sess != nil {
			sess.end()
		}
		return jsonrpc.ErrInvalid
	}
	if k.agent.Socket {
		k.sess = sess // the stream joins with the next message: by then the agent listens
		context.AfterFunc(ctx, sess.end)
		return nil
	}
	if !k.join(sess) {
		return jsonrpc.ErrInvalid
	}
	return nil
}

// serve handles one message without keeping the next one waiting.
func (k *socket) serve(ctx context.Context, body []byte) {
	if k.stream == nil && !k.join(k.sess) { //nolint:contextcheck // as in run
		_ = k.conn.c.CloseNow()
		return
	}
	if !k.sess.begin() {
		_ = k.conn.write(jsonrpc.Error(nil, jsonrpc.CodeBusy, "too many requests of this session are in work")) //nolint:contextcheck // as in run
		return
	}
	k.calls.Go(func() {
		defer k.sess.done()
		k.sess.serve(ctx, body, func(reply []byte) { _ = k.conn.write(reply) }) //nolint:contextcheck // as in run
	})
}

// A socketConn is the connection of a stream over WebSocket.
type socketConn struct{ c *websocket.Conn }

func newSocketConn(c *websocket.Conn) *socketConn { return &socketConn{c} }

func (k *socketConn) message(f *frame, _ string) []byte { return f.json() }

// beat pings, on a goroutine that ends with the answer or the connection. A peer that
// does not answer is disconnected.
func (k *socketConn) beat() []byte {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), pieceTimeout)
		defer cancel()
		if k.c.Ping(ctx) != nil {
			_ = k.c.CloseNow()
		}
	}()
	return nil
}

func (k *socketConn) last(time.Duration) []byte { return nil }

// try writes nothing: a frame cannot be written in parts, so write does it all.
func (k *socketConn) try([]byte) int { return 0 }

func (k *socketConn) write(b []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), pieceTimeout)
	defer cancel()
	return k.c.Write(ctx, websocket.MessageText, b)
}

func (k *socketConn) close() { _ = k.c.Close(websocket.StatusGoingAway, "") }
