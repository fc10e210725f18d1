package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// errSlow: the page does not take its messages; the connection ends.
var errSlow = errors.New("the page does not keep up")

// A wire carries whole messages over one WebSocket. Send only queues, so that a slow or
// dead page delays nobody. A page whose queue overflows is disconnected, and learns
// everything anew when it comes back.
type wire struct {
	conn   *websocket.Conn
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	wake   chan struct{} // wakes write: a message is queued, or finish was called

	mu     sync.Mutex // guards what follows
	queue  [][]byte
	bytes  int
	last   bool   // no more messages are queued; write closes when the queue is empty
	reason string // for the peer, when last is set
}

func newWire(conn *websocket.Conn) *wire {
	ctx, cancel := context.WithCancel(context.Background())
	conn.SetReadLimit(maxMessage)
	return &wire{conn: conn, ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1)}
}

// Send queues one message. The caller must not change its pieces afterwards.
func (w *wire) Send(pieces ...[]byte) error {
	msg := pieces[0]
	if len(pieces) > 1 {
		msg = slices.Concat(pieces...)
	}
	msg = forBrowser(msg)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last || w.ctx.Err() != nil {
		return io.ErrClosedPipe
	}
	if len(w.queue) >= maxQueued || len(w.queue) > 0 && w.bytes+len(msg) > maxQueue {
		w.cancel()
		return errSlow
	}
	w.queue = append(w.queue, msg)
	w.bytes += len(msg)
	w.signal()
	return nil
}

// longMessage is the length in bytes from which a browser's time to decode a message can be felt.
const longMessage = 64 << 10

// forBrowser returns a long JSON message with few characters beyond ASCII in ASCII alone: a browser needs half the
// time for it.
func forBrowser(msg []byte) []byte {
	if len(msg) < longMessage {
		return msg
	}
	foreign := 0
	for _, b := range msg {
		if b >= utf8.RuneSelf {
			foreign++
		}
	}
	if foreign == 0 || foreign > len(msg)/8 {
		return msg
	}
	out := make([]byte, 0, len(msg)+2*foreign)
	for rest := msg; len(rest) > 0; {
		n := 0
		for n < len(rest) && rest[n] < utf8.RuneSelf {
			n++
		}
		out, rest = append(out, rest[:n]...), rest[n:]
		if len(rest) > 0 { // JSON has such characters in strings alone
			r, size := utf8.DecodeRune(rest)
			for _, unit := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, "\\u%04x", unit)
			}
			rest = rest[size:]
		}
	}
	return out
}

// Recv returns the next message; io.EOF when the connection has ended.
func (w *wire) Recv() ([]byte, error) {
	kind, msg, err := w.conn.Read(w.ctx)
	if err != nil || kind != websocket.MessageText {
		return nil, io.EOF
	}
	return msg, nil
}

// finish ends the connection when everything queued has been sent.
func (w *wire) finish(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.reason = true, reason
	w.signal()
}

// abort ends the connection now.
func (w *wire) abort() {
	w.cancel()
	_ = w.conn.CloseNow()
}

func (w *wire) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// write sends queued messages until the connection ends. It is the wire's only writer,
// and closes the socket.
func (w *wire) write() {
	defer w.abort()
	for {
		w.mu.Lock()
		batch, last, reason := w.queue, w.last, w.reason
		w.queue = nil
		w.mu.Unlock()
		for _, msg := range batch {
			ctx, cancel := context.WithTimeout(w.ctx, writeTimeout)
			err := w.conn.Write(ctx, websocket.MessageText, msg)
			cancel()
			if err != nil {
				return
			}
			w.mu.Lock()
			w.bytes -= len(msg)
			w.mu.Unlock()
		}
		if last {
			_ = w.conn.Close(websocket.StatusGoingAway, reason)
			return
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-w.wake:
		case <-w.ctx.Done():
			return
		}
	}
}
