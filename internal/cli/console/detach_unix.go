//go:build unix

package console

import (
	"os/exec"
	"syscall"
)

// detach starts cmd in a new session, away from this terminal's signals.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
