//go:build unix

package ide

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a program and what it starts into a process group, so that
// the end of its context ends all of them.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
