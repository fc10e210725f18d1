package inside

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"github.com/pollux-companion/pollux/internal/sandbox/kernel"
)

// TCPBuffer is the largest buffer of a TCP socket inside, in bytes, for each direction. Small is enough: the other
// end is always on this machine.
const TCPBuffer = 256 << 10

// system sets what belongs to the namespaces: host name, number of processes, and a ban on further namespaces. Then
// it seals /proc, so no later step can write to it.
func (s *stager) system() error {
	if err := syscall.Sethostname([]byte("sandbox")); err != nil {
		return on("host name", err)
	}
	settings := map[string]string{
		"user/max_user_namespaces": "0", "user/max_mnt_namespaces": "0", "user/max_net_namespaces": "0", "user/max_pid_namespaces": "0",
	}
	if s.Net != nil {
		settings["net/ipv4/tcp_rmem"] = "4096 65536 " + strconv.Itoa(TCPBuffer) // minimum, default, maximum
		settings["net/ipv4/tcp_wmem"] = settings["net/ipv4/tcp_rmem"]
	}
	if s.PIDMax { // older kernels have one pid_max for the whole machine
		settings["kernel/pid_max"] = strconv.Itoa(s.Limits.Processes)
	}
	for name, value := range settings {
		if err := os.WriteFile("/proc/sys/"+name, []byte(value), 0); err != nil {
			return err
		}
	}
	// When the machine runs out of memory, the kernel kills this sandbox first.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return err
	}
	return s.seal()
}

// limit sets the resource limits that the kernel counts per process.
func (s *stager) limit() error {
	seconds := uint64((s.Limits.CPU + time.Second - 1) / time.Second)
	// Package syscall raised RLIMIT_NOFILE at start and would restore the old limit in a child. Setting it here makes
	// it forget that.
	for _, l := range []struct {
		what  int
		value uint64
	}{
		{syscall.RLIMIT_CPU, seconds},
		{syscall.RLIMIT_FSIZE, uint64(s.Limits.FileSize)},
		{syscall.RLIMIT_NOFILE, uint64(s.Limits.Files)},
		{syscall.RLIMIT_CORE, 0},
		{kernel.RlimitMemlock, 64 << 10},
		{kernel.RlimitMsgqueue, 0},
		// RLIMIT_DATA counts reserved writable addresses, so only the reduced sandbox uses it, where nobody measures
		// memory in use: V8, thread stacks and compiler sanitizers reserve far more than they use.
		{syscall.RLIMIT_DATA, uint64(max(2<<30, 2*s.Limits.Memory))},
		{kernel.RlimitNproc, uint64(s.Limits.Processes)},
	} {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(l.what, &now); err != nil {
			return err
		}
		if s.Reduced && l.what == kernel.RlimitNproc || !s.Reduced && l.what == syscall.RLIMIT_DATA {
			continue // RLIMIT_NPROC in the reduced sandbox would count all processes of the user
		}
		value, most := min(l.value, now.Max), min(l.value, now.Max)
		if l.what == syscall.RLIMIT_CPU {
			most = min(value+1, now.Max) // at the soft limit SIGXCPU names the reason; one second later SIGKILL ends the process
		}
		if err := syscall.Setrlimit(l.what, &syscall.Rlimit{Cur: value, Max: most}); err != nil {
			return on("limit "+strconv.Itoa(l.what), err)
		}
	}
	return nil
}

