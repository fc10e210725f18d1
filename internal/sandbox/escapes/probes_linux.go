package escapes

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A probe is one call, or a few, that would get out.
type probe struct {
	name    string
	try     func() error // returns nil if it got out
	outside Proof
}

var errHeld = errors.New("held")

func syscallError(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

func call(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	return syscallError(errno)
}

func hostPID() int { n, _ := strconv.Atoi(env("PID")); return n }

func readable(path string) error {
	data, err := os.ReadFile(path)
	if err == nil && len(data) == 0 {
		return errors.New("empty")
	}
	return err
}

// socketOf tries to make a socket.
func socketOf(family, kind, protocol int) func() error {
	return func() error {
		fd, err := unix.Socket(family, kind, protocol)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
}

func dial(network string) func() error {
	return func() error {
		conn, err := net.DialTimeout(network, env(strings.ToUpper(network)), 10*time.Second)
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Write([]byte("hello")); err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 5))
		return err
	}
}

// All lists the escapes that this system knows, grouped by kind.
func All() []Escape {
	return slices.Concat(
		of(files, false, fileProbes()), of(files, true, moreFileProbes()),
		of(processes, false, processProbes()),
		of(Kernel, false, kernelProbes()), of(Kernel, true, moreKernelProbes()),
		of(Network, false, networkProbes()), of(Network, true, moreNetworkProbes()),
		plays(),
	)
}

// of makes escapes of probes. most: try them only under the policy that allows most; what holds there holds under
// less.
func of(kind Kind, most bool, all []probe) (out []Escape) {
	for _, p := range all {
		out = append(out, Escape{Name: p.name, Kind: kind, Outside: p.outside, most: most, try: p.try})
	}
	return out
}

func fileProbes() []probe {
	ws := env("WORKSPACE")
	return []probe{
		{"read a file of the user's", func() error { return readable(env("SECRET")) }, forAll},
		{"list the home folder", func() error {
			entries, err := os.ReadDir(env("HOME"))
			for _, e := range entries {
				if e.Name() == ".ssh" { // the path to the workspace may be visible
					return nil
				}
			}
			return errors.Join(err, errHeld)
		}, forAll},
		{"read through a link in the workspace", func() error { return readable(filepath.Join(ws, "link")) }, forAll},
		{"make a hard link to a file of the user's", func() error { return os.Link(env("SECRET"), filepath.Join(ws, "hard")) }, forAll},
		{"climb with dots", func() error { return readable(filepath.Join("/proc/self/root/../../..", env("SECRET"))) }, forAll},
		{"read through the root of process 1", func() error { return readable(filepath.Join("/proc/1/root", env("SECRET"))) }, forNobody},
		{"read through another process's folder", func() error {
			return readable(filepath.Join("/proc", env("PID"), "root", env("SECRET")))
		}, forAll},
		{"write to the workspace", func() error { return os.WriteFile(filepath.Join(ws, "made"), nil, 0o600) }, forAll},
		{"write to the home folder", func() error {
			path := filepath.Join(env("HOME"), "made-by-probe")
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				return err
			}
			return errors.New("only inside: " + path) // the test looks for this error
		}, forNobody},
		{"write to the root folder", func() error { return os.Mkdir("/probe", 0o700) }, forNobody},
		{"write to a read-only folder", func() error { return os.WriteFile(filepath.Join(env("READONLY"), "tool"), []byte("x"), 0o700) }, forAll},
		{"chmod in a read-only folder", func() error { return os.Chmod(filepath.Join(env("READONLY"), "tool"), 0o700) }, forAll},
		{"make a link in a read-only folder", func() error { return os.Symlink("x", filepath.Join(env("READONLY"), "link")) }, forAll},
		{"change the times of a file of the workspace", func() error {
			return os.Chtimes(filepath.Join(ws, "file"), time.Now(), time.Now())
		}, forAll},
		{"make a file that takes on its owner's rights", func() error {
			name := filepath.Join(os.TempDir(), "setuid"+strconv.Itoa(os.Getpid()))
			defer os.Remove(name)
			if err := os.WriteFile(name, nil, 0o700); err != nil {
				return err
			}
			return unix.Chmod(name, 0o4755)
		}, forAll},
		{"create such a file in one step", func() error {
			name := filepath.Join(os.TempDir(), "setuid2"+strconv.Itoa(os.Getpid()))
			defer os.Remove(name)
			fd, err := unix.Open(name, unix.O_CREAT|unix.O_WRONLY|unix.O_EXCL, 0o6755)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}, forAll},
		{"mount", func() error { return unix.Mount("none", os.TempDir(), "tmpfs", 0, "") }, forNobody},
		{"make the workspace writable", func() error { return unix.Mount("", ws, "", unix.MS_REMOUNT|unix.MS_BIND, "") }, forNobody},
		{"uncover a mask", func() error { return unix.Unmount("/proc/cmdline", unix.MNT_DETACH) }, forNobody},
		{"read the kernel's command line", func() error { return readable("/proc/cmdline") }, forAll},
		{"chroot", func() error { return unix.Chroot("/") }, forRoot},
		{"open by handle", func() error { return call(unix.SYS_OPEN_BY_HANDLE_AT, 3, 0, 0) }, forNobody},
		{"make a device node", func() error {
			name := filepath.Join(os.TempDir(), "kmem"+strconv.Itoa(os.Getpid()))
			defer os.Remove(name)
			return unix.Mknod(name, unix.S_IFCHR|0o600, 1<<8|1)
		}, forRoot},
		{"write to the system's settings", func() error {
			f, err := os.OpenFile("/proc/sys/kernel/core_pattern", os.O_WRONLY, 0)
			if err == nil {
				f.Close()
			}
			return err
		}, forRoot},
		{"spare itself when memory is short", func() error { return os.WriteFile("/proc/self/oom_score_adj", []byte("1"), 0) }, forAll},
		{"move a protected folder away", func() error { return os.Rename(filepath.Join(ws, ".git"), filepath.Join(ws, "git")) }, forNobody},
		{"write to a protected folder", func() error { return os.WriteFile(filepath.Join(ws, ".git", "hook"), nil, 0o700) }, forAll},
	}
}

