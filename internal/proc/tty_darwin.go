package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

func terminalOf(pid int) (TTY, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid || k.Eproc.Tdev == -1 {
		return TTY{}, false
	}
	return TTY{ID: uint64(uint32(k.Eproc.Tdev)), Foreground: k.Eproc.Pgid == k.Eproc.Tpgid}, true
}

func openTTY(uint64) (*os.File, error) { return nil, errNoTTY }