// dropPrivileges gives up every capability for good on the thread that will start the command. It does so on the
// runtime's other threads too, if the binary has no cgo. With cgo those threads keep the namespace's capabilities.
// The filter still binds them, and they never run the command's code.
func (s *stager) dropPrivileges() error {
	for c := 0; ; c++ {
		if err := prctl(syscall.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); errors.Is(err, syscall.EINVAL) && c > 30 {
			break // past the kernel's last capability
		} else if err != nil {
			return on("capability "+strconv.Itoa(c), err)
		}
	}
	if err := prctl(kernel.PRCapAmbient, kernel.PRCapAmbientClearAll, 0, 0, 0); err != nil {
		return on("ambient capabilities", err)
	}
	header := kernel.CapHeader{Version: kernel.CapabilityVersion3}
	var none [2]kernel.CapData
	_, _, errno := syscall.AllThreadsSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	if errno == syscall.ENOTSUP { // the binary uses cgo
		if err := kernel.Capset(&header, &none); err != nil {
			return on("capabilities", err)
		}
	} else if errno != 0 {
		return on("capabilities", errno)
	}
	// No process may trace this one or read its memory. A command run as root could otherwise.
	return prctl(syscall.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// The Landlock rights for each kind of mount.
const (
	landRead  = kernel.LandExecute | kernel.LandReadFile | kernel.LandReadDir
	landWrite = landRead | kernel.LandWriteFile | kernel.LandRemoveDir | kernel.LandRemoveFile | kernel.LandMakeDir | kernel.LandMakeReg |
		kernel.LandMakeSym | kernel.LandMakeFIFO | kernel.LandMakeSock | kernel.LandRefer | kernel.LandTruncate
	landFile   = kernel.LandExecute | kernel.LandReadFile | kernel.LandWriteFile | kernel.LandTruncate | kernel.LandIoctlDev
	landDevice = kernel.LandReadFile | kernel.LandWriteFile | kernel.LandIoctlDev
)

// landlockHandled returns what a version of Landlock can refuse.
func landlockHandled(version int, network bool) kernel.Ruleset {
	set := kernel.Ruleset{Files: 1<<13 - 1}
	for since, bit := range map[int]uint64{2: kernel.LandRefer, 3: kernel.LandTruncate, 5: kernel.LandIoctlDev, 9: kernel.LandUnix} {
		if version >= since {
			set.Files |= bit
		}
	}
	if version >= 4 && !network {
		set.Network = kernel.LandBindTCP | kernel.LandConnectTCP
	}
	if version >= 6 {
		set.Scoped = kernel.LandAbstract | kernel.LandSignal
	}
	return set
}

// restrict adds Landlock as a second lock on files: the same files and rights as the mounts. Without namespaces
// Landlock is the only lock.
func (s *stager) restrict() error {
	if err := prctl(kernel.PRSetNoNewPrivs, 1, 0, 0, 0); err != nil {
		return on("no new privileges", err)
	}
	s.landlock = kernel.LandlockVersion()
	if s.landlock == 0 && !s.Reduced {
		return nil
	}
	if s.Reduced && s.landlock < 3 {
		return errors.New("the kernel's Landlock is missing or too old")
	}
	handled := landlockHandled(s.landlock, s.Net != nil)
	set, err := kernel.CreateRuleset(&handled, s.landlock)
	if err != nil {
		return err
	}
	defer syscall.Close(set)
	for target, access := range s.rights() {
		if err := allow(set, target, access&handled.Files); err != nil {
			return on(strconv.Quote(target), err)
		}
	}
	return kernel.RestrictSelf(set)
}

// rights maps each path to the Landlock rights at and below it.
func (s *stager) rights() map[string]uint64 {
	all := map[string]uint64{}
	if !s.Reduced {
		all["/"] = kernel.LandReadDir
		all["/proc"] = landRead | kernel.LandWriteFile // read-only itself; its fd links lead elsewhere
	}
	if s.Root.Host {
		all["/"] = landRead
		if s.Root.Write {
			all["/"] = landWrite
		}
	}
	for _, m := range s.Mounts {
		switch {
		case m.Show == ShowLink || m.Show == ShowHeld || m.Show == ShowDir:
		case m.Show == ShowDevice:
			all[m.Target] = landDevice
		case m.Write || m.Show == ShowScratch:
			all[m.Target] = landWrite
		default:
			all[m.Target] |= landRead
		}
	}
	return all
}

// allow adds one rule. A file accepts only the rights that apply to files.
func allow(set int, target string, access uint64) error {
	fd, err := syscall.Open(target, kernel.OPath|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var stat syscall.Stat_t
	if err := syscall.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		access &= landFile
	}
	return kernel.AllowBeneath(set, fd, access)
}

// seccomp installs the filter on every thread. Each process started later inherits the filter and no_new_privs.
func (s *stager) seccomp() error {
	if len(s.Filter) == 0 {
		return errors.New("there is none")
	}
	thread, err := kernel.Seccomp(s.Filter)
	if err == nil && thread != 0 {
		err = errors.New("thread " + strconv.Itoa(thread) + " could not be given the filter")
	}
	return err
}

// check tries what must now be impossible. Every layer above reported success; check catches a kernel that reports
// success and enforces nothing.
func (s *stager) check() error {
	family := syscall.AF_INET
	if s.Net != nil {
		family = syscall.AF_NETLINK
	}
	if fd, err := syscall.Socket(family, syscall.SOCK_DGRAM, 0); err == nil {
		syscall.Close(fd)
		return errors.New("a forbidden socket could be made")
	}
	if syscall.Unshare(syscall.CLONE_NEWUSER) == nil {
		return errors.New("a user namespace could be made")
	}
	if v, err := kernel.Prctl(kernel.PRGetNoNewPrivs); err != nil || v != 1 {
		return errors.New("privileges could be gained")
	}
	if v, err := kernel.Prctl(syscall.PR_GET_SECCOMP); err != nil || v != 2 {
		return errors.New("there is no filter")
	}
	for _, name := range s.Canary {
		if fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err == nil {
			syscall.Close(fd)
			return errors.New(strconv.Quote(name) + " could be opened")
		}
	}
	return s.checkNamespaces()
}

// checkNamespaces checks what only a sandbox with namespaces has.
func (s *stager) checkNamespaces() error {
	if s.Reduced {
		return nil
	}
	if os.Getpid() != 1 {
		return errors.New("this is no process namespace of its own")
	}
	header := kernel.CapHeader{Version: kernel.CapabilityVersion3}
	var have [2]kernel.CapData
	if err := kernel.Capget(&header, &have); err != nil {
		return err
	}
	for _, c := range have {
		if c.Effective|c.Permitted|c.Inheritable != 0 {
			return errors.New("capabilities are left")
		}
	}
	if !s.Root.Write {
		if name := "/.pollux-check"; syscall.Mkdir(name, 0o700) == nil {
			return errors.New("the root folder could be written to")
		}
	}
	if fd, err := syscall.Open("/proc/sys/kernel/hostname", syscall.O_WRONLY|syscall.O_CLOEXEC, 0); err == nil {
		syscall.Close(fd)
		return errors.New("the system's settings could be changed")
	}
	return nil
}
