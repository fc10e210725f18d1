package lsp_test

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
	"github.com/pollux-companion/pollux/internal/editor/lsp"
	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// Every way out stops the companion once; only exit without shutdown is an error.
func TestEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(e *editor)
		want error
	}{
		"shutdown and exit": {func(e *editor) { e.ask("shutdown", nil); e.peer.Notify("exit", nil) }, nil},
		"exit":              {func(e *editor) { e.peer.Notify("exit", nil) }, lsp.ErrExit},
		"end of input":      {func(e *editor) { e.in.Close() }, nil},
	} {
		e := full(t)
		owner := &reviewtest.Owner{Name: "a"}
		if _, err := e.open(owner, proposal("/p/a")); err != nil {
			t.Fatal(err)
		}
		watch := pace.Start(t)
		tt.end(e)
		select {
		case err := <-e.served:
			if took, stopped := watch.Took(), e.comp.stops(); !errors.Is(err, tt.want) || stopped != 1 || took > pace.Slack*time.Second {
				t.Errorf("%s: %v after %v, stopped %d times", name, err, took, stopped)
			}
		case <-time.After(patience):
			t.Fatalf("%s: it goes on", name)
		}
		owner.ExpectTold(t, review.Rejected)
	}
}

// L-1, D-5: an editor that dies while it waits for the answer to shutdown does not cut the stop short.
func TestDiesInShutdown(t *testing.T) {
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	e := start(t, rpc.Lines, newRegistry)
	e.initialize(obj{"processId": child.Process.Pid})
	hold := make(chan struct{})
	e.comp.mu.Lock()
	e.comp.hold = hold
	e.comp.mu.Unlock()
	go func() { _, _ = e.try("shutdown", nil) }()
	e.until("the stop", func() bool { return e.comp.stops() == 1 })
	_ = child.Process.Kill()
	_ = child.Wait()
	select {
	case err := <-e.served:
		t.Errorf("it ends in the middle of the stop: %v", err)
	case <-time.After(time.Second): // it has looked at the process thrice
		close(hold)
		if err := <-e.served; err != nil || e.comp.stops() != 1 {
			t.Errorf("%v, stopped %d times", err, e.comp.stops())
		}
	}
}

// L-2: an editor whose process ends without closing its side is noticed.
func TestEditorDies(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Skip(err)
	}
	e := start(t, rpc.Lines, newRegistry)
	e.initialize(obj{"processId": child.Process.Pid})
	_ = child.Process.Kill()
	_ = child.Wait()
	watch := pace.Start(t)
	select {
	case err := <-e.served:
		if err != nil || watch.Took() > pace.Slack*time.Second {
			t.Errorf("%v after %v", err, watch.Took())
		}
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
}
