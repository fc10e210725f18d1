package console

import (
	"os/exec"
	"syscall"
)

// detach starts cmd in a new process group, away from this console's Ctrl-C.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
