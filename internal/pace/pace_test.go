package pace

import (
	"testing"
	"testing/synctest"
	"time"
)

// On a quiet machine the watch shows the time.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Start(t)
		for _, want := range []time.Duration{0, time.Second, 90 * time.Second} {
			begun := w.Took()
			time.Sleep(want)
			synctest.Wait()
			if took := w.Took() - begun; took != want {
				t.Errorf("%v, want %v", took, want)
			}
		}
	})
}
