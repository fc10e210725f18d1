//go:build unix

package runner

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup gives a program its own process group, which is killed as a whole when the command is cancelled. On Linux
// the program also ends with the thread that starts it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = endWithUs(&syscall.SysProcAttr{Setpgid: true})
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endGroup kills what a program left in its group.
func endGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // usually nothing is left
	}
}

// ending returns how a program ended: its exit code as a shell reports it, and the signal.
func ending(state *os.ProcessState) (code, signal int) {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), int(status.Signal())
	}
	return state.ExitCode(), 0
}
