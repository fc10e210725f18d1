package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestGroup: what is written into a group, and which groups are swept. A plain folder stands for the kernel's.
func TestGroup(t *testing.T) {
	parent := t.TempDir()
	stale := filepath.Join(parent, Prefix+"999999999-1")
	ours := filepath.Join(parent, fmt.Sprintf("%s%d-1", Prefix, os.Getpid()))
	foreign := filepath.Join(parent, "session.scope")
	if err := errors.Join(os.Mkdir(stale, 0o700), os.Mkdir(ours, 0o700), os.Mkdir(foreign, 0o700)); err != nil {
		t.Fatal(err)
	}
	g, err := Make(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Limit(100<<20, 400); err != nil {
		t.Fatal(err)
	}
	for dir, there := range map[string]bool{stale: false, ours: true, foreign: true, g.Dir: true} {
		if _, err := os.Stat(dir); (err == nil) != there {
			t.Errorf("%s: there should be %v", dir, there)
		}
	}
	for file, want := range map[string]string{"memory.max": "138412032", "pids.max": "416", "memory.oom.group": "1", "memory.swap.max": "0"} {
		if got, err := os.ReadFile(filepath.Join(g.Dir, file)); err != nil || string(got) != want {
			t.Errorf("%s: %q %v, want %s", file, got, err, want)
		}
	}
	for content, want := range map[string]bool{"low 0\noom 1\noom_kill 0\n": false, "low 0\noom 1\noom_kill 3\n": true, "": false} {
		if err := os.WriteFile(filepath.Join(g.Dir, "memory.events"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if g.Exceeded() != want {
			t.Errorf("%q: %v", content, !want)
		}
	}
	var none *Group
	none.Remove()
	if none.Exceeded() {
		t.Error("no group is exceeded")
	}
}

// TestDelegated: the nearest group above this process's own that counts memory and processes and lets this user make
// groups.
func TestDelegated(t *testing.T) {
	root := t.TempDir()
	for dir, active := range map[string]string{"": "cpu memory pids", "user.slice": "memory pids", "user.slice/user-1.slice/user@1.service": "cpu memory pids", "user.slice/user-1.slice/user@1.service/app.slice": "cpu", "user.slice/user-1.slice/user@1.service/app.slice/x.scope": "memory pids"} {
		path := filepath.Join(root, dir)
		if err := errors.Join(os.MkdirAll(path, 0o700), os.WriteFile(filepath.Join(path, "cgroup.subtree_control"), []byte(active+"\n"), 0o600), os.WriteFile(filepath.Join(path, "cgroup.procs"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for own, want := range map[string]string{
		"/user.slice/user-1.slice/user@1.service/app.slice/x.scope": "/user.slice/user-1.slice/user@1.service", // app.slice counts no memory
		"/user.slice/user-1.slice/session-2.scope":                  "/user.slice",
		"/init.scope": "",
	} {
		if got := delegated(root, own); got != filepath.Join(root, want) {
			t.Errorf("%s: %q, want %q", own, got, filepath.Join(root, want))
		}
	}
	if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("hugetlb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := delegated(root, "/init.scope"); got != "" {
		t.Errorf("without controllers: %q", got)
	}
}
