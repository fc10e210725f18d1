package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/paths"
)

// supervise makes this process the one that orphans of the command are handed
// to, in place of a process namespace.
func supervise() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("taking in orphans: %w", err)
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// freely calls f on a thread that Landlock does not bind.
func freely(f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	<-done
}

// killDescendants ends what the command left behind. Each one that dies hands
// its children to this process, so it goes on until there are none. It does not
// block in wait: runCommand may take the one it would wait for, and the next
// orphan would then never be killed.
func killDescendants() {
	for {
		for _, pid := range children() {
			_ = unix.Kill(pid, unix.SIGKILL) // gone already, at worst
		}
		_, err := ignoringEINTR(func() (int, error) { return unix.Wait4(-1, nil, unix.WNOHANG, nil) })
		if err != nil {
			return // there are none
		}
		time.Sleep(time.Millisecond)
	}
}

// children lists the children of all threads of this process.
func children() []int {
	files, _ := filepath.Glob("/proc/self/task/*/children") // a constant pattern is never bad
	var all []int
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that ended
		}
		for word := range strings.FieldsSeq(string(data)) {
			if n, err := strconv.Atoi(word); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

// reduce turns a setup into one without namespaces: folders of the command's
// own instead of private memory, and no mounts, so that what exists is left of
// the list for Landlock. It returns the private folder.
func reduce(set *setup) (string, error) {
	private, err := os.MkdirTemp("", "pollux-sandbox-")
	if err != nil {
		return "", err
	}
	private = paths.Real(private)
	set.Reduced, set.Private = true, private
	var kept []mount
	for _, m := range set.Mounts {
		if (m.Show == showNothing || m.Show == showVoid) && unix.Access(m.Target, unix.R_OK) == nil {
			_ = os.Remove(private) // it is empty
			return "", fmt.Errorf("it cannot hide %q, which the policy would show", m.Target)
		}
		if m.Show == showBind && m.Source == m.Target || m.Show == showDevice {
			kept = append(kept, m)
		}
	}
	set.Mounts = append(kept, mount{Show: showBind, Source: private, Target: private, Write: true})
	for _, path := range []string{"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/lib", "/lib64", "/bin"} {
		if real := paths.Real(path); exists(real) {
			set.Mounts = append(set.Mounts, mount{Show: showBind, Source: real, Target: real})
		}
	}
	for i, v := range set.Env {
		name, _, _ := strings.Cut(v, "=")
		if name == "HOME" || name == "TMPDIR" {
			set.Env[i] = name + "=" + private
		}
	}
	if set.Dir == "/tmp" {
		set.Dir = private
	}
	return private, nil
}
