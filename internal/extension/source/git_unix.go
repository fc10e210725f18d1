//go:build unix

package source

import (
	"os/exec"
	"syscall"
)

// ownGroup puts git and its helpers into a process group, so that cancelling ends all of them. A git that may ask on
// the terminal must stay in the foreground group; then its helpers end with their pipes.
func ownGroup(cmd *exec.Cmd) {
	if cmd.Stdin != nil {
		return
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
