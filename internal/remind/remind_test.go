package remind

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A user who is away is told once of what waits; one who works is not (SPEC F-11).
func TestReminder(t *testing.T) {
	type step struct {
		after time.Duration // since the step before
		do    func(r *Reminder, used *atomic.Int64)
	}
	wait := func(key string) func(*Reminder, *atomic.Int64) {
		return func(r *Reminder, _ *atomic.Int64) { r.Wait(key) }
	}
	done := func(key string) func(*Reminder, *atomic.Int64) {
		return func(r *Reminder, _ *atomic.Int64) { r.Done(key) }
	}
	cursor := func(_ *Reminder, used *atomic.Int64) { used.Store(time.Now().UnixNano()) }
	edit := func(r *Reminder, _ *atomic.Int64) { r.Touch() }
	stop := func(r *Reminder, _ *atomic.Int64) { r.Stop() }
	nothing := func(*Reminder, *atomic.Int64) {}
	const s = time.Second
	for _, tt := range []struct {
		name  string
		steps []step
		want  []int // the seconds at which the user is told, each with the number that wait after it
	}{
		{"nothing waits", []step{{0, nothing}, {999 * s, nothing}}, nil},
		{"one waits", []step{{0, wait("a")}, {999 * s, nothing}}, []int{30, 1}},
		{"it is answered in time", []step{{0, wait("a")}, {29 * s, done("a")}, {999 * s, nothing}}, nil},
		{"it is answered late", []step{{0, wait("a")}, {31 * s, done("a")}, {999 * s, nothing}}, []int{30, 1}},
		{"three at once", []step{{0, wait("a")}, {0, wait("b")}, {5 * s, wait("c")}, {999 * s, nothing}}, []int{30, 3}},
		{"the first of two is answered", []step{{0, wait("a")}, {0, wait("b")}, {20 * s, done("a")}, {999 * s, nothing}}, []int{50, 1}},
		{"one that comes later says nothing while the user is away", []step{{0, wait("a")}, {40 * s, wait("b")}, {999 * s, nothing}}, []int{30, 1}},
		{"the user was back in between", []step{{0, wait("a")}, {40 * s, cursor}, {5 * s, wait("b")}, {999 * s, nothing}}, []int{30, 1, 75, 2}},
		{"an answer is being back", []step{{0, wait("a")}, {40 * s, done("a")}, {5 * s, wait("b")}, {999 * s, nothing}}, []int{30, 1, 75, 1}},
		{"the user works elsewhere in the editor", []step{{0, wait("a")}, {20 * s, cursor}, {20 * s, cursor}, {20 * s, cursor}, {999 * s, nothing}}, []int{90, 1}},
		{"the user edits the proposal", []step{{0, wait("a")}, {29 * s, edit}, {29 * s, edit}, {1 * s, done("a")}, {999 * s, nothing}}, nil},
		{"the same twice", []step{{0, wait("a")}, {10 * s, wait("a")}, {999 * s, nothing}}, []int{30, 1}},
		{"an answer to nothing", []step{{0, wait("a")}, {10 * s, done("b")}, {999 * s, nothing}}, []int{30, 1}},
		{"all answered, then the next", []step{{0, wait("a")}, {10 * s, done("a")}, {10 * s, wait("b")}, {999 * s, nothing}}, []int{50, 1}},
		{"stopped", []step{{0, wait("a")}, {10 * s, stop}, {1 * s, wait("b")}, {999 * s, nothing}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var used atomic.Int64
				var told []int
				began := time.Now()
				r := New(Options{After: 30 * s, Used: func() time.Time { return time.Unix(0, used.Load()) }, Tell: func(_ context.Context, n int) {
					told = append(told, int(time.Since(began)/s), n)
				}})
				for _, st := range tt.steps {
					time.Sleep(st.after)
					synctest.Wait()
					st.do(r, &used)
				}
				r.Stop()
				if !slices.Equal(told, tt.want) {
					t.Errorf("told at %v, want %v", told, tt.want)
				}
			})
		})
	}
}

// Stop ends what is telling the user, and waits for it.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		r := New(Options{After: time.Second, Used: func() time.Time { return time.Time{} }, Tell: func(ctx context.Context, _ int) {
			<-ctx.Done()
			ended = true
		}})
		r.Wait("a")
		time.Sleep(time.Minute)
		r.Stop()
		if !ended {
			t.Error("Stop has not waited")
		}
		r.Stop()
	})
}
