package proc

import (
	"bytes"

	"golang.org/x/sys/unix"
)

func lookup(pid int) (Info, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return Info{}, false
	}
	name, _, _ := bytes.Cut(k.Proc.P_comm[:], []byte{0})
	return Info{
		PID:    pid,
		Parent: int(k.Eproc.Ppid),
		Name:   string(name),
		Start:  Stamp(k.Proc.P_starttime.Nano()),
	}, true
}
