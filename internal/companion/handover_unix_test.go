//go:build unix

package companion

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
)

func TestMain(m *testing.M) {
	if order := os.Getenv(impostorVariable); order != "" {
		impersonate(strings.Fields(order))
		return
	}
	play()
	agent.Main()
	os.Exit(m.Run())
}

// SPEC L-4: a companion that starts while the door goes from an editor's companion to its keeper, or from that to the next editor,
// finds the record, but the port is taken. It leaves both to the others, and takes over from the keeper; no proposal is lost.
func TestStartsDuringAHandOverL4(t *testing.T) {
	o, dir, _ := options(t)
	var order Keeping
	var door *os.File
	o.Keep = func(k Keeping, d *os.File) (func(), error) {
		order, door = k, d
		return func() {}, nil
	}
	editor := exec.Command("cat") // an editor that did not start the agent
	if _, err := editor.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := editor.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = editor.Process.Kill(); _ = editor.Wait() })
	o.PID = editor.Process.Pid
	c := start(t, o)
	address, err := c.PageAddress()
	if err != nil {
		t.Fatal(err)
	}
	webtest.Open(t, address, "the user")
	path := filepath.Join(dir, "a")
	agent.Start(t, c.Info().DiscoveryFile).OpenDiff(path, "x")
	port := c.Info().Port
	if err := c.Leave(t.Context()); err != nil || door == nil {
		t.Fatalf("no keeper is started: %v, %v", door, err)
	}
	next := make(chan *Companion, 1)
	plain := o
	plain.Keep = nil
	go func() { next <- start(t, plain) }()
	claimed(t, o)
	keeping := o
	keeping.Keep, keeping.Keeping, keeping.Door = nil, &order, door
	keeper := start(t, keeping)
	go func() {
		if errors.Is(<-keeper.Failed(), ErrHandedOn) {
			_ = keeper.Leave(context.WithoutCancel(t.Context()))
		}
	}()
	second := <-next
	if info := second.Info(); !info.Resumed || info.Port != port {
		t.Errorf("it does not take over: %+v, want port %d", info, port)
	}
	second.whole()
	if open := second.reg.Pending(); len(open) != 1 || open[0].Proposal().Path != path {
		t.Errorf("open are %v", open)
	}
}

// claimed waits until a companion has claimed the record.
func claimed(t *testing.T, o Options) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		r := discovery.NewResume(o.Dirs.State, "pollux", o.Roots, 0)
		err := r.Claim()
		if errors.Is(err, discovery.ErrLive) {
			return
		}
		r.Release()
	}
	t.Fatal("nobody claims the record")
}

// SPEC L-3: a record that could not be written, or that somebody removes, is written again, with its claim; until then status says it.
func TestRecordComesBack(t *testing.T) {
	o, _, _ := options(t)
	folder := filepath.Join(o.Dirs.State, "resume")
	c := start(t, o)
	for name, spoil := range map[string]func() error{
		"its folder is removed": func() error { return os.RemoveAll(folder) },
		"a file is in its place": func() error {
			return errors.Join(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o600))
		},
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		c.touch(time.Now())
		if info, err := os.Stat(folder); err == nil && !info.IsDir() {
			if !hasTrouble(c, "record") {
				t.Errorf("%s, and nobody is told: %v", name, c.troubles())
			}
			if err := os.Remove(folder); err != nil {
				t.Fatal(err)
			}
			c.touch(time.Now())
		}
		if records, _ := filepath.Glob(filepath.Join(folder, "*.json")); hasTrouble(c, "record") || len(records) != 1 {
			t.Errorf("%s: %v, %v", name, records, c.troubles())
		}
		r := discovery.NewResume(o.Dirs.State, "pollux", o.Roots, 0)
		if err := r.Claim(); !errors.Is(err, discovery.ErrLive) {
			t.Errorf("%s: another companion may claim the record: %v", name, err)
			r.Release()
		}
	}
}
