package safefile

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// NoWait are flags for os.OpenFile, so that a FIFO or terminal in place of a file neither blocks nor becomes the
// controlling terminal.
const NoWait = syscall.O_NONBLOCK | syscall.O_NOCTTY

// madeUp are the kernel's own file systems. Their files claim to be regular and empty or one page long, and may
// block, never end, or change the machine when opened and read.
var madeUp = map[int64]string{
	unix.PROC_SUPER_MAGIC:     "proc",
	unix.SYSFS_MAGIC:          "sysfs",
	unix.DEBUGFS_MAGIC:        "debugfs",
	unix.TRACEFS_MAGIC:        "tracefs",
	unix.SECURITYFS_MAGIC:     "securityfs",
	unix.AAFS_MAGIC:           "apparmorfs",
	unix.SELINUX_MAGIC:        "selinuxfs",
	unix.SMACK_MAGIC:          "smackfs",
	unix.CGROUP_SUPER_MAGIC:   "cgroup",
	unix.CGROUP2_SUPER_MAGIC:  "cgroup2",
	unix.BPF_FS_MAGIC:         "bpf",
	unix.PSTOREFS_MAGIC:       "pstore",
	unix.EFIVARFS_MAGIC:       "efivarfs",
	unix.BINFMTFS_MAGIC:       "binfmt_misc",
	unix.RDTGROUP_SUPER_MAGIC: "resctrl",
	unix.DEVPTS_SUPER_MAGIC:   "devpts",
	unix.NSFS_MAGIC:           "nsfs",
	unix.PID_FS_MAGIC:         "pidfs",
	0x62656570:                "configfs",
	0x65735543:                "fusectl",
	0x19800202:                "mqueue",
}

// notMadeUp refuses a file on such a file system, without opening it.
func notMadeUp(path string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return err
	}
	return judge(&s)
}

// OnDisk refuses an open file on such a file system with ErrNotRegular, before it is read.
func OnDisk(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var s unix.Statfs_t
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = unix.Fstatfs(int(fd), &s) }); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	return judge(&s)
}

func judge(s *unix.Statfs_t) error {
	if name, ok := madeUp[int64(s.Type)&0xffffffff]; ok { //nolint:unconvert // the type is narrower on some machines
		return &notRegular{"lies in the kernel's own file system " + name + ", and is not a regular file"}
	}
	return nil
}
