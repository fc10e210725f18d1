// Package pace measures in tests how long something takes, without the time
// in which the machine was too busy to let anybody run.
package pace

import (
	"sync/atomic"
	"testing"
	"time"
)

const tick = 5 * time.Millisecond

// Slack is how many times its own limit the product may take in a test: what
// lets the test run on a busy machine need not let the product run.
const Slack = 4

// A Watch is a clock that goes only as well as the test itself is let run:
// on a quiet machine it shows the time, on one that stands still for two
// seconds it stands still with it. So a limit of the product's, such as a
// second, can be held up against it anywhere. Its methods may be called from
// any goroutine.
type Watch struct{ ticks atomic.Int64 }

// Start starts a watch, which goes until the test ends.
func Start(t testing.TB) *Watch {
	w := &Watch{}
	end, ended := make(chan struct{}), make(chan struct{})
	ticker := time.NewTicker(tick)
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticker.C: // ticks that nobody could take in time are dropped
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

// Took returns the time since Start, at most.
func (w *Watch) Took() time.Duration { return time.Duration(w.ticks.Load()) * tick }

// NotRaced leaves a test out under the race detector, where it costs much and
// finds nothing: the reason says why.
func NotRaced(t testing.TB, reason string) {
	t.Helper()
	if Raced {
		t.Skip(reason)
	}
}
