//go:build unix

package runner

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup gives a program a process group of its own, which ends with it.
// Where the system can do that, the program ends with the thread that starts it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = endWithUs(&syscall.SysProcAttr{Setpgid: true})
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endGroup ends what a program left in its group.
func endGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // nothing left is what is hoped for
	}
}

// ending is how a program ended: its exit code in a shell's view, and the signal.
func ending(state *os.ProcessState) (code, signal int) {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), int(status.Signal())
	}
	return state.ExitCode(), 0
}
