package filter

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	lowHalf   = 0 // little endian
)

// oldRules are the rules for calls that not every architecture has.
func oldRules() []rule {
	return []rule{{calls: []uintptr{unix.SYS_KEXEC_FILE_LOAD}, answer: eperm}}
}

func oldReduced() []uintptr { return nil }