// trace traces a process of its own. It does not ask to be traced itself: its parent would have to wait for the
// thread that asked, and both would hang.
func trace() error {
	runtime.LockOSThread() // only the thread that starts the process is its tracer
	cmd := exec.Command("/proc/self/exe", flag, "nothing")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = cmd.Process.Kill() // it is stopped at its first instruction
	_ = cmd.Wait()         // it was killed, so Wait returns an error
	return nil
}

func processProbes() []probe {
	return []probe{
		{"make a user namespace", func() error { return unixUnshare(unix.CLONE_NEWUSER) }, forAll},
		{"make a mount namespace", func() error { return unixUnshare(unix.CLONE_NEWNS) }, forRoot},
		{"clone into namespaces", func() error {
			cmd := exec.Command("/proc/self/exe", flag, "nothing")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
			err := cmd.Run()
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
				return nil
			}
			return err
		}, forAll},
		{"enter a namespace of the host's", func() error {
			f, err := os.Open("/proc/" + env("PID") + "/ns/uts")
			if err != nil {
				return err
			}
			defer f.Close()
			return unix.Setns(int(f.Fd()), unix.CLONE_NEWUTS)
		}, forRoot},
		{"see a process of the host's", func() error { return readable("/proc/" + env("PID") + "/cmdline") }, forAll},
		{"signal a process of the host's", func() error { return unix.Kill(hostPID(), 0) }, forAll},
		{"signal the first process", func() error {
			if err := unix.Kill(1, unix.SIGKILL); err != nil {
				return err
			}
			time.Sleep(50 * time.Millisecond) // if it worked, this process ends here, and the run's result shows it
			return errHeld
		}, forNobody},
		{"read the first process's environment", func() error { return readable("/proc/1/environ") }, forNobody},
		{"read the first process's memory", func() error {
			f, err := os.OpenFile("/proc/1/mem", os.O_RDWR, 0)
			if err == nil {
				f.Close()
			}
			return err
		}, forNobody},
		{"open the first process's files", func() error {
			for fd := range 64 {
				if f, err := os.Open(fmt.Sprintf("/proc/1/fd/%d", fd)); err == nil {
					f.Close()
					return nil
				}
			}
			return errHeld
		}, forNobody},
		{"trace", trace, forAll},
		{"read another process's memory", func() error {
			local, word := make([]byte, 8), uint64(1)
			_, err := unix.ProcessVMReadv(os.Getpid(), []unix.Iovec{{Base: &local[0], Len: 8}}, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&word)), Len: 8}}, 0)
			return err
		}, forAll},
		{"take a descriptor of another process", func() error {
			fd, err := unix.PidfdOpen(os.Getpid(), 0)
			if err != nil {
				return err
			}
			return call(unix.SYS_PIDFD_GETFD, uintptr(fd), 1, 0)
		}, forAll},
	}
}

