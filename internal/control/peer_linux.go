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
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	if int(cred.Uid) != os.Geteuid() && cred.Uid != 0 {
		return 0, fmt.Errorf("process %d of user %d", cred.Pid, cred.Uid)
	}
	return int(cred.Pid), nil
}
