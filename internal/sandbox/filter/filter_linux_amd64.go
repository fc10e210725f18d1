package filter

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	lowHalf   = 0 // little endian
)

// oldRules are the rules for calls that not every architecture has.
func oldRules() []rule {
	return []rule{
		{calls: []uintptr{unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_CREATE_MODULE,
			unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE, unix.SYS__SYSCTL, unix.SYS_KEXEC_FILE_LOAD}, answer: eperm},
		{calls: []uintptr{unix.SYS_CHMOD, unix.SYS_CREAT, unix.SYS_MKNOD}, answer: eperm, when: []argument{{index: 1, anyBit: setIDs}}},
		{calls: []uintptr{unix.SYS_OPEN}, answer: eperm, when: []argument{{index: 1, anyBit: makesFile}, {index: 2, anyBit: setIDs}}},
	}
}

func oldReduced() []uintptr {
	return []uintptr{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}
}
