//go:build unix

package ide

import (
	"os/exec"
	"syscall"
)

// ownGroup starts a program in its own process group, so that the end of its context ends all processes it started.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