// kernelProbes are calls and files that no namespace covers.
func kernelProbes() []probe {
	return []probe{
		{"io_uring", func() error {
			params := make([]byte, 120)
			return call(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params[0])))
		}, forNobody},
		{"bpf", func() error { return call(unix.SYS_BPF, 0, 0, 0) }, forNobody},
		{"perf", func() error { return call(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0) }, forNobody},
		{"userfaultfd", func() error { return call(unix.SYS_USERFAULTFD, 1) }, forNobody},
		{"the kernel's keys", func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true); return err }, forNobody},
		{"memory files", func() error {
			fd, err := unix.MemfdCreate("x", 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}, forAll},
		{"another personality", func() error { return call(unix.SYS_PERSONALITY, 0x0040000) }, forAll},
		{"type into a terminal", func() error { // a terminal would accept it; other files say that they are no terminal
			if err := unix.IoctlSetPointerInt(0, unix.TIOCSTI, 'x'); !errors.Is(err, unix.ENOTTY) {
				return err
			}
			return nil
		}, forAll},
		{"gain privileges again", func() error { return unix.Prctl(unix.PR_SET_SECCOMP, 0, 0, 0, 0) }, forNobody},
		{"inherit a descriptor", func() error {
			for fd := 3; fd < 256; fd++ {
				data := make([]byte, 6)
				if n, err := unix.Pread(fd, data, 0); err == nil && strings.HasPrefix(string(data[:n]), "secret") {
					return nil
				}
			}
			return errHeld
		}, forAll},
		{"see the caller's environment", func() error {
			if os.Getenv(tokenVariable) == "" {
				return errHeld
			}
			return nil
		}, forAll},
		{"attach memory of the host's", func() error {
			id, _ := strconv.Atoi(env("SHM"))
			_, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
			return err
		}, forAll},
		{"set the host's name", func() error { return unix.Sethostname([]byte("probe")) }, forNobody},
		{"set the clock", func() error {
			now := unix.NsecToTimeval(time.Now().UnixNano())
			return unix.Settimeofday(&now)
		}, forNobody},
		{"the numbers of another architecture", foreignCall, forNobody},
	}
}

// unixUnshare calls unshare in a process of its own.
func unixUnshare(flags int) error {
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"x", flag, "nothing"}, &syscall.ProcAttr{Env: os.Environ(), Sys: &syscall.SysProcAttr{Unshareflags: uintptr(flags)}})
	if err == nil {
		_, _ = syscall.Wait4(pid, nil, 0, nil)
	}
	return err
}

func networkProbes() []probe {
	return []probe{
		{"a service on the host's loopback", dial("tcp"), forAll},
		{"the same by UDP", dial("udp"), forAll},
		{"the same by IPv6", dial("tcp6"), forAll},
		{"an abstract socket of the host's", dial("unix"), forAll},
		{"a socket file of the host's", func() error {
			conn, err := net.Dial("unix", env("SOCKET"))
			if err == nil {
				conn.Close()
			}
			return err
		}, forAll},
		{"an address of the internet", socketOf(unix.AF_INET, unix.SOCK_STREAM, 0), forAll},
		{"the same with bits that the kernel drops", func() error {
			fd, _, errno := unix.Syscall(unix.SYS_SOCKET, unix.AF_UNIX|1<<32, unix.SOCK_STREAM, 0)
			if errno == 0 {
				unix.Close(int(fd))
			}
			return syscallError(errno)
		}, forAll},
		{"raw packets", socketOf(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), forRoot},
		{"link layer packets", socketOf(unix.AF_PACKET, unix.SOCK_RAW, 0), forRoot},
		{"netlink", socketOf(unix.AF_NETLINK, unix.SOCK_RAW, 0), forAll},
		{"the hypervisor", socketOf(unix.AF_VSOCK, unix.SOCK_STREAM, 0), forNobody},
		{"the kernel's ciphers", socketOf(unix.AF_ALG, unix.SOCK_SEQPACKET, 0), forNobody},
		{"multipath TCP", socketOf(unix.AF_INET, unix.SOCK_STREAM, 262), forNobody},
		{"a socket pair of another family", func() error {
			_, err := unix.Socketpair(unix.AF_TIPC, unix.SOCK_STREAM, 0)
			return err
		}, forNobody},
		{"the metadata service", func() error {
			conn, err := net.DialTimeout("tcp", "169.254.169.254:80", 300*time.Millisecond)
			if err != nil {
				return err
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
			if _, err := conn.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
				return err
			}
			_, err = conn.Read(make([]byte, 1)) // a service that accepts and says nothing is not the prey's
			return err
		}, forNobody},
		{"a question to the host's resolver", func() error {
			names, err := net.LookupHost("localhost.invalid.example.com")
			if err == nil {
				return nil
			}
			return fmt.Errorf("%v %w", names, err)
		}, forNobody},
	}
}
