package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tcpBuffer is the most that a TCP socket inside holds in either direction, in bytes. The other end is never further than this machine.
const tcpBuffer = 256 * kib

// system sets what belongs to the namespaces: names, how many processes, no
// further namespaces. Then nothing in /proc can be written any more.
func (s *stager) system() error {
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	settings := map[string]string{
		"user/max_user_namespaces": "0", "user/max_mnt_namespaces": "0", "user/max_net_namespaces": "0", "user/max_pid_namespaces": "0",
	}
	if s.Net != nil {
		settings["net/ipv4/tcp_rmem"] = fmt.Sprintf("4096 %d %d", 64*kib, tcpBuffer)
		settings["net/ipv4/tcp_wmem"] = fmt.Sprintf("4096 %d %d", 64*kib, tcpBuffer)
	}
	if kernelAtLeast(6, 14) { // before, the same file was the whole machine's
		settings["kernel/pid_max"] = strconv.Itoa(s.Limits.Processes)
	}
	for name, value := range settings {
		if err := os.WriteFile("/proc/sys/"+name, []byte(value), 0); err != nil {
			return err
		}
	}
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return err
	}
	return s.seal()
}

// kernelAtLeast compares the running kernel's version.
func kernelAtLeast(major, minor int) bool {
	var uts unix.Utsname
	if unix.Uname(&uts) != nil {
		return false
	}
	var a, b int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(uts.Release[:]), "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}

// limit sets what the kernel counts for each process.
func (s *stager) limit() error {
	seconds := uint64((s.Limits.CPU + time.Second - 1) / time.Second)
	for _, l := range []struct {
		what  int
		value uint64
	}{
		{unix.RLIMIT_CPU, seconds},
		{unix.RLIMIT_FSIZE, uint64(s.Limits.FileSize)},
		{unix.RLIMIT_NOFILE, uint64(s.Limits.Files)},
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_MEMLOCK, 64 * kib},
		{unix.RLIMIT_MSGQUEUE, 0},
		// Of what is written to, not of addresses: V8 reserves far more than it uses.
		{unix.RLIMIT_DATA, uint64(max(2*gib, 2*s.Limits.Memory))},
		{unix.RLIMIT_NPROC, uint64(s.Limits.Processes)},
	} {
		var now unix.Rlimit
		if err := unix.Prlimit(0, l.what, nil, &now); err != nil {
			return err
		}
		if s.Reduced && l.what == unix.RLIMIT_NPROC {
			continue // it would count all of the user's processes
		}
		value, most := min(l.value, now.Max), min(l.value, now.Max)
		if l.what == unix.RLIMIT_CPU {
			most = min(value+1, now.Max) // a signal that says why comes first, and a second later the one that cannot be ignored
		}
		if err := unix.Prlimit(0, l.what, &unix.Rlimit{Cur: value, Max: most}, nil); err != nil {
			return fmt.Errorf("limit %d: %w", l.what, err)
		}
	}
	return nil
}

