package filter

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// judge runs the filter on one call, in a BPF machine. The machine reads words in big-endian order; the kernel uses
// the host's.
func judge(t *testing.T, filter []bpf.Instruction, arch uint32, number uintptr, args ...uint64) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(filter)
	if err != nil {
		t.Fatal(err)
	}
	packet := binary.BigEndian.AppendUint32(nil, uint32(number))
	packet = binary.BigEndian.AppendUint32(packet, arch)
	packet = append(packet, make([]byte, 8)...) // the instruction pointer
	for i := range 6 {
		var v uint64
		if i < len(args) {
			v = args[i]
		}
		packet = binary.BigEndian.AppendUint32(packet, uint32(v)) // the low half first, as in memory
		packet = binary.BigEndian.AppendUint32(packet, uint32(v>>32))
	}
	answer, err := vm.Run(packet)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(answer)
}

func filterFor(t *testing.T, network, reduced bool) []bpf.Instruction {
	t.Helper()
	raw, err := assemble(rules(network, reduced))
	if err != nil {
		t.Fatal(err)
	}
	filter, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("the filter cannot be read back")
	}
	return filter
}

// TestFilter: the filter of each kind of sandbox, call by call.
func TestFilter(t *testing.T) {
	const allow, kill = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_KILL_PROCESS
	closed, network, reduced := filterFor(t, false, false), filterFor(t, true, false), filterFor(t, false, true)
	for _, test := range []struct {
		name   string
		filter []bpf.Instruction
		number uintptr
		args   []uint64
		want   uint32
	}{
		{"read", closed, unix.SYS_READ, nil, allow},
		{"mount", closed, unix.SYS_MOUNT, nil, eperm},
		{"clone3", closed, unix.SYS_CLONE3, nil, enosys},
		{"clone of a thread", closed, unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD}, allow},
		{"clone of a user namespace", closed, unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER | unix.CLONE_VM}, eperm},
		{"clone with a high half", closed, unix.SYS_CLONE, []uint64{1<<40 | unix.CLONE_NEWNET}, eperm},
		{"socket", closed, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, eacces},
		{"socket with hosts", network, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0}, allow},
		{"socket by UDP", network, unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK, unix.IPPROTO_UDP}, allow},
		{"socket of unix", network, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, eacces},
		{"socket of unix, high half", network, unix.SYS_SOCKET, []uint64{unix.AF_UNIX | 1<<32, unix.SOCK_STREAM, 0}, eacces},
		{"socket of the internet, high half", network, unix.SYS_SOCKET, []uint64{unix.AF_INET | 1<<32, unix.SOCK_STREAM, 0}, allow}, // it is one
		{"raw socket", network, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, eacces},
		{"ICMP by datagrams", network, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, eacces},
		{"multipath", network, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, 262}, eacces},
		{"socket pair", closed, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, allow},
		{"socket pair of packets", closed, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET | unix.SOCK_CLOEXEC}, allow},
		{"socket pair of datagrams", closed, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, eacces},
		{"socket pair of datagrams, with flags", closed, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC}, eacces},
		{"socket pair of datagrams, high half", closed, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM | 1<<32}, eacces},
		{"socket pair, raw", closed, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_RAW}, eacces},
		{"socket pair, raw, with hosts", network, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_RAW | unix.SOCK_CLOEXEC}, eacces},
		{"socket pair, raw, reduced", reduced, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_RAW}, eacces},
		{"socket pair, of an unknown kind", closed, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, 0}, eacces},
		{"larger buffers", closed, unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_SNDBUF}, unix.SECCOMP_RET_ERRNO},
		{"larger buffers, high half", network, unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET | 1<<32, unix.SO_RCVBUF | 1<<40}, unix.SECCOMP_RET_ERRNO},
		{"larger buffers by force", network, unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE}, unix.SECCOMP_RET_ERRNO},
		{"another option", network, unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_REUSEADDR}, allow},
		{"another level's option of that number", network, unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_TCP, unix.SO_SNDBUF}, allow},
		{"room on the disk", closed, unix.SYS_FALLOCATE, nil, eopnotsupp},
		{"shared memory", closed, unix.SYS_SHMGET, nil, enosys},
		{"semaphores", network, unix.SYS_SEMGET, nil, enosys},
		{"queues", closed, unix.SYS_MSGGET, nil, enosys},
		{"a mount's attributes", closed, unix.SYS_OPEN_TREE_ATTR, nil, eperm},
		{"an attribute by the newer call", reduced, unix.SYS_SETXATTRAT, nil, eperm},
		{"an attribute less", reduced, unix.SYS_REMOVEXATTRAT, nil, eperm},
		{"a file's flags by the newer call", reduced, unix.SYS_FILE_SETATTR, nil, eperm},
		{"a file's flags", reduced, unix.SYS_IOCTL, []uint64{0, unix.FS_IOC_SETFLAGS}, eperm},
		{"a file's flags, high half", reduced, unix.SYS_IOCTL, []uint64{0, unix.FS_IOC_SETFLAGS | 1<<32}, eperm},
		{"a file's attributes", reduced, unix.SYS_IOCTL, []uint64{0, 0x401c5820}, eperm},
		{"a file's flags to read", reduced, unix.SYS_IOCTL, []uint64{0, unix.FS_IOC_GETFLAGS}, allow},
		{"typing, reduced", reduced, unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, eperm},
		{"socket pair of TIPC", closed, unix.SYS_SOCKETPAIR, []uint64{unix.AF_TIPC, unix.SOCK_STREAM}, eacces},
		{"typing", closed, unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, eperm},
		{"typing, high half", closed, unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI | 1<<33}, eperm},
		{"the console", closed, unix.SYS_IOCTL, []uint64{0, unix.TIOCCONS}, eperm},
		{"the window's size", closed, unix.SYS_IOCTL, []uint64{0, unix.TIOCGWINSZ}, allow},
		{"the usual personality", closed, unix.SYS_PERSONALITY, []uint64{0xffffffff}, allow},
		{"no randomisation", closed, unix.SYS_PERSONALITY, []uint64{0x0040000}, eperm},
		{"chmod", closed, unix.SYS_FCHMODAT, []uint64{0, 0, 0o755}, allow},
		{"chmod to set-uid", closed, unix.SYS_FCHMODAT, []uint64{0, 0, 0o4755}, eperm},
		{"fchmod to set-gid", closed, unix.SYS_FCHMOD, []uint64{0, 0o2755}, eperm},
		{"open to read, garbage as mode", closed, unix.SYS_OPENAT, []uint64{0, 0, unix.O_RDONLY, 0o6000}, allow},
		{"open to create", closed, unix.SYS_OPENAT, []uint64{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o600}, allow},
		{"open to create set-uid", closed, unix.SYS_OPENAT, []uint64{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o4600}, eperm},
		{"a nameless file, set-uid", closed, unix.SYS_OPENAT, []uint64{0, 0, unix.O_TMPFILE | unix.O_WRONLY, 0o4600}, eperm},
		{"x32", closed, unix.SYS_READ | 0x40000000, nil, kill},
		{"chmod reduced", reduced, unix.SYS_FCHMODAT, []uint64{0, 0, 0o755}, eperm},
		{"times reduced", reduced, unix.SYS_UTIMENSAT, nil, eperm},
		{"open reduced", reduced, unix.SYS_OPENAT, []uint64{0, 0, unix.O_RDONLY}, allow},
	} {
		if got := judge(t, test.filter, auditArch, test.number, test.args...); got != test.want {
			t.Errorf("%s: %#x, want %#x", test.name, got, test.want)
		}
	}
	for _, arch := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0} {
		if got := judge(t, closed, arch, unix.SYS_READ); got != kill {
			t.Errorf("architecture %#x: %#x", arch, got)
		}
	}
}

