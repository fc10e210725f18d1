package escapes

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openable tries to open a file with the given flags of open(2).
func openable(path string, flags int) func() error {
	return func() error {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
}

// pairSends makes a pair of sockets and sends from one of them to a socket file of the host.
func pairSends(kind int, send func(fd int, data []byte, flags int, to unix.Sockaddr) error) func() error {
	return func() error {
		fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fds[0])
		defer unix.Close(fds[1])
		return send(fds[0], []byte("x"), 0, &unix.SockaddrUnix{Name: env("DATAGRAMS")})
	}
}

func moreFileProbes() []probe {
	return []probe{
		{"the system's accounts", openable("/etc/shadow", unix.O_RDONLY), forRoot},
		{"the system's settings folder", func() error {
			entries, err := os.ReadDir("/etc")
			if err == nil && !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "shadow") }) {
				return errHeld
			}
			return err
		}, forAll},
		{"the system's variable data", func() error { _, err := os.ReadDir("/var/log"); return err }, forAll},
		{"the devices of the machine", func() error { _, err := os.ReadDir("/sys/class"); return err }, forNobody},
		{"a pipe in the file system", openable(env("FIFO"), unix.O_WRONLY), forAll},
		{"a new terminal", openable("/dev/ptmx", unix.O_RDWR), forNobody},
		{"the user's terminal", openable("/dev/tty", unix.O_RDWR), forNobody},
		{"the kernel's log", openable("/dev/kmsg", unix.O_RDONLY), forNobody},
		{"the machine's memory", openable("/proc/kcore", unix.O_RDONLY), forNobody},
		{"another root through a descriptor", func() error { // above the root of a process is only the root
			fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			at, err := unix.Openat(fd, "../../.."+env("SECRET"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err == nil {
				unix.Close(at)
			}
			return err
		}, forAll},
		{"exchange a protected folder", func() error {
			other := filepath.Join(env("WORKSPACE"), "other"+strconv.Itoa(os.Getpid()))
			if err := os.Mkdir(other, 0o700); err != nil {
				return err
			}
			defer os.Remove(other)
			return unix.Renameat2(unix.AT_FDCWD, filepath.Join(env("WORKSPACE"), ".git"), unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
		}, forNobody},
		{"make a file immutable", func() error {
			f, err := os.Open(filepath.Join(env("READONLY"), "tool"))
			if err != nil {
				return err
			}
			defer f.Close()
			return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0x10)
		}, forNobody},
		{"an attribute on a read-only file", func() error {
			return unix.Setxattr(filepath.Join(env("READONLY"), "tool"), "user.probe", []byte("x"), 0)
		}, forNobody},
		{"mount by the newer calls", func() error {
			fd, err := unix.OpenTree(unix.AT_FDCWD, "/usr", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}, forRoot},
		{"a file system of its own", func() error {
			fd, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}, forRoot},
		{"reset what maps its users", func() error { return os.WriteFile("/proc/self/uid_map", []byte("0 0 1"), 0) }, forNobody},
	}
}

func moreKernelProbes() []probe {
	return []probe{
		{"profit from a set-uid program", func() error {
			if v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || v == 1 {
				return errHeld
			}
			return nil
		}, forAll},
		{"dump its memory into a file", func() error {
			return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20})
		}, forRoot},
		{"raise its own limits", func() error {
			return unix.Setrlimit(unix.RLIMIT_MSGQUEUE, &unix.Rlimit{Cur: 1 << 30, Max: 1 << 30})
		}, forNobody},
		{"take capabilities back", func() error {
			header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			data := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}}
			return unix.Capset(&header, &data[0])
		}, forRoot},
		{"become another user", func() error {
			_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 12345, 12345, 12345)
			return syscallError(errno)
		}, forRoot},
		{"lock memory without bound", func() error {
			data, err := unix.Mmap(-1, 0, 64<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
			if err != nil {
				return err
			}
			return unix.Mlock(data)
		}, forRoot},
		{"a priority over all others", func() error {
			param := struct{ priority int32 }{1}
			return call(unix.SYS_SCHED_SETSCHEDULER, 0, 1, uintptr(unsafe.Pointer(&param))) // SCHED_FIFO
		}, forNobody},
		{"read the kernel's messages", func() error { _, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, make([]byte, 1024)); return err }, forRoot},
		{"run from memory", func() error {
			fd, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Faccessat(fd, "", unix.X_OK, unix.AT_EMPTY_PATH)
		}, forAll},
		{"the host's queues of messages", func() error {
			name := []byte("pollux-probe\x00")
			fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&name[0])), unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0, 0)
			if errno == 0 {
				unix.Close(int(fd))
				_, _, _ = unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(&name[0])), 0, 0)
			}
			return syscallError(errno)
		}, forNobody},
		{"the host's name", func() error {
			if name, err := os.Hostname(); err != nil || name == "sandbox" {
				return errors.Join(err, errHeld)
			}
			return nil
		}, forAll},
		{"compare kernel objects with another process", func() error {
			return call(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(os.Getpid()), 0, 0, 1)
		}, forNobody},
		{"watch all files", func() error {
			fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF, unix.O_RDONLY)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}, forNobody},
		{"load a module", func() error { return call(unix.SYS_FINIT_MODULE, ^uintptr(0), 0, 0) }, forNobody},
		{"an identity of the kernel's for a file", func() error {
			_, _, err := unix.NameToHandleAt(unix.AT_FDCWD, "/usr", 0)
			return err
		}, forNobody},
	}
}

