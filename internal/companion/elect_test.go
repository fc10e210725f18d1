package companion

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/core/state"
)

// soon waits until something holds.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// claudeLocks lists the ports of Claude Code's locks.
func claudeLocks(t *testing.T) (ports []int) {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(os.Getenv("HOME"), ".claude", "ide", "*.lock"))
	for _, path := range found {
		port, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".lock"))
		if err != nil {
			t.Fatal(path)
		}
		ports = append(ports, port)
	}
	return ports
}

// useClaude makes the folder that Claude Code's first start makes.
func useClaude(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(os.Getenv("HOME"), ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// SPEC CC-4: of companions with overlapping folders the first holds Claude Code's lock, speaks for the user who was active last, and
// hands over at its end. One of another folder has a lock of its own.
func TestElect(t *testing.T) {
	o, a, b := options(t)
	useClaude(t)
	below := filepath.Join(a, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	mine, theirs := filepath.Join(below, "mine"), filepath.Join(below, "theirs")
	for _, path := range []string{mine, theirs} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := start(t, o)
	o.IDE.Name, o.IDE.DisplayName, o.Roots = "vim", "Vim", []string{below}
	second := start(t, o)
	elsewhere := o
	elsewhere.Roots = []string{b}
	third := start(t, elsewhere)
	port := func(c *Companion) int { return c.Info().Port }
	want := []int{port(first), port(third)}
	slices.Sort(want)
	soon(t, "two locks", func() bool { got := claudeLocks(t); slices.Sort(got); return slices.Equal(got, want) })
	first.store.Report("first", state.Report{Active: mine, Open: []string{mine}, Front: true})
	second.store.Report("second", state.Report{Active: theirs, Open: []string{theirs}})
	soon(t, "the second lends", func() bool { return first.store.Snapshot().For("claude").Active == theirs })
	cli := look(t, first, "claude-code")
	cli.hears(theirs)
	for name, want := range map[string]string{"gemini": mine, "copilot": mine, "claude": theirs, "opencode": theirs, "codex": theirs} {
		if got := first.store.Snapshot().For(name).Active; got != want {
			t.Errorf("%s is told %q; want %q", name, got, want)
		}
	}
	first.store.Report("first", state.Report{Active: mine, Front: true}) // the first user comes back
	cli.hears(mine)
	second.store.Report("second", state.Report{Active: theirs, Cursor: &state.Position{Line: 7}})
	cli.hears(theirs)
	second.store.Pause(true)
	cli.hears("")
	second.store.Pause(false)
	if err := (backend{second}).SetShare("claude", "never"); err != nil {
		t.Fatal(err)
	}
	second.store.Report("second", state.Report{Active: theirs, Cursor: &state.Position{Line: 8}})
	soon(t, "what the lender keeps to itself is not told", func() bool {
		snap := first.store.Snapshot()
		return snap.For("opencode").Active == theirs && snap.For("claude").Active == ""
	})
	if err := (backend{second}).SetShare("claude", "always"); err != nil {
		t.Fatal(err)
	}
	first.Stop(t.Context())
	soon(t, "it hands over", func() bool { return slices.Contains(claudeLocks(t), port(second)) })
	fourth := start(t, o)
	soon(t, "the next one follows", func() bool {
		fourth.mu.Lock()
		elected := fourth.elected
		fourth.mu.Unlock()
		return elected != nil && !slices.Contains(claudeLocks(t), port(fourth))
	})
	second.store.Report("second", state.Report{Active: theirs, Cursor: &state.Position{Line: 9}})
	fourth.Stop(t.Context())
	soon(t, "what was lent ends with its lender", func() bool { return second.store.Snapshot().Lent == nil })
}

// A companion that was started for its own agent keeps its lock, and so does one that this agent does not find.
func TestElectAlone(t *testing.T) {
	o, _, _ := options(t)
	useClaude(t)
	first := start(t, o)
	o.Soon, o.IDE.Name = "claude", "run"
	run := start(t, o)
	run.electAndPublish()
	first.electAndPublish()
	if got := claudeLocks(t); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// SPEC CC-4: another program's lock on the same folder is told in every view, with a way out, which leaves Claude Code to it.
func TestRivalCC4(t *testing.T) {
	o, a, b := options(t)
	useClaude(t)
	c := start(t, o)
	rival := func() string {
		for _, t := range c.shownTroubles() {
			if t.ID == rivalTroubleID {
				return t.What + t.Do
			}
		}
		return ""
	}
	lock := filepath.Join(os.Getenv("HOME"), ".claude", "ide", "1.lock")
	for name, tt := range map[string]struct {
		pid    int
		folder string
		told   bool
	}{
		"alive": {os.Getpid(), a, true}, "above": {os.Getpid(), filepath.Dir(a), true}, "below": {os.Getpid(), filepath.Join(a, "x"), true},
		"dead": {1 << 30, a, false}, "elsewhere": {os.Getpid(), b, false}, "a name that begins alike": {os.Getpid(), a + "b", false},
	} {
		data, _ := json.Marshal(map[string]any{"pid": tt.pid, "workspaceFolders": []string{tt.folder}, "ideName": "Other IDE", "transport": "ws", "authToken": "x"})
		if err := os.WriteFile(lock, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := rival(); (got != "") != tt.told || tt.told && (!strings.Contains(got, "Other IDE") || !strings.Contains(got, "pollux share claude leave")) {
			t.Errorf("%s: %q", name, got)
		}
	}
	data, _ := json.Marshal(map[string]any{"pid": os.Getpid(), "workspaceFolders": []string{a}, "ideName": "Other IDE", "transport": "ws", "authToken": "x"})
	if err := os.WriteFile(lock, data, 0o600); err != nil || rival() == "" {
		t.Fatal(err)
	}
	if err := (backend{c}).SetShare("claude", "leave"); err != nil {
		t.Fatal(err)
	}
	if got := claudeLocks(t); !slices.Equal(got, []int{1}) || rival() != "" {
		t.Errorf("locks %v, told %q", got, rival())
	}
	c.touch(time.Now())
	if err := (backend{c}).SetShare("claude", "always"); err != nil {
		t.Fatal(err)
	}
	if got := claudeLocks(t); len(got) != 2 {
		t.Errorf("%v", got)
	}
	if err := (backend{c}).SetShare("gemini", "leave"); err == nil {
		t.Error("Gemini CLI is left")
	}
	if there, err := os.ReadFile(lock); err != nil || string(there) != string(data) {
		t.Errorf("the other's lock: %s, %v", there, err)
	}
}
