package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func second(n int) time.Duration { return time.Duration(n) * time.Second }

// told waits until the companion has told the CLIs a context that fits: JSON
// as in ide/contextUpdate, in which paths stand as they are.
func (b *bench) told(what string, fits func(context string) bool) {
	b.t.Helper()
	b.until("the CLIs are told "+what, func() bool { return fits(b.pollux("context", "--raw")) })
}

// journal waits until a text stands in what survives a kill -9 of the companion.
func (b *bench) journal(text string) {
	b.t.Helper()
	b.until("the journal holds "+text, func() bool {
		files, err := filepath.Glob(filepath.Join(b.home.Dir, ".local", "state", "pollux", "resume", "*.diffs", "*"))
		return err == nil && slices.ContainsFunc(files, func(file string) bool {
			data, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(data), text)
		})
	})
}

// drafted waits until the page has put a text away for its next life.
func (d *desk) drafted(text string) {
	d.b.t.Helper()
	d.Until("the draft is kept", `JSON.parse(sessionStorage.getItem("pollux.desk") ?? '{"drafts":[]}').drafts.some(d => d.text.includes(`+strconv.Quote(text)+`))`)
}

func (b *bench) until(what string, ok func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(second(60)); !ok(); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("it never comes to this: %s", what)
		}
	}
}

// step names a part of a test that leads one session through many things.
// It is no subtest: what follows a failed step would prove nothing.
func (b *bench) step(name string, do func()) {
	b.t.Helper()
	b.t.Logf("step: %s", name)
	defer tells(b.t, name)
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
