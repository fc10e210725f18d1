package control

import (
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// errRefused is what a socket gives that nobody listens on.
const errRefused = syscall.ECONNREFUSED

// checkPeer refuses processes of other users; root may do anything anyway.
// pid is the process at the other end, 0 when the system does not say.
func checkPeer(c net.Conn) (pid int, err error) {
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("not a unix socket: %T", c)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Xucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		pid, _ = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	}); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	if int(cred.Uid) != os.Geteuid() && cred.Uid != 0 {
		return 0, fmt.Errorf("a process of user %d", cred.Uid)
	}
	return pid, nil
}
