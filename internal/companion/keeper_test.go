package companion

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// SPEC L-4: a keeper ends when nobody has come for a while, and after twelve hours with sessions.
func TestNeedlessL4(t *testing.T) {
	for name, tt := range map[string]struct {
		changes []time.Duration // sessions are there from the first on, until the second, and so on
		ends    time.Duration   // 0: never
	}{
		"nobody comes":             {nil, keepIdle},
		"comes, and stays":         {[]time.Duration{time.Second}, keepAtMost},
		"comes at the last moment": {[]time.Duration{keepIdle - time.Millisecond}, keepAtMost},
		"comes and goes":           {[]time.Duration{time.Second, time.Hour}, time.Hour + keepIdle},
		"comes back in time":       {[]time.Duration{time.Second, time.Hour, time.Hour + keepIdle - time.Millisecond}, keepAtMost},
		"comes back too late":      {[]time.Duration{time.Second, time.Hour, time.Hour + keepIdle + time.Millisecond}, time.Hour + keepIdle},
		"goes at the end":          {[]time.Duration{time.Second, keepAtMost - time.Second}, keepAtMost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var tell func()
				var there, watched atomic.Bool
				ended := make(chan time.Duration, 1)
				begun := time.Now()
				go func() {
					over := needless(t.Context(), func(f func()) func() {
						tell = f
						watched.Store(true)
						return func() { watched.Store(false) }
					}, there.Load)
					if over {
						ended <- time.Since(begun)
					}
				}()
				synctest.Wait()
				for i, at := range tt.changes {
					time.Sleep(at - time.Since(begun))
					there.Store(i%2 == 0)
					tell()
					tell()
					synctest.Wait()
				}
				if got := <-ended; got != tt.ends || watched.Load() {
					t.Errorf("it ends after %v, want %v; still watching: %v", got, tt.ends, watched.Load())
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if needless(ctx, func(func()) func() { return func() {} }, func() bool { return true }) {
			t.Error("a companion that is stopped is called needless")
		}
	})
}
