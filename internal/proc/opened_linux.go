package proc

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// watchPipes watches with inotify, which counts an open by /proc/PID/fd before the program that opens has the descriptor. A child that
// inherits a pipe opens nothing.
func watchPipes(files []*os.File) (opened func() bool) {
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil
	}
	watched := false
	for _, f := range files {
		info, err := f.Stat()
		if err != nil || info.Mode().Type() != os.ModeNamedPipe {
			continue // a socket cannot be opened, and a terminal takes no input that way
		}
		raw, err := f.SyscallConn()
		if err != nil {
			continue
		}
		_ = raw.Control(func(fd uintptr) {
			_, err := unix.InotifyAddWatch(watch, "/proc/self/fd/"+strconv.Itoa(int(fd)), unix.IN_OPEN)
			watched = watched || err == nil
		})
	}
	if !watched {
		unix.Close(watch)
		return nil
	}
	buf := make([]byte, 4096)
	return func() bool {
		n, err := unix.Read(watch, buf)
		return n > 0 || err != unix.EAGAIN && err != unix.EINTR
	}
}