// TestFilterRules: each unconditional rule answers as it says, and no call has two of them.
func TestFilterRules(t *testing.T) {
	filter := filterFor(t, true, true)
	var seen []uintptr
	for _, r := range rules(true, true) {
		for _, call := range r.calls {
			if r.when != nil {
				continue
			}
			if got := judge(t, filter, auditArch, call); got != r.answer {
				t.Errorf("call %d: %#x, want %#x", call, got, r.answer)
			}
			if slices.Contains(seen, call) {
				t.Errorf("call %d stands twice", call)
			}
			seen = append(seen, call)
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d calls are refused", len(seen))
	}
}

// TestNewerCalls: each system call since Linux 5.1 was reviewed. A call that does the same as a refused one is
// refused; the rest is listed here.
func TestNewerCalls(t *testing.T) {
	const first, last = 424, unix.SYS_RSEQ_SLICE_YIELD
	harmless := []uintptr{
		unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_PIDFD_OPEN, unix.SYS_CLOSE_RANGE, unix.SYS_FACCESSAT2, unix.SYS_EPOLL_PWAIT2, unix.SYS_PROCESS_MRELEASE,
		unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF, // restrict further
		unix.SYS_FUTEX_WAITV, unix.SYS_SET_MEMPOLICY_HOME_NODE, unix.SYS_CACHESTAT, unix.SYS_MAP_SHADOW_STACK, unix.SYS_FUTEX_WAKE, unix.SYS_FUTEX_WAIT, unix.SYS_FUTEX_REQUEUE,
		unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT, // of its own namespace, as mountinfo
		unix.SYS_LSM_GET_SELF_ATTR, unix.SYS_LSM_SET_SELF_ATTR, unix.SYS_LSM_LIST_MODULES, unix.SYS_MSEAL,
		unix.SYS_GETXATTRAT, unix.SYS_LISTXATTRAT, unix.SYS_FILE_GETATTR, unix.SYS_RSEQ_SLICE_YIELD,
	}
	filter := filterFor(t, true, true)
	for call := uintptr(first); call <= last; call++ {
		refused := judge(t, filter, auditArch, call) != unix.SECCOMP_RET_ALLOW
		if refused == slices.Contains(harmless, call) {
			t.Errorf("call %d: refused %v", call, refused)
		}
	}
}
