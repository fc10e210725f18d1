package kernel

import (
	"syscall"
	"unsafe"
)

// The newer system calls have the same number on every architecture.
const (
	sysOpenTree      = 428
	sysMoveMount     = 429
	sysFsopen        = 430
	sysFsconfig      = 431
	sysFsmount       = 432
	sysCloseRange    = 436
	sysOpenat2       = 437
	sysMountSetattr  = 442
	sysCreateRuleset = 444
	sysAddRule       = 445
	sysRestrictSelf  = 446
)

// Constants of the calls below, named as in linux/*.h.
const (
	ATFdcwd     = -100
	ATEmptyPath = 0x1000
	ATRecursive = 0x8000
	OPath       = 0x200000

	CloseRangeCloexec = 4

	ResolveNoMagiclinks = 2
	ResolveNoSymlinks   = 4
	ResolveInRoot       = 16

	OpenTreeClone       = 1
	OpenTreeCloexec     = syscall.O_CLOEXEC
	FsopenCloexec       = 1
	FsmountCloexec      = 1
	MoveMountFEmptyPath = 4
	MoveMountTEmptyPath = 0x40

	MountAttrRdonly = 1
	MountAttrNosuid = 2
	MountAttrNodev  = 4
	MountAttrNoexec = 8

	PRSetChildSubreaper  = 36
	PRSetNoNewPrivs      = 38
	PRGetNoNewPrivs      = 39
	PRCapAmbient         = 47
	PRCapAmbientClearAll = 4

	RlimitNproc    = 6
	RlimitMemlock  = 8
	RlimitMsgqueue = 12

	SeccompSetModeFilter   = 1
	SeccompFilterFlagTsync = 1

	CapabilityVersion3 = 0x20080522
)

// An OpenHow is the argument of Openat2: flags and how to resolve the path.
type OpenHow struct{ Flags, Mode, Resolve uint64 }

// A MountAttr holds the attributes that MountSetattr changes.
type MountAttr struct{ AttrSet, AttrClr, Propagation, UserNS uint64 }

// Openat2 opens a path below a folder, with rules for links and mounts on the way.
func Openat2(dir int, path string, how *OpenHow) (int, error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	return number(syscall.Syscall6(sysOpenat2, uintptr(dir), uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(how)), unsafe.Sizeof(*how), 0, 0))
}

// OpenTree opens the mount at a path, or a copy of it.
func OpenTree(dir int, path string, flags uint) (int, error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	return number(syscall.Syscall(sysOpenTree, uintptr(dir), uintptr(unsafe.Pointer(p)), uintptr(flags)))
}

// MoveMount attaches a mount at a path.
func MoveMount(fromDir int, from string, toDir int, to string, flags int) error {
	p, err := syscall.BytePtrFromString(from)
	if err != nil {
		return err
	}
	q, err := syscall.BytePtrFromString(to)
	if err != nil {
		return err
	}
	return only(syscall.Syscall6(sysMoveMount, uintptr(fromDir), uintptr(unsafe.Pointer(p)), uintptr(toDir), uintptr(unsafe.Pointer(q)), uintptr(flags), 0))
}

// MountSetattr changes the attributes of mounts.
func MountSetattr(dir int, path string, flags uint, attr *MountAttr) error {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	return only(syscall.Syscall6(sysMountSetattr, uintptr(dir), uintptr(unsafe.Pointer(p)), uintptr(flags), uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr), 0))
}

// Fsopen begins a new file system.
func Fsopen(kind string, flags int) (int, error) {
	p, err := syscall.BytePtrFromString(kind)
	if err != nil {
		return -1, err
	}
	return number(syscall.Syscall(sysFsopen, uintptr(unsafe.Pointer(p)), uintptr(flags), 0))
}

// FsconfigSet sets an option of a new file system.
func FsconfigSet(fs int, key, value string) error {
	const setString = 1
	k, err := syscall.BytePtrFromString(key)
	if err != nil {
		return err
	}
	v, err := syscall.BytePtrFromString(value)
	if err != nil {
		return err
	}
	return only(syscall.Syscall6(sysFsconfig, uintptr(fs), setString, uintptr(unsafe.Pointer(k)), uintptr(unsafe.Pointer(v)), 0, 0))
}

// FsconfigCreate creates the file system.
func FsconfigCreate(fs int) error {
	const create = 6
	return only(syscall.Syscall6(sysFsconfig, uintptr(fs), create, 0, 0, 0, 0))
}

// Fsmount turns it into a mount that is not attached yet.
func Fsmount(fs, flags, attr int) (int, error) {
	return number(syscall.Syscall(sysFsmount, uintptr(fs), uintptr(flags), uintptr(attr)))
}

// CloseRange closes descriptors, or marks them close-on-exec.
func CloseRange(first, last uint, flags int) error {
	return only(syscall.Syscall(sysCloseRange, uintptr(first), uintptr(last), uintptr(flags)))
}

// Symlinkat makes a symbolic link.
func Symlinkat(to string, dir int, path string) error {
	p, err := syscall.BytePtrFromString(to)
	if err != nil {
		return err
	}
	q, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	return only(syscall.Syscall(syscall.SYS_SYMLINKAT, uintptr(unsafe.Pointer(p)), uintptr(dir), uintptr(unsafe.Pointer(q))))
}

// Prctl changes or reads a setting of the calling thread.
func Prctl(option int, arguments ...uintptr) (int, error) {
	var a [4]uintptr
	copy(a[:], arguments)
	return number(syscall.Syscall6(syscall.SYS_PRCTL, uintptr(option), a[0], a[1], a[2], a[3], 0))
}

// A CapHeader says whose capabilities are meant: version 3, and PID 0 for the calling thread.
type CapHeader struct {
	Version uint32
	Pid     int32
}

// CapData holds 32 capabilities; a thread has two of them.
type CapData struct{ Effective, Permitted, Inheritable uint32 }

// Capget reads the calling thread's capabilities.
func Capget(header *CapHeader, data *[2]CapData) error {
	return only(syscall.Syscall(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)), 0))
}

// Capset sets the calling thread's capabilities.
func Capset(header *CapHeader, data *[2]CapData) error {
	return only(syscall.Syscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)), 0))
}

// Seccomp installs a filter on every thread of this process. It returns a thread that could not be given the filter,
// or 0.
func Seccomp(filter []syscall.SockFilter) (int, error) {
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return number(syscall.Syscall(sysSeccomp, SeccompSetModeFilter, SeccompFilterFlagTsync, uintptr(unsafe.Pointer(&program))))
}

// AttachFilter attaches a packet filter to a socket.
func AttachFilter(fd int, filter []syscall.SockFilter) error {
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return only(syscall.Syscall6(syscall.SYS_SETSOCKOPT, uintptr(fd), syscall.SOL_SOCKET, syscall.SO_ATTACH_FILTER, uintptr(unsafe.Pointer(&program)), unsafe.Sizeof(program), 0))
}

// SetInterfaceFlags sets the flags of a network interface.
func SetInterfaceFlags(fd int, name string, flags uint16) error {
	var request struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:15], name)
	request.flags = flags
	return only(syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))))
}

func only(_, _ uintptr, errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

func number(n, _ uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}
