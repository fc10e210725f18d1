package ownpipe

import "golang.org/x/sys/unix"

// credentialsOf says which process of which user is at the other end of a socket.
func credentialsOf(fd int) (pid int, uid uint32, err error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	return int(cred.Pid), cred.Uid, nil
}
