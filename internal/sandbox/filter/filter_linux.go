package filter

import (
	"fmt"
	"slices"
	"syscall"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// A rule of the filter: what some system calls answer, always or under conditions.
type rule struct {
	calls  []uintptr
	answer uint32
	when   []argument // all must hold; none: always
}

// An argument is a condition on the low 32 bits of one argument. The kernel reads an int from the low half of a
// register and ignores the high half, so the filter must do the same: with bits set in the high half, a 64-bit
// comparison would see another value than the kernel does (the bug of flatpak CVE-2019-10063). Exactly one of anyBit,
// unlike and like is set.
type argument struct {
	index  int
	anyBit uint32   // one of these bits must be set
	mask   uint32   // bits to clear before comparing with unlike or like
	unlike []uint32 // none of these values
	like   []uint32 // one of these values
}

const (
	eperm  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	enosys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	eacces = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)

	eopnotsupp = unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)
)

const (
	newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME
	makesFile = unix.O_CREAT | (unix.O_TMPFILE &^ unix.O_DIRECTORY) // without these the kernel ignores the mode
	setIDs    = unix.S_ISUID | unix.S_ISGID

	// ioctls that change a file's flags, version and attributes (linux/fs.h).
	fsIoc32SetFlags, fsIocSetVersion, fsIoc32SetVersion, fsIocFsSetXattr = 0x40046602, 0x40087602, 0x40047602, 0x401c5820

	// The offsets of struct seccomp_data.
	dataNumber, dataArch, dataArgs = 0, 4, 16
)

// rules returns the filter's rules: they refuse what namespaces do not cover and what could take the namespaces
// apart. With network, internet sockets are allowed. With reduced, calls that Landlock does not see are refused too.
func rules(network, reduced bool) []rule {
	all := []rule{
		// Namespaces, mounts, and calls that change the machine.
		{calls: []uintptr{unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
			unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_LISTNS, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
			unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
			unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_VHANGUP, unix.SYS_SYSLOG,
			unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETTIMEOFDAY, unix.SYS_ADJTIMEX, unix.SYS_NFSSERVCTL}, answer: eperm},
		// Other processes, and kernel parts with a history of holes.
		{calls: []uintptr{unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
			unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
			unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK, unix.SYS_LOOKUP_DCOOKIE,
			unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES}, answer: eperm},
		// A filter cannot read what a pointer points to, so it could not check these calls' arguments. With ENOSYS
		// libraries fall back to the older calls, whose arguments the rules below check.
		{calls: []uintptr{unix.SYS_CLONE3, unix.SYS_OPENAT2, unix.SYS_FCHMODAT2, unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET,
			unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}, answer: enosys},
		// clone passes its flags in a register, so only calls that make namespaces need to be refused.
		{calls: []uintptr{unix.SYS_CLONE}, answer: eperm, when: []argument{{index: 0, anyBit: newNamespaces}}},
		// These type into the user's terminal or change its line discipline.
		{calls: []uintptr{unix.SYS_IOCTL}, answer: eperm, when: []argument{{index: 1, like: []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, unix.TIOCCONS}}}},
		// Other personalities weaken memory protection. Setting the default one and querying are allowed.
		{calls: []uintptr{unix.SYS_PERSONALITY}, answer: eperm, when: []argument{{index: 0, unlike: []uint32{0, 0xffffffff}}}},
		// A setuid or setgid file would outlive the sandbox and run with its owner's rights.
		{calls: []uintptr{unix.SYS_FCHMOD}, answer: eperm, when: []argument{{index: 1, anyBit: setIDs}}},
		{calls: []uintptr{unix.SYS_FCHMODAT, unix.SYS_MKNODAT}, answer: eperm, when: []argument{{index: 2, anyBit: setIDs}}},
		{calls: []uintptr{unix.SYS_OPENAT}, answer: eperm, when: []argument{{index: 2, anyBit: makesFile}, {index: 3, anyBit: setIDs}}},
		// Pairs of other families reach kernel code that no policy needs.
		{calls: []uintptr{unix.SYS_SOCKETPAIR}, answer: eacces, when: []argument{{index: 0, unlike: []uint32{unix.AF_UNIX}}}},
		// A datagram socket of a pair can still send to any socket file (SOCK_RAW makes a datagram socket too).
		// Stream sockets stay connected to each other for good.
		{calls: []uintptr{unix.SYS_SOCKETPAIR}, answer: eacces, when: []argument{{index: 1, mask: unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC, unlike: []uint32{unix.SOCK_STREAM, unix.SOCK_SEQPACKET}}}},
		// Larger socket buffers would hold memory that no limit counts. setsockopt reports success and changes
		// nothing.
		{calls: []uintptr{unix.SYS_SETSOCKOPT}, answer: unix.SECCOMP_RET_ERRNO, when: []argument{{index: 1, like: []uint32{unix.SOL_SOCKET}},
			{index: 2, like: []uint32{unix.SO_SNDBUF, unix.SO_RCVBUF, unix.SO_SNDBUFFORCE, unix.SO_RCVBUFFORCE}}}},
		// Allocated space that nobody has written to escapes the disk limit. Libraries write zeros instead.
		{calls: []uintptr{unix.SYS_FALLOCATE}, answer: eopnotsupp},
		// System V memory belongs to no process, so no limit sees it. Without namespaces it would be the host's.
		{calls: []uintptr{unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL}, answer: enosys},
	}
	// Only TCP and UDP over IP: no raw sockets, no netlink (family AF_NETLINK), no rarely used protocols with a
	// history of holes.
	if network {
		all = append(all,
			rule{calls: []uintptr{unix.SYS_SOCKET}, answer: eacces, when: []argument{{index: 0, unlike: []uint32{unix.AF_INET, unix.AF_INET6}}}},
			rule{calls: []uintptr{unix.SYS_SOCKET}, answer: eacces, when: []argument{{index: 1, mask: unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC, unlike: []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM}}}},
			rule{calls: []uintptr{unix.SYS_SOCKET}, answer: eacces, when: []argument{{index: 2, unlike: []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP}}}})
	} else {
		all = append(all, rule{calls: []uintptr{unix.SYS_SOCKET}, answer: eacces})
	}
	// Landlock does not control modes, owners, times and attributes. Without read-only mounts the filter must.
	if reduced {
		all = append(all, rule{calls: append([]uintptr{unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
			unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
			unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR}, oldReduced()...), answer: eperm},
			// ioctl can change flags even of a file that was opened for reading.
			rule{calls: []uintptr{unix.SYS_IOCTL}, answer: eperm, when: []argument{{index: 1, like: []uint32{unix.FS_IOC_SETFLAGS, fsIoc32SetFlags, fsIocSetVersion, fsIoc32SetVersion, fsIocFsSetXattr}}}})
	}
	return append(all, oldRules()...)
}

