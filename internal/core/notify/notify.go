// Package notify keeps the subscribers of a publisher. A subscriber is never
// called after it has cancelled. The package starts no goroutine.
package notify

import (
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

// A List holds subscribers. The zero value is empty and ready; a List must
// not be copied. Its methods may be called from any goroutine. A List lives as
// long as its publisher.
type List[T any] struct {
	mu   sync.Mutex // guards subs; never held during a call
	subs []*subscriber[T]
}

// A subscriber lives from Add until its cancel, or until Close.
type subscriber[T any] struct {
	f     func(T)
	calls chan struct{} // a place for one, taken during a call of f, so that cancel can wait for its end
	gone  atomic.Bool
}

// Add subscribes f. After cancel has returned, f is not called any more. Cancel
// waits for a call in progress, so call it neither from within f nor while you
// hold a lock that f takes. Cancel may be called more than once.
func (l *List[T]) Add(f func(T)) (cancel func()) {
	s := &subscriber[T]{f: f, calls: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subs = append(slices.Clip(l.subs), s) // a Send in progress keeps its own view
	return func() {
		l.mu.Lock()
		l.subs = slices.DeleteFunc(slices.Clone(l.subs), func(o *subscriber[T]) bool { return o == s })
		l.mu.Unlock()
		s.cancel()
	}
}

// Send calls every subscriber, in the order in which they subscribed. Concurrent
// Sends may overlap: a publisher that needs its values in order sends one at a
// time. When a subscriber panics, the panic is logged and the others are still called.
func (l *List[T]) Send(v T) {
	l.mu.Lock()
	subs := l.subs
	l.mu.Unlock()
	for _, s := range subs {
		s.call(v)
	}
}

// Close cancels every subscription. Like cancel of Add, it waits for calls in progress.
func (l *List[T]) Close() {
	l.mu.Lock()
	subs := l.subs
	l.subs = nil
	l.mu.Unlock()
	for _, s := range subs {
		s.cancel()
	}
}

func (s *subscriber[T]) call(v T) {
	s.calls <- struct{}{}
	defer func() { <-s.calls }()
	if s.gone.Load() {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			slog.Error("a subscriber panicked; please report this", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	s.f(v)
}

func (s *subscriber[T]) cancel() {
	s.gone.Store(true)
	s.calls <- struct{}{} // only to wait for the end of a call
	<-s.calls
}
