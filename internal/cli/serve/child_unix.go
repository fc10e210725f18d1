//go:build unix

package serve

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// passSignal passes a signal on to run's command. The terminal's own signals (Ctrl-C, Ctrl-\) have already reached
// it, because it is in the same process group; a second one could mean something else to it.
func passSignal(p *os.Process, sig os.Signal) {
	if (sig == syscall.SIGINT || sig == syscall.SIGQUIT) && inForeground() {
		return
	}
	_ = p.Signal(sig)
}

// inForeground reports whether this process group has the terminal.
func inForeground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// exitCodeOf returns a process's exit code as a shell does.
func exitCodeOf(ps *os.ProcessState) int {
	if ws, ok := ps.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ps.ExitCode()
}
