package ownpipe

import "golang.org/x/sys/unix"

// credentialsOf says which process of which user is at the other end of a
// socket; pid is 0 where the system does not say.
func credentialsOf(fd int) (pid int, uid uint32, err error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	pid, _ = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	return pid, cred.Uid, nil
}

// endedAt is false: the system tells it by the process's number alone.
func endedAt(int) bool { return false }
