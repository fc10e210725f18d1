package ownpipe

import (
	"errors"

	"golang.org/x/sys/unix"
)

// credentialsOf says which process of which user is at the other end of a socket.
func credentialsOf(fd int) (pid int, uid uint32, err error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	return int(cred.Pid), cred.Uid, nil
}

// endedAt says whether the process that made the connection has ended. It is false before Linux 6.5, which does not tell.
func endedAt(fd int) bool {
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if err != nil {
		return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) // it has ended and was waited for
	}
	defer unix.Close(pidfd)
	polls := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(polls, 0)
	return err == nil && n > 0
}
