package kernel

import (
	"syscall"
	"unsafe"
)

// Landlock's rights over files and the network, and its scopes.
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

// A Ruleset is what Landlock is to refuse, unless a rule allows it.
type Ruleset struct{ Files, Network, Scoped uint64 }

// LandlockVersion is the version of the kernel's Landlock, 0 when it has none
// or does not use it.
func LandlockVersion() int {
	const version = 1
	v, err := number(syscall.Syscall(sysCreateRuleset, 0, 0, version))
	if err != nil {
		return 0
	}
	return v
}

// CreateRuleset opens a set of rules, for a kernel with that version.
func CreateRuleset(set *Ruleset, version int) (int, error) {
	size := unsafe.Sizeof(*set)
	if version < 6 {
		size = 16 // the fields that it knows come first
	}
	if version < 4 {
		size = 8
	}
	return number(syscall.Syscall(sysCreateRuleset, uintptr(unsafe.Pointer(set)), size, 0))
}

// AllowBeneath adds a rule for what lies at and below an open file or folder.
func AllowBeneath(set, fd int, access uint64) error {
	const pathBeneath = 1
	var rule struct { // the kernel's is packed, 12 bytes of these
		access uint64
		parent int32
	}
	rule.access, rule.parent = access, int32(fd)
	return only(syscall.Syscall6(sysAddRule, uintptr(set), pathBeneath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0))
}

// RestrictSelf binds the calling thread to a set of rules.
func RestrictSelf(set int) error {
	return only(syscall.Syscall(sysRestrictSelf, uintptr(set), 0, 0))
}
