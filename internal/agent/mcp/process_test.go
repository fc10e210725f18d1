package mcp_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/proc"
)

// found is an mcp.Options.Process that finds this process, or nothing, as it is told.
type found struct {
	lost  atomic.Bool
	asked atomic.Int32
}

func (f *found) process(_, _ netip.AddrPort) []proc.Info {
	f.asked.Add(1)
	if f.lost.Load() {
		return nil
	}
	self, _ := proc.Lookup(os.Getpid())
	return []proc.Info{self}
}

// knows asks who the agents are, as a decision does.
func (b *bench) knows() (pids []int, unknown []string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	unknown = b.server.Unknown(ctx)
	agents, _ := b.met.Living()
	for _, p := range agents {
		if !slices.Contains(pids, p.PID) {
			pids = append(pids, p.PID)
		}
	}
	return pids, unknown
}

// SPEC §11.1: a decision knows the process of a session that has just begun, and of one that was taken over, at its first request
// and by its first stream alike.
func TestAgentsAreKnown(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	f := &found{}
	options := func(o *mcp.Options) { o.Agents[0].SessionKey, o.Process = key, f.process }
	self := []int{os.Getpid()}
	before := newBench(t, options)
	c := before.connect()
	if pids, unknown := before.knows(); !slices.Equal(pids, self) || len(unknown) > 0 {
		t.Errorf("a new session: %v, unknown %q", pids, unknown)
	}
	for name, again := range map[string]func(){
		"a request": func() { c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`) },
		"a stream":  func() { c.listen() },
	} {
		after := newBench(t, options)
		c.b = after
		if _, ok := after.server.Adopt(c.session); !ok {
			t.Fatal("not adopted")
		}
		if pids, unknown := after.knows(); len(pids) > 0 || !slices.Equal(unknown, []string{"Gemini CLI #1"}) {
			t.Errorf("adopted, and not yet back: %v, unknown %q", pids, unknown)
		}
		again()
		if pids, unknown := after.knows(); !slices.Equal(pids, self) || len(unknown) > 0 {
			t.Errorf("adopted, and back with %s: %v, unknown %q", name, pids, unknown)
		}
		if infos := after.server.Sessions(); len(infos) != 1 || infos[0].PID != os.Getpid() || infos[0].Process == "" {
			t.Errorf("after %s: %+v", name, infos)
		}
	}
}

// SPEC §11.1: a session that proposes, or listens, and whose process is not found is named as unknown; one that only asks is
// not in anybody's way.
func TestAgentsAreUnknown(t *testing.T) {
	f := &found{}
	f.lost.Store(true)
	b := newBench(t, func(o *mcp.Options) { o.Process = f.process })
	c := b.connect()
	if _, unknown := b.knows(); len(unknown) > 0 {
		t.Errorf("a session that has only begun: %q", unknown)
	}
	l := c.listen()
	if _, unknown := b.knows(); len(unknown) != 1 {
		t.Errorf("a session that listens: %q", unknown)
	}
	l.close()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if _, unknown := b.knows(); len(unknown) == 0 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("after the stream's end: %q", unknown)
		}
	}
	c.mustOpen(b.file("f", "old\n"), "new\n")
	if _, unknown := b.knows(); len(unknown) != 1 {
		t.Errorf("a session that has proposed: %q", unknown)
	}
	f.lost.Store(false)
	c.listen()
	if pids, unknown := b.knows(); len(pids) != 1 || len(unknown) > 0 {
		t.Errorf("found at a later connection: %v, unknown %q", pids, unknown)
	}
	f.lost.Store(true)
	c.listen()
	if pids, unknown := b.knows(); len(pids) != 1 || len(unknown) > 0 {
		t.Errorf("not found at one more, and known: %v, unknown %q", pids, unknown)
	}
}

// SPEC §11.1: an agent that lives stays known. Others that connect with its session's id do not push it out, the end of its session
// does not, and after a restart it is known before it comes back.
func TestAgentsStayKnown(t *testing.T) {
	var all []proc.Info
	for range mcp.MaxProcesses + 4 {
		other := exec.Command("sleep", "60")
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
		p, _ := proc.Lookup(other.Process.Pid)
		all = append(all, p)
	}
	cli := all[0].PID
	var next atomic.Int32
	b := newBench(t, func(o *mcp.Options) {
		o.Process = func(_, _ netip.AddrPort) []proc.Info { return all[next.Load():][:1] }
	})
	known := func(when string) {
		t.Helper()
		if pids, unknown := b.knows(); !slices.Contains(pids, cli) || len(unknown) > 0 {
			t.Errorf("%s: %v, unknown %q; the agent is %d", when, pids, unknown, cli)
		}
	}
	c := b.connect()
	known("connected")
	for i := range all[1:] {
		next.Store(int32(i + 1))
		l := c.listen() // by another process
		b.knows()
		l.close()
	}
	known("after many others")
	if infos := b.server.Sessions(); len(infos) != 1 || infos[0].PID != cli {
		t.Errorf("%+v", infos)
	}
	sessions := b.server.Known()
	if !slices.ContainsFunc(sessions[c.session], func(p proc.Info) bool { return p.PID == cli }) {
		t.Errorf("the next life hears of %v", sessions)
	}
	c.do(c.request("DELETE", "/mcp", ""))
	known("after the session's end")
	b = newBench(t, func(o *mcp.Options) { o.Known = sessions })
	known("before it comes back")
}

// A process that has ended is none to guard against, and its number may be another's.
func TestAgentsThatEnded(t *testing.T) {
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	info, _ := proc.Lookup(other.Process.Pid)
	b := newBench(t, func(o *mcp.Options) {
		o.Process = func(_, _ netip.AddrPort) []proc.Info { return []proc.Info{info} }
	})
	b.connect()
	if pids, _ := b.knows(); !slices.Equal(pids, []int{info.PID}) {
		t.Errorf("alive: %v", pids)
	}
	_ = other.Process.Kill()
	_ = other.Wait()
	if pids, unknown := b.knows(); len(pids)+len(unknown) > 0 {
		t.Errorf("ended: %v, unknown %q", pids, unknown)
	}
}

// A search is not waited for by the CLI, and a decision does not wait for ever for one.
func TestSlowSearch(t *testing.T) {
	release := make(chan struct{})
	b := newBench(t, func(o *mcp.Options) {
		o.Process = func(_, _ netip.AddrPort) []proc.Info { <-release; return nil }
	})
	defer close(release)
	c := b.connect()
	l := c.listen()
	defer l.close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if unknown := b.server.Unknown(ctx); len(unknown) != 1 {
		t.Errorf("a search that does not end: unknown %q", unknown)
	}
	for range 3 * mcp.MaxProcesses { // searches of one session are bounded
		c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	}
}

// SPEC §11.1, F-2: where nobody may decide about an agent's changes no diff of them is shown, and the CLI is told why.
func TestMayDecide(t *testing.T) {
	f := &found{}
	b := newBench(t, func(o *mcp.Options) {
		o.Process = f.process
		o.MayDecide = func(agent []proc.Info) error {
			if len(agent) == 1 && agent[0].PID == os.Getpid() {
				return errors.New("this editor is the agent's own")
			}
			return nil
		}
	})
	a := b.agent()
	if said := a.Refused(b.file("f", "old\n"), "new\n"); said != "this editor is the agent's own" {
		t.Errorf("the CLI is told %q", said)
	}
	if n := len(b.registry.Pending()); n > 0 {
		t.Errorf("%d diffs are open", n)
	}
	f.lost.Store(true)
	b.agent().OpenDiff(b.file("g", "old\n"), "new\n") // of no known process: an editor below no agent shows it
	if err := b.registry.Reject(b.registry.Pending()[0].ID()); err != nil && !errors.Is(err, review.ErrSettled) {
		t.Error(err)
	}
}
