//go:build unix

package proc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || err == syscall.EPERM
}

func leaderOf(pid int) (int, bool) {
	leader, err := unix.Getsid(pid)
	return leader, err == nil
}
