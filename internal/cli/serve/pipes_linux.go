package serve

import (
	"os"

	"golang.org/x/sys/unix"
)

// widen makes room for a megabyte in f, if it is a pipe. An editor that writes a large text into a full pipe waits
// for its next tick each time (Emacs 20 ms).
func widen(f any) {
	file, ok := f.(*os.File)
	if !ok {
		return
	}
	if raw, err := file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) })
	}
}