// dropPrivileges gives up every capability for good, on the thread that will
// start the command; and, where the binary lets us reach them, on the
// runtime's other threads, which otherwise keep those of the namespace, with
// the filter in their way and no code of the command's in their process.
func (s *stager) dropPrivileges() error {
	for c := 0; ; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err == unix.EINVAL && c > 30 {
			break // the kernel's last
		} else if err != nil {
			return fmt.Errorf("capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	if errno == unix.ENOTSUP { // with cgo
		if err := unix.Capset(&header, &none[0]); err != nil {
			return fmt.Errorf("capabilities: %w", err)
		}
	} else if errno != 0 {
		return fmt.Errorf("capabilities: %w", errno)
	}
	// Nobody looks into this process; a command run as root could otherwise.
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// Landlock's rights over files, by what a mount allows.
const (
	landRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landWrite = landRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	landFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	landDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// landlockVersion is the version of the kernel's Landlock, 0 when it has none
// or does not use it.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// landlockHandled is what each version of Landlock can refuse.
func landlockHandled(version int, network bool) unix.LandlockRulesetAttr {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: 1<<13 - 1}
	for since, bit := range map[int]uint64{2: unix.LANDLOCK_ACCESS_FS_REFER, 3: unix.LANDLOCK_ACCESS_FS_TRUNCATE, 5: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, 9: unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX} {
		if version >= since {
			attr.Handled_access_fs |= bit
		}
	}
	if version >= 4 && !network {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return attr
}

// restrict is the second lock on files: what the mounts show, and what may be
// done with it, once more. Without namespaces it is the only one.
func (s *stager) restrict() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	s.landlock = landlockVersion()
	if s.landlock == 0 && !s.Reduced {
		return nil
	}
	if s.Reduced && s.landlock < 3 {
		return errors.New("the kernel's Landlock is missing or too old")
	}
	attr := landlockHandled(s.landlock, s.Net != nil)
	size := unsafe.Sizeof(attr)
	if s.landlock < 10 {
		size = 24 // the fields that this kernel knows are the first three
	}
	if s.landlock < 6 {
		size = 16
	}
	if s.landlock < 4 {
		size = 8
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(set))
	for target, access := range s.rights() {
		if err := allow(int(set), target, access&attr.Handled_access_fs); err != nil {
			return fmt.Errorf("%q: %w", target, err)
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// rights maps each place to what may be done below it.
func (s *stager) rights() map[string]uint64 {
	all := map[string]uint64{}
	if !s.Reduced {
		all["/"] = unix.LANDLOCK_ACCESS_FS_READ_DIR
		all["/proc"] = landRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE // /proc is read-only; its fd links lead elsewhere
	}
	if s.Root.Host {
		all["/"] = landRead
		if s.Root.Write {
			all["/"] = landWrite
		}
	}
	for _, m := range s.Mounts {
		switch {
		case m.Show == showLink || m.Show == showHeld || m.Show == showDir:
		case m.Show == showDevice:
			all[m.Target] = landDevice
		case m.Write || m.Show == showScratch:
			all[m.Target] = landWrite
		default:
			all[m.Target] |= landRead
		}
	}
	return all
}

// allow adds one rule. A path that is a file takes only the rights of files.
func allow(set int, target string, access uint64) error {
	fd, err := unix.Open(target, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= landFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// seccomp installs the filter.
func (s *stager) seccomp() error {
	filter, err := assemble(rules(s.Net != nil, s.Reduced))
	if err != nil {
		return err
	}
	return install(filter)
}

// check tries what must not work any more. Every layer above reported success;
// this is for the kernel that reports it and does nothing.
func (s *stager) check() error {
	family := unix.AF_INET
	if s.Net != nil {
		family = unix.AF_NETLINK
	}
	if fd, err := unix.Socket(family, unix.SOCK_DGRAM, 0); err == nil {
		unix.Close(fd)
		return errors.New("a forbidden socket could be made")
	}
	if unix.Unshare(unix.CLONE_NEWUSER) == nil {
		return errors.New("a user namespace could be made")
	}
	if v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || v != 1 {
		return errors.New("privileges could be gained")
	}
	if v, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0); err != nil || v != 2 {
		return errors.New("there is no filter")
	}
	for _, name := range s.Canary {
		if fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			unix.Close(fd)
			return fmt.Errorf("%q could be opened", name)
		}
	}
	return s.checkNamespaces()
}

// checkNamespaces is the part of check that needs them.
func (s *stager) checkNamespaces() error {
	if s.Reduced {
		return nil
	}
	if os.Getpid() != 1 {
		return errors.New("this is no process namespace of its own")
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return err
	}
	for _, c := range have {
		if c.Effective|c.Permitted|c.Inheritable != 0 {
			return errors.New("capabilities are left")
		}
	}
	if !s.Root.Write {
		if name := path.Join("/", ".pollux-check"); unix.Mkdir(name, 0o700) == nil {
			return errors.New("the root folder could be written to")
		}
	}
	if fd, err := unix.Open("/proc/sys/kernel/hostname", unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
		unix.Close(fd)
		return errors.New("the system's settings could be changed")
	}
	return nil
}
