package kernel

import (
	"syscall"
	"unsafe"
)

// Landlock's file rights, network rights and scopes.
const (
	LandExecute    = 1 << 0
	LandWriteFile  = 1 << 1
	LandReadFile   = 1 << 2
	LandReadDir    = 1 << 3
	LandRemoveDir  = 1 << 4
	LandRemoveFile = 1 << 5
	LandMakeDir    = 1 << 7
	LandMakeReg    = 1 << 8
	LandMakeSock   = 1 << 9
	LandMakeFIFO   = 1 << 10
	LandMakeSym    = 1 << 12
	LandRefer      = 1 << 13
	LandTruncate   = 1 << 14
	LandIoctlDev   = 1 << 15
	LandUnix       = 1 << 16

	LandBindTCP    = 1 << 0
	LandConnectTCP = 1 << 1

	LandAbstract = 1 << 0
	LandSignal   = 1 << 1
)

// A Ruleset is what Landlock refuses unless a rule allows it.
type Ruleset struct{ Files, Network, Scoped uint64 }

// LandlockVersion returns the kernel's Landlock version, or 0 if Landlock is missing or disabled.
func LandlockVersion() int {
	const version = 1
	v, err := number(syscall.Syscall(sysCreateRuleset, 0, 0, version))
	if err != nil {
		return 0
	}
	return v
}

// CreateRuleset opens a ruleset for a kernel with that Landlock version.
func CreateRuleset(set *Ruleset, version int) (int, error) {
	size := unsafe.Sizeof(*set)
	if version < 6 {
		size = 16 // older versions know only the first fields
	}
	if version < 4 {
		size = 8
	}
	return number(syscall.Syscall(sysCreateRuleset, uintptr(unsafe.Pointer(set)), size, 0))
}

// AllowBeneath adds a rule for an open file or folder and everything below it.
func AllowBeneath(set, fd int, access uint64) error {
	const pathBeneath = 1
	var rule struct { // the kernel's struct is packed and has 12 bytes
		access uint64
		parent int32
	}
	rule.access, rule.parent = access, int32(fd)
	return only(syscall.Syscall6(sysAddRule, uintptr(set), pathBeneath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0))
}

// RestrictSelf binds the calling thread to a ruleset.
func RestrictSelf(set int) error {
	return only(syscall.Syscall(sysRestrictSelf, uintptr(set), 0, 0))
}
