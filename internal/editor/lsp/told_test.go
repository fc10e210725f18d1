package lsp_test

import (
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// SPEC F-11: what a rule accepts is told, in one message for what comes together; what the user decides is not.
func TestRuleIsToldF11(t *testing.T) {
	e := full(t)
	owner := &reviewtest.Owner{Name: "a"}
	d, err := e.open(owner, proposal("/p/mine.go"))
	if err != nil {
		t.Fatal(err)
	}
	e.ask("workspace/executeCommand", obj{"command": "pollux.accept", "arguments": []obj{{"diffId": d.ID()}}})
	e.reg.SetRule(review.Rule{Mode: review.AcceptAll})
	said := func(text string) {
		t.Helper()
		e.until(text, func() bool { return strings.Contains(string(e.last("window/showMessage")), text) })
	}
	if _, err := e.open(owner, proposal("/p/one.go")); err != nil {
		t.Fatal(err)
	}
	said("one.go: accepted by your rule")
	for _, name := range []string{"/p/a.go", "/p/b.go", "/p/c.go"} {
		if _, err := e.open(owner, proposal(name)); err != nil {
			t.Fatal(err)
		}
	}
	said("3 changes accepted by your rule, the last one of c.go")
}

// A text that becomes too long is told when it does, and once; then it can be shortened.
func TestTooLongIsToldAtOnce(t *testing.T) {
	e := start(t, rpc.Lines, func(view review.View) *review.Registry {
		return review.New(review.Options{View: view, ShowTimeout: patience, ContentTimeout: patience, MaxProposal: 100})
	})
	e.hello(nil)
	d, err := e.open(&reviewtest.Owner{Name: "a"}, proposal("/p/a.go"))
	if err != nil {
		t.Fatal(err)
	}
	complaints := func(want int) {
		t.Helper()
		e.drain()
		e.mu.Lock()
		defer e.mu.Unlock()
		n := 0
		for _, c := range e.got {
			if c.Method == "window/showMessage" && strings.Contains(string(c.Params), "a.go cannot be accepted like this") {
				n++
			}
		}
		if n != want {
			t.Errorf("told %d times, want %d", n, want)
		}
	}
	long := strings.Repeat("x", 101)
	for i, tt := range []struct {
		text string
		told int
	}{{"short", 0}, {long, 1}, {long + "y", 1}, {"short again", 1}, {long + "z", 2}} {
		e.types(d, i+1, tt.text)
		complaints(tt.told)
	}
	if text, _ := d.Text(); text != "short again" {
		t.Errorf("%q", text)
	}
}
