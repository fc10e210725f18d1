package rpc

import (
	"errors"
	"io"
	"sync"
	"time"
)

// Bounds of a Queue (SPEC A-4).
const (
	maxQueued      = 4096     // messages
	maxQueuedBytes = 64 << 20 // in addition to one message of any size
)

// errSlow: the other side does not read its messages.
var errSlow = errors.New("the other side does not keep up")

// A Queue is a Wire over a Channel whose other side may be busy. Send only queues, so that an editor that shows a
// dialog delays nobody. When the queue is full, Send returns errSlow; queued messages stay.
//
// Goroutine: the writer, from NewQueue until Close or a failed write.
type Queue struct {
	ch   *Channel
	wake chan struct{} // capacity 1: something is queued, or closed is set
	done chan struct{} // closed when the writer has ended

	mu     sync.Mutex // guards the fields below
	queue  []message
	bytes  int
	closed bool
}

// A message is one, in pieces.
type message [][]byte

func (m message) size() (n int) {
	for _, piece := range m {
		n += len(piece)
	}
	return n
}

// NewQueue starts a queue over ch; nobody else may use ch.
func NewQueue(ch *Channel) *Queue {
	q := &Queue{ch: ch, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.write()
	return q
}

// Recv returns the next message, valid or not; see Channel.Next.
func (q *Queue) Recv() ([]byte, error) { return q.ch.Next() }

// Send queues one message, in pieces. The caller must not change them afterwards.
func (q *Queue) Send(pieces ...[]byte) error {
	msg := message(pieces)
	size := msg.size()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return io.ErrClosedPipe
	}
	if len(q.queue) >= maxQueued || len(q.queue) > 0 && q.bytes+size > maxQueuedBytes {
		return errSlow
	}
	q.queue = append(q.queue, msg)
	q.bytes += size
	q.signal()
	return nil
}

// Close stops taking messages, and writes the queued ones for at most the given time. The channel stays open.
func (q *Queue) Close(within time.Duration) {
	q.mu.Lock()
	q.closed = true
	q.signal()
	q.mu.Unlock()
	select {
	case <-q.done:
	case <-time.After(within):
	}
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *Queue) write() {
	defer close(q.done)
	for {
		q.mu.Lock()
		batch, closed := q.queue, q.closed
		q.queue = nil
		q.mu.Unlock()
		for i, msg := range batch {
			if q.ch.sendPieces(msg...) != nil {
				q.mu.Lock()
				q.closed = true
				q.mu.Unlock()
				return
			}
			batch[i] = nil // release what has been written
			q.mu.Lock()
			q.bytes -= msg.size()
			q.mu.Unlock()
		}
		if closed && len(batch) == 0 {
			return
		}
		if len(batch) == 0 {
			<-q.wake
		}
	}
}
