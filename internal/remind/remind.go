// Package remind tells a user who is elsewhere that something waits for an
// answer: by the terminals of editor and agents, the desktop, or a command of
// the user's. It never says what waits.
package remind

import (
	"context"
	"sync"
	"time"
)

// Options configure a Reminder.
type Options struct {
	// After is how long something waits, with nothing done by the user, before the user is told.
	After time.Duration
	// Used returns when the user last did something in an editor.
	Used func() time.Time
	// Tell tells the user that so many things wait. ctx ends at Stop.
	Tell func(ctx context.Context, waiting int)
}

// A Reminder knows what waits, and tells the user once for each time that the user is away. Its methods may be called
// from any goroutine. Its only goroutine is that of a timer, which Stop ends and awaits.
type Reminder struct {
	o      Options
	ctx    context.Context // ends at Stop
	cancel context.CancelFunc
	tells  sync.WaitGroup

	mu      sync.Mutex // guards the below
	waiting map[any]bool
	since   time.Time // when the oldest came that the user was not told of; zero when there is none
	used    time.Time // when Touch was last called
	told    time.Time // when the user was last told
	timer   *time.Timer
}

// New returns a Reminder for nothing yet.
func New(o Options) *Reminder {
	r := &Reminder{o: o, waiting: map[any]bool{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Wait says that something, which key names, waits for the user. A repetition changes nothing.
func (r *Reminder) Wait(key any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[key] || r.ctx.Err() != nil {
		return
	}
	r.waiting[key] = true
	if r.since.IsZero() {
		r.since = time.Now()
		r.arm(r.o.After)
	}
}

// Done says that the user, or an agent, has answered what key names.
func (r *Reminder) Done(key any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.waiting[key] {
		return
	}
	delete(r.waiting, key)
	if len(r.waiting) == 0 {
		r.since = time.Time{}
	}
	r.used = time.Now()
}

// Touch says that the user has just done something.
func (r *Reminder) Touch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used = time.Now()
}

// Stop forgets everything, and returns when the user is not being told any more.
func (r *Reminder) Stop() {
	r.mu.Lock()
	r.cancel()
	if r.timer != nil {
		r.timer.Stop()
	}
	clear(r.waiting)
	r.mu.Unlock()
	r.tells.Wait()
}

// arm calls look after a while. The caller holds mu.
func (r *Reminder) arm(after time.Duration) {
	if r.timer == nil {
		r.timer = time.AfterFunc(after, r.look)
		return
	}
	r.timer.Reset(after)
}

// look tells the user, if it is time and the user has been back since the last time.
func (r *Reminder) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.IsZero() || r.ctx.Err() != nil {
		return
	}
	used := r.used
	if t := r.o.Used(); t.After(used) {
		used = t
	}
	start := r.since
	if used.After(start) {
		start = used
	}
	if left := r.o.After - time.Since(start); left > 0 {
		r.arm(left)
		return
	}
	r.since = time.Time{}
	if !r.told.IsZero() && !used.After(r.told) {
		return // the user is still away, and knows
	}
	r.told = time.Now()
	n := len(r.waiting)
	r.tells.Go(func() { r.o.Tell(r.ctx, n) })
}
