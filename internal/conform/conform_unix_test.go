//go:build unix

package conform

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/client/clienttest"
	"github.com/pollux-companion/pollux/internal/core/review"
)

func newBase(t *testing.T) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return base
}

func start(t *testing.T, o clienttest.Options) (*clienttest.Companion, Target) {
	t.Helper()
	o.Base = newBase(t)
	c, err := clienttest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	return c, Target{Addr: c.Addr, Token: c.Token, Dir: c.Root, File: c.File, Driver: &hand{c: c, buffers: map[string]string{}}}
}

// quick shortens the slow checks. On a busy machine other checks take longer than such a companion allows.
func quick(o *mcp.Options) {
	o.KeepAlive, o.Grace = 700*time.Millisecond, 300*time.Millisecond
}

// pollux's own companion passes everything. (With a driver: e2e, on the page.)
func TestGood(t *testing.T) {
	t.Parallel()
	_, target := start(t, clienttest.Options{Token: strings.Repeat("Zx-9", 11)})
	target.Driver = nil
	target.Wait = 60 * time.Second
	all, err := Run(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	tally, names := map[Result]int{}, map[string]bool{}
	for _, c := range all {
		tally[c.Result]++
		if c.Result == Fail {
			t.Errorf("%s: %s\n%s", c.Name, c.About, c.Evidence)
		}
		if names[c.Name] || c.Name == "" || c.About == "" || c.Number == "" || c.Result == Skip && c.Evidence == "" {
			t.Errorf("twice, or not whole: %+v", c)
		}
		names[c.Name] = true
		if _, name, ok := strings.Cut(c.Evidence, "--with "); ok && c.Result == Skip && !slices.Contains(Settings(), strings.TrimRight(name, ")")) {
			t.Errorf("%s: no such setting can be named: %s", c.Name, c.Evidence)
		}
	}
	t.Logf("%d checks: %v", len(all), tally)
	if tally[Pass] < 150 {
		t.Errorf("only %v", tally)
	}
	if left, _ := os.ReadDir(target.Dir); len(left) > 0 {
		t.Errorf("left in the workspace: %v", left)
	}
}

// Without a driver and without a view, checks are left out.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	c, target := start(t, clienttest.Options{Token: strings.Repeat("Zx-9", 11)})
	target.Driver = nil
	target.Wait = 60 * time.Second
	c.Registry.SetRule(review.Rule{Mode: review.Terminal})
	all, err := Run(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if (c.Result == Fail) != (c.Name == showsDiff) {
			t.Errorf("%+v", c)
		}
	}
	if _, err := Run(t.Context(), Target{Addr: "127.0.0.1:1", Dir: target.Dir}, nil); err == nil {
		t.Error("nobody is tried")
	}
}

// Whatever a companion or a driver says, nothing crashes.
func FuzzCompare(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\nContent-Type: application/json\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}", "data: {}\n\n")
	f.Fuzz(func(t *testing.T, want, got string) {
		a, b := parseAnswer(want), parseAnswer(got)
		_, _ = sameBody(a.body, b.body)
		_, _ = sameEvents(parseEvents(want), parseEvents(got), true)
		_ = reply(got)
		if ok, why := sameBody(a.body, a.body); !ok && json.Valid([]byte(a.body)) && why == "" {
			t.Errorf("it differs from itself: %q", a.body)
		}
	})
}

func TestLineDriver(t *testing.T) {
	t.Parallel()
	in, w := io.Pipe()
	var out bytes.Buffer
	d := NewLineDriver(in, &out)
	go func() {
		_, _ = io.WriteString(w, "{\"ok\":true}\n{\"unsupported\":true}\n{\"error\":\"why\"}\nx\n{}\n")
		w.Close()
	}()
	for i, want := range []string{"", ErrUnsupported.Error(), "why", "not JSON", "neither", "has ended"} {
		err := d.Do(t.Context(), `{"reset":true}`)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v, want %q", i, err, want)
		}
	}
	if !strings.HasPrefix(out.String(), "{\"reset\":true}\n{\"reset\":true}\n") {
		t.Errorf("%q", &out)
	}
}
