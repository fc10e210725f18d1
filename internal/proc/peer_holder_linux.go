package proc

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A socketHolder is a process and its descriptor of a socket.
type socketHolder struct{ pid, fd int }

// heldSockets maps sockets to the processes that hold them, from one scan of all descriptors of this user's
// processes. Sessions that begin together share that scan.
type heldSockets struct {
	mu    sync.Mutex // guards the fields below; held during a scan
	known map[uint64][]socketHolder
	ended time.Time     // when the last scan ended
	took  time.Duration // how long it took
}

// lookShare bounds the processor time of scans: one part in lookShare.
const lookShare = 20

// maxLookPause bounds the wait for the next scan.
const maxLookPause = time.Second

// find returns the processes that hold a socket, by their numbers.
func (h *heldSockets) find(inode uint64, look func() map[uint64][]socketHolder) (pids []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	dropped := func(s socketHolder) bool { return !s.holds(inode) }
	if all := h.known[inode]; len(all) > 0 && !slices.ContainsFunc(all, dropped) {
		return pidsOf(all)
	}
	if pause := min(lookShare*h.took, maxLookPause) - time.Since(h.ended); pause > 0 {
		time.Sleep(pause) // further callers wait too, and share the next scan
	}
	begun := time.Now()
	h.known = look()
	h.ended = time.Now()
	h.took = h.ended.Sub(begun)
	return pidsOf(h.known[inode])
}

func pidsOf(holders []socketHolder) (pids []int) {
	for _, s := range holders {
		pids = append(pids, s.pid)
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// holds reports whether the descriptor is still that socket, because PIDs and descriptors are reused.
func (s socketHolder) holds(inode uint64) bool {
	target, err := os.Readlink("/proc/" + strconv.Itoa(s.pid) + "/fd/" + strconv.Itoa(s.fd))
	return err == nil && target == "socket:["+strconv.FormatUint(inode, 10)+"]"
}

// lookAtSockets returns the sockets of all processes that this user may inspect.
func lookAtSockets() map[uint64][]socketHolder {
	known := map[uint64][]socketHolder{}
	for _, name := range namesIn("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		dir := "/proc/" + name + "/fd"
		for _, fd := range namesIn(dir) { // empty for another user's process and for one that has ended
			target, err := os.Readlink(dir + "/" + fd)
			text, isSocket := strings.CutPrefix(target, "socket:[")
			if err != nil || !isSocket {
				continue
			}
			inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64)
			number, err2 := strconv.Atoi(fd)
			if err == nil && err2 == nil {
				known[inode] = append(known[inode], socketHolder{pid, number})
			}
		}
	}
	return known
}

// mine says whether a process runs as this user. Its folder in /proc does not tell: that of a process that hides itself is root's.
func mine(pid int) bool {
	status, err := readFile("/proc/" + strconv.Itoa(pid) + "/status")
	_, rest, ok := strings.Cut(string(status), "\nUid:")
	users, _, _ := strings.Cut(rest, "\n")
	return err == nil && ok && slices.Contains(strings.Fields(users), strconv.Itoa(os.Geteuid()))
}

// mayHold says whether a thread of a process has a descriptor of a socket, or hides its descriptors. Each thread is asked: one may have
// descriptors of its own, and the first one may have ended.
func mayHold(pid int, inode uint64) bool {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task/"
	target := "socket:[" + strconv.FormatUint(inode, 10) + "]"
	for _, task := range namesIn(tasks) {
		d, err := os.Open(tasks + task + "/fd")
		if errors.Is(err, fs.ErrPermission) {
			return true
		}
		if err != nil {
			continue // it has ended
		}
		names, _ := d.Readdirnames(-1)
		d.Close()
		if slices.ContainsFunc(names, func(fd string) bool {
			held, err := os.Readlink(tasks + task + "/fd/" + fd)
			return err == nil && held == target
		}) {
			return true
		}
	}
	return false
}

// namesIn opens a folder without package os, which tries to wait for it as for a connection.
func namesIn(dir string) []string {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	d := os.NewFile(uintptr(fd), dir)
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	return names
}
