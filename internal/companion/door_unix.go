//go:build unix

package companion

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// duplicate returns a second descriptor of a listening socket, for another process. The listener's own File would switch
// the socket to blocking when it is passed on, and the listener with it.
func duplicate(ln net.Listener) (*os.File, error) {
	conn, ok := ln.(syscall.Conn)
	if !ok {
		return nil, syscall.EINVAL
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, failed := -1, error(nil)
	if err := raw.Control(func(own uintptr) { fd, failed = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 3) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	return os.NewFile(uintptr(fd), "door"), nil
}
