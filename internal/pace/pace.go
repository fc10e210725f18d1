// Package pace measures durations in tests, without the time in which the machine was too busy to run anything.
package pace

import (
	"sync/atomic"
	"testing"
	"time"
)

const tick = 5 * time.Millisecond

// Slack is the factor by which the product may exceed its own limit in a test. Tests also run on busy machines.
const Slack = 4

// A Watch is a clock that runs only while the test itself gets to run. On a quiet machine it shows the time; on one
// that stalls for two seconds it stalls too. So a limit such as one second can be tested on any machine. Its methods
// may be called from any goroutine.
type Watch struct{ ticks atomic.Int64 }

// Start starts a watch, which runs until the test ends.
func Start(t testing.TB) *Watch {
	w := &Watch{}
	end, ended := make(chan struct{}), make(chan struct{})
	ticker := time.NewTicker(tick)
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticker.C: // ticks that nobody received in time are dropped
				w.ticks.Add(1)
			case <-end:
				return
			}
		}
	}()
	t.Cleanup(func() {
		ticker.Stop()
		close(end)
		<-ended
	})
	return w
}

// Took returns the time since Start, or less.
func (w *Watch) Took() time.Duration { return time.Duration(w.ticks.Load()) * tick }

// NotRaced skips a test under the race detector, where it is slow and finds nothing; reason says why.
func NotRaced(t testing.TB, reason string) {
	t.Helper()
	if Raced {
		t.Skip(reason)
	}
}
