package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLeaf: what is written into a group, and which ones are swept. A plain
// folder stands for the kernel's.
func TestLeaf(t *testing.T) {
	parent := t.TempDir()
	stale := filepath.Join(parent, cgroupPrefix+"999999999-1")
	ours := filepath.Join(parent, fmt.Sprintf("%s%d-1", cgroupPrefix, os.Getpid()))
	foreign := filepath.Join(parent, "session.scope")
	if err := errors.Join(os.Mkdir(stale, 0o700), os.Mkdir(ours, 0o700), os.Mkdir(foreign, 0o700)); err != nil {
		t.Fatal(err)
	}
	g, err := makeLeaf(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.limit(Limits{Memory: 100 * mib, Processes: 400}); err != nil {
		t.Fatal(err)
	}
	for dir, there := range map[string]bool{stale: false, ours: true, foreign: true, g.dir: true} {
		if exists(dir) != there {
			t.Errorf("%s: there should be %v", dir, there)
		}
	}
	for file, want := range map[string]string{"memory.max": "138412032", "pids.max": "416", "memory.oom.group": "1", "memory.swap.max": "0"} {
		if got, err := os.ReadFile(filepath.Join(g.dir, file)); err != nil || string(got) != want {
			t.Errorf("%s: %q %v, want %s", file, got, err, want)
		}
	}
	for content, want := range map[string]bool{"low 0\noom 1\noom_kill 0\n": false, "low 0\noom 1\noom_kill 3\n": true, "": false} {
		if err := os.WriteFile(filepath.Join(g.dir, "memory.events"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if g.exceeded() != want {
			t.Errorf("%q: %v", content, !want)
		}
	}
	var none *leaf
	none.remove()
	if none.exceeded() {
		t.Error("no group is exceeded")
	}
}

// TestGroup: memory is limited, by the kernel's own group where one is
// delegated to this user (it is gone afterwards), by watching elsewhere.
func TestGroup(t *testing.T) {
	parent := cgroupParent()
	t.Logf("delegated control group: %q", parent)
	r := runIn(t, New(nil), Policy{}, Command{Args: []string{"sh", "-c", `x=$(yes | head -c 300000000); sleep 1000; :`}, Limits: Limits{Memory: 64 * mib, Time: 10 * time.Second}})
	if r.Limit == nil || r.Limit.Kind != limitMemory {
		t.Errorf("%+v", r)
	}
	if parent == "" {
		return
	}
	if left, _ := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}
