package e2e

import (
	"strings"
	"testing"
	"time"
)

func second(n int) time.Duration { return time.Duration(n) * time.Second }

// settle waits out the page's throttle and the companion's debounce (C-2:
// at most 200 ms late), for tests that ask the CLI what it knows.
func settle(d *desk) {
	d.b.t.Helper()
	time.Sleep(400 * time.Millisecond)
}

// step names a part of a test that leads one session through many things.
// It is no subtest: what follows a failed step would prove nothing.
func (b *bench) step(name string, do func()) {
	b.t.Helper()
	b.t.Logf("step: %s", name)
	do()
}

func deref(s *string) string {
	if s == nil {
		return "<none>"
	}
	return *s
}

// order fails when parts do not stand in text in this order, behind the last
// answer that starts with the connection's lamp.
func order(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text[max(0, strings.LastIndex(text, "🟢")):]
	for _, part := range parts {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Errorf("%q is missing, or not in this place, in\n%s", part, text)
			return
		}
		rest = after
	}
}