// assemble compiles the filter. It checks the architecture first, because system call numbers depend on it. Calls of
// another interface (i386 through int 0x80, x32) kill the process: their numbers mean other calls and would slip
// through the rules. Then come the rules, one after the other.
func assemble(rules []rule) ([]bpf.RawInstruction, error) {
	code := []bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: dataNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: 0x40000000, SkipFalse: 1}, // x32
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
	}
	for _, r := range rules {
		for _, call := range r.calls {
			body := r.body()
			if len(body) > 255 {
				return nil, fmt.Errorf("a rule of %d instructions", len(body))
			}
			code = append(code, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(call), SkipFalse: uint8(len(body))})
			code = append(code, body...)
		}
	}
	return bpf.Assemble(append(code, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}))
}

// body returns the instructions for a call whose number matches. If the conditions do not hold, it leaves the number
// loaded for the next rule.
func (r rule) body() []bpf.Instruction {
	if r.when == nil {
		return []bpf.Instruction{bpf.RetConstant{Val: r.answer}}
	}
	code := []bpf.Instruction{bpf.RetConstant{Val: r.answer}, bpf.LoadAbsolute{Off: dataNumber, Size: 4}}
	for _, a := range slices.Backward(r.when) {
		code = append(a.test(len(code)-1), code...)
	}
	return code
}

// test returns the instructions of one condition. They fall through if it holds, and skip the given number of
// instructions otherwise.
func (a argument) test(otherwise int) []bpf.Instruction {
	code := []bpf.Instruction{bpf.LoadAbsolute{Off: uint32(dataArgs + 8*a.index + lowHalf), Size: 4}}
	if a.anyBit != 0 {
		return append(code, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: a.anyBit, SkipFalse: uint8(otherwise)})
	}
	if a.mask != 0 {
		code = append(code, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: ^a.mask})
	}
	for i, v := range a.unlike {
		code = append(code, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(a.unlike) - 1 - i + otherwise)})
	}
	for i, v := range a.like {
		code = append(code, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(a.like) - i)})
	}
	if a.like != nil {
		code = append(code, bpf.Jump{Skip: uint32(otherwise)})
	}
	return code
}

// SockFilter converts a program to the kernel's form.
func SockFilter(filter []bpf.RawInstruction) []syscall.SockFilter {
	program := make([]syscall.SockFilter, len(filter))
	for i, ins := range filter {
		program[i] = syscall.SockFilter{Code: ins.Op, Jt: ins.Jt, Jf: ins.Jf, K: ins.K}
	}
	return program
}

// Compile returns the filter of a sandbox. With network, internet sockets are allowed. With reduced, it also refuses the
// calls that only namespaces make harmless.
func Compile(network, reduced bool) ([]syscall.SockFilter, error) {
	filter, err := assemble(rules(network, reduced))
	if err != nil {
		return nil, err
	}
	return SockFilter(filter), nil
}
