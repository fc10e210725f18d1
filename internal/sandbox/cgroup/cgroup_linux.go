package cgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Prefix begins the names of the groups that runs make. The process number of pollux and a random part follow.
const Prefix = "pollux-sandbox-"

// A Group is the control group of one run. nil means none: then its methods do nothing.
type Group struct {
	Dir string // its folder, absolute
}

// Parent returns a cgroup v2 folder in which this user may make groups that count memory and processes, or "".
// It looks above this process's own group, where systemd delegates to users.
func Parent() string {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	own := ""
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "0::"); ok {
			own = strings.TrimSpace(rest)
		}
	}
	var fs unix.Statfs_t
	if own == "" || unix.Statfs("/sys/fs/cgroup", &fs) != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
		return ""
	}
	return delegated("/sys/fs/cgroup", own)
}

// delegated returns the nearest group above own, below the folder root, in which this user may make groups.
func delegated(root, own string) string {
	for dir := filepath.Dir(own); ; dir = filepath.Dir(dir) {
		path := filepath.Join(root, dir)
		active, err := os.ReadFile(filepath.Join(path, "cgroup.subtree_control"))
		fields := strings.Fields(string(active))
		if err == nil && slices.Contains(fields, "memory") && slices.Contains(fields, "pids") && unix.Access(path, unix.W_OK) == nil && unix.Access(filepath.Join(path, "cgroup.procs"), unix.W_OK) == nil {
			return path
		}
		if len(dir) <= 1 {
			return ""
		}
	}
}

// Make makes the group of a run in parent. It also removes empty groups of pollux processes that were killed.
func Make(parent string) (*Group, error) {
	sweep(parent)
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("%s%d-", Prefix, os.Getpid()))
	if err != nil {
		return nil, err
	}
	return &Group{Dir: dir}, nil
}

// Limit sets the limits that the kernel counts per group: memory in bytes, and processes with their threads.
func (g *Group) Limit(memory int64, processes int) error {
	if g == nil {
		return nil
	}
	for name, value := range map[string]string{
		"memory.max":      strconv.FormatInt(memory+32<<20, 10), // more than the limit, for pollux's first process
		"memory.swap.max": "0", "memory.oom.group": "1", "pids.max": strconv.Itoa(processes + 16),
	} {
		err := os.WriteFile(filepath.Join(g.Dir, name), []byte(value), 0o600)
		if err != nil && !(name == "memory.swap.max" && errors.Is(err, os.ErrNotExist)) { // the kernel has no swap
			return err
		}
	}
	return nil
}

// Start starts a command in the group, so that it is counted from its first moment.
func (g *Group) Start(cmd *exec.Cmd) error {
	dir, err := os.Open(g.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return cmd.Start()
}

// Exceeded says whether the kernel killed processes of the group for lack of memory.
func (g *Group) Exceeded() bool {
	if g == nil {
		return false
	}
	data, err := os.ReadFile(filepath.Join(g.Dir, "memory.events"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok && n != "0" {
			return true
		}
	}
	return false
}

// Remove removes the group and kills what is left in it. Its processes are already dead, except orphans of the
// reduced sandbox. The kernel may need a moment to notice.
func (g *Group) Remove() {
	if g == nil {
		return
	}
	if f, err := os.OpenFile(filepath.Join(g.Dir, "cgroup.kill"), os.O_WRONLY, 0); err == nil { // since Linux 5.14
		_, _ = f.WriteString("1") // each process that this kills is also killed elsewhere
		f.Close()
	}
	for range 50 {
		if err := unix.Rmdir(g.Dir); err != unix.EBUSY {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// sweep removes the empty groups of pollux processes that are gone.
func sweep(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, Prefix+"*")) // only a bad pattern is an error
	for _, dir := range dirs {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), Prefix), "-")
		if pid, err := strconv.Atoi(number); err == nil && unix.Kill(pid, 0) == unix.ESRCH {
			_ = unix.Rmdir(dir) // fails if it is still in use
		}
	}
}
