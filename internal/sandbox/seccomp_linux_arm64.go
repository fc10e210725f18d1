package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	lowHalf   = 0 // little endian
)

// oldRules are those for calls that this architecture has and others lack.
func oldRules() []rule {
	return []rule{{calls: []uintptr{unix.SYS_KEXEC_FILE_LOAD}, answer: eperm}}
}

func oldReduced() []uintptr { return nil }
