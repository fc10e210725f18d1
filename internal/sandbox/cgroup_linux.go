package sandbox

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

// cgroupPrefix begins the names of the groups that runs make. The process number of pollux and a random part follow.
const cgroupPrefix = "pollux-sandbox-"

// A leaf is the control group of one run; nil means no group.
type leaf struct{ dir string }

// cgroupParent returns a cgroup v2 folder in which this user may make groups that count memory and processes, or "".
// It looks above this process's own group, where systemd delegates to users.
func cgroupParent() string {
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

// makeLeaf makes the group of a run in parent. It also removes empty groups of pollux processes that were killed.
func makeLeaf(parent string) (*leaf, error) {
	sweepLeaves(parent)
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("%s%d-", cgroupPrefix, os.Getpid()))
	if err != nil {
		return nil, err
	}
	return &leaf{dir: dir}, nil
}

// limit sets the limits that the kernel counts per group.
func (g *leaf) limit(l Limits) error {
	if g == nil {
		return nil
	}
	for name, value := range map[string]string{
		"memory.max":      strconv.FormatInt(l.Memory+32*mib, 10), // more than the limit, for pollux's first process
		"memory.swap.max": "0", "memory.oom.group": "1", "pids.max": strconv.Itoa(l.Processes + 16),
	} {
		err := os.WriteFile(filepath.Join(g.dir, name), []byte(value), 0o600)
		if err != nil && !(name == "memory.swap.max" && errors.Is(err, os.ErrNotExist)) { // the kernel has no swap
			return err
		}
	}
	return nil
}

// start starts a command in the group, so that it is counted from its first moment.
func (g *leaf) start(cmd *exec.Cmd) error {
	dir, err := os.Open(g.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return cmd.Start()
}

// exceeded says whether the kernel killed processes of the group for lack of memory.
func (g *leaf) exceeded() bool {
	if g == nil {
		return false
	}
	data, err := os.ReadFile(filepath.Join(g.dir, "memory.events"))
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

// remove removes the group and kills what is left in it. Its processes are already dead, except orphans of the
// reduced sandbox. The kernel may need a moment to notice.
func (g *leaf) remove() {
	if g == nil {
		return
	}
	if f, err := os.OpenFile(filepath.Join(g.dir, "cgroup.kill"), os.O_WRONLY, 0); err == nil { // since Linux 5.14
		_, _ = f.WriteString("1") // each process that this kills is also killed elsewhere
		f.Close()
	}
	for range 50 {
		if err := unix.Rmdir(g.dir); err != unix.EBUSY {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// sweepLeaves removes the empty groups of pollux processes that are gone.
func sweepLeaves(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*")) // only a bad pattern is an error
	for _, dir := range dirs {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), cgroupPrefix), "-")
		if pid, err := strconv.Atoi(number); err == nil && unix.Kill(pid, 0) == unix.ESRCH {
			_ = unix.Rmdir(dir) // fails if it is still in use
		}
	}
}