func moreNetworkProbes() []probe {
	return []probe{
		{"a datagram to a socket file", socketOf(unix.AF_UNIX, unix.SOCK_DGRAM, 0), forAll},
		{"a datagram from one of a pair to a socket file", pairSends(unix.SOCK_DGRAM, unix.Sendto), forAll},
		{"a datagram from one of a raw pair", pairSends(unix.SOCK_RAW, unix.Sendto), forAll},
		{"one of a pair, joined to a socket file", pairSends(unix.SOCK_DGRAM, func(fd int, data []byte, _ int, to unix.Sockaddr) error {
			if err := unix.Connect(fd, to); err != nil {
				return err
			}
			_, err := unix.Write(fd, data)
			return err
		}), forAll},
		{"a descriptor to a socket file", pairSends(unix.SOCK_DGRAM, func(fd int, data []byte, _ int, to unix.Sockaddr) error {
			return unix.Sendmsg(fd, data, unix.UnixRights(0), to, 0)
		}), forAll},
		{"one of a pair of streams to a socket file", pairSends(unix.SOCK_STREAM, unix.Sendto), forNobody},
		{"one of a pair of packets to a socket file", func() error {
			err := pairSends(unix.SOCK_SEQPACKET, func(fd int, data []byte, _ int, to unix.Sockaddr) error { return unix.Connect(fd, to) })()
			return err
		}, forNobody},
		{"one of a pair of streams that listens", pairSends(unix.SOCK_STREAM, func(fd int, _ []byte, _ int, _ unix.Sockaddr) error {
			if err := unix.Bind(fd, &unix.SockaddrUnix{Name: filepath.Join(os.TempDir(), "bound"+strconv.Itoa(os.Getpid()))}); err != nil {
				return err
			}
			return unix.Listen(fd, 1)
		}), forNobody},
		{"shared memory outside its limits", func() error {
			id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 64<<20, 0o600|unix.IPC_CREAT)
			if err == nil {
				_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
			}
			return err
		}, forAll},
		{"raw packets of version 6", socketOf(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6), forRoot},
		{"pings", socketOf(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP), forNobody},
		{"bluetooth", socketOf(unix.AF_BLUETOOTH, unix.SOCK_RAW, 0), forNobody},
		{"packets past the kernel", socketOf(unix.AF_XDP, unix.SOCK_RAW, 0), forNobody},
		{"the kernel's keys for networks", socketOf(unix.AF_KEY, unix.SOCK_RAW, 2), forNobody},
		{"kernel messages", socketOf(unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_KOBJECT_UEVENT), forAll},
		{"data with the opening of a connection", func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2})
			if err := unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Addr: [4]byte{169, 254, 169, 254}, Port: 80}); err != nil {
				return err
			}
			n, _, err := unix.Recvfrom(fd, make([]byte, 1), 0)
			if err == nil && n == 0 {
				return errHeld
			}
			return err
		}, forNobody},
	}
}
