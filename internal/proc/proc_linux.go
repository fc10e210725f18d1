package proc

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

var errNoEvents = errors.New("the system does not tell when a process ends")

// lookup reads /proc/PID/stat: pid (name) state ppid … with the start time in clock ticks as field 22.
func lookup(pid int) (Info, bool) {
	data, err := readStat(pid)
	if err != nil {
		return Info{}, false
	}
	return parseStat(pid, data)
}

// readStat reads /proc/PID/stat.
func readStat(pid int) ([]byte, error) { return readFile("/proc/" + strconv.Itoa(pid) + "/stat") }

// readFile reads a file of /proc. Package os would make ten system calls of these four: it tries to wait for the file as for a connection.
func readFile(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	data := make([]byte, 0, 2048) // more than a stat has
	for {
		n := 0
		err := retry(func() (err error) { n, err = unix.Read(fd, data[len(data):cap(data)]); return err })
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			return data, nil
		}
		if data = data[:len(data)+n]; len(data) == cap(data) {
			data = slices.Grow(data, len(data))
		}
	}
}

func parseStat(pid int, data []byte) (Info, bool) {
	// The name may hold blanks and parentheses, so it ends at the last one.
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return Info{}, false
	}
	info := Info{PID: pid, Name: string(data[open+1 : end])}
	fields := bytes.Fields(data[end+1:]) // field 3 and later
	if len(fields) < 20 {
		return Info{}, false
	}
	info.Parent, _ = strconv.Atoi(string(fields[1]))
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	info.Start = Stamp(start)
	return info, err == nil
}

// waitEvent waits on a pidfd, which needs neither a thread nor a timer.
func waitEvent(ctx context.Context, pid int, lives func() bool) error {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return errNoEvents // before Linux 5.10, or forbidden in this sandbox
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	if !lives() {
		return nil // it ended before; the pidfd may be another process's
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return errNoEvents
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err = raw.Read(func(fd uintptr) bool {
		polls := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(polls, 0)
		return err == nil && n > 0
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return errNoEvents
}
