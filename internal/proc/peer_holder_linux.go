package proc

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A socketHolder is a process and its descriptor of a socket.
type socketHolder struct{ pid, fd int }

// heldSockets knows which process holds which socket, from one look at every descriptor of this user's processes. Many
// sessions that begin together share that look.
type heldSockets struct {
	mu    sync.Mutex // guards what follows; held during a look
	known map[uint64]socketHolder
	ended time.Time     // of the last look
	took  time.Duration // it
}

// lookShare bounds the share of a processor that looks cost: one part in so many.
const lookShare = 20

// maxLookPause bounds what waiting for the next look costs whoever asks.
const maxLookPause = time.Second

func (h *heldSockets) find(inode uint64, look func() map[uint64]socketHolder) (pid int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := h.known[inode]; at.holds(inode) {
		return at.pid, true
	}
	if pause := min(lookShare*h.took, maxLookPause) - time.Since(h.ended); pause > 0 {
		time.Sleep(pause) // whoever asks meanwhile waits too, and shares the next look
	}
	begun := time.Now()
	h.known = look()
	h.ended = time.Now()
	h.took = h.ended.Sub(begun)
	at := h.known[inode]
	return at.pid, at.pid != 0
}

// holds says whether that descriptor still is that socket: PIDs and descriptors are used again.
func (s socketHolder) holds(inode uint64) bool {
	if s.pid == 0 {
		return false
	}
	target, err := os.Readlink("/proc/" + strconv.Itoa(s.pid) + "/fd/" + strconv.Itoa(s.fd))
	return err == nil && target == "socket:["+strconv.FormatUint(inode, 10)+"]"
}

// lookAtSockets lists the sockets of every process that this user may look at.
func lookAtSockets() map[uint64]socketHolder {
	known := map[uint64]socketHolder{}
	for _, name := range namesIn("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		dir := "/proc/" + name + "/fd"
		for _, fd := range namesIn(dir) { // none of another user's process, nor of one that is gone
			target, err := os.Readlink(dir + "/" + fd)
			text, isSocket := strings.CutPrefix(target, "socket:[")
			if err != nil || !isSocket {
				continue
			}
			inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64)
			number, err2 := strconv.Atoi(fd)
			if before := known[inode]; err == nil && err2 == nil && (before.pid == 0 || pid < before.pid) {
				known[inode] = socketHolder{pid, number}
			}
		}
	}
	return known
}

func namesIn(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	return names
}
