package proc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sockDiag queries the kernel about single sockets (man 7 sock_diag), over one netlink socket that lives as long as
// the process.
type sockDiag struct {
	mu  sync.Mutex // guards the fields below
	fd  int
	seq uint32
}

// ends finds ends by netlink, and the processes that hold them.
type ends struct {
	diag *sockDiag // nil if netlink does not answer; then /proc/net/tcp is read
	held heldSockets
}

func openEnds() (*ends, error) {
	if err := knowsUsers(os.Geteuid(), "/proc"); err != nil {
		return nil, err
	}
	d, err := openDiag()
	if err != nil {
		return &ends{}, nil
	}
	if tryEnds(d.find) != nil {
		unix.Close(d.fd)
		return &ends{}, nil
	}
	return &ends{diag: d}, nil
}

// knowsUsers fails in a user namespace that maps neither this user nor others, because user numbers are then
// ambiguous.
func knowsUsers(uid int, proc string) error {
	overflow, err := os.ReadFile(proc + "/sys/kernel/overflowuid")
	if err != nil || strings.TrimSpace(string(overflow)) != fmt.Sprint(uid) {
		return nil
	}
	mapped, err := os.ReadFile(proc + "/self/uid_map")
	if err == nil && strings.Join(strings.Fields(string(mapped)), " ") == "0 0 4294967295" {
		return nil
	}
	return fmt.Errorf("in this namespace other users have the number %d too, as this one", uid)
}

// find returns the end that is bound to local and connected to remote.
func (a *ends) find(local, remote netip.AddrPort) (end, error) {
	if a.diag != nil {
		e, err := a.diag.find(local, remote)
		if err == nil || errors.Is(err, errNoEnd) || errors.Is(err, errQueued) {
			return e, err
		}
	}
	return findInTables("/proc/self/net", local, remote)
}

// listener returns the socket that accepts connections to an address.
func (a *ends) listener(local netip.AddrPort) (end, error) {
	if a.diag != nil {
		e, err := a.diag.ask(local, netip.AddrPortFrom(zero(local.Addr()), 0), listenerOf)
		if err == nil || errors.Is(err, errNoEnd) {
			return e, err
		}
	}
	return findListener("/proc/self/net", local)
}

// zero returns the unspecified address of the same family.
func zero(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// holders returns the processes with a descriptor of a socket, the lowest PID first.
func (a *ends) holders(inode uint64) (pids []int) { return a.held.find(inode, lookAtSockets) }

// hidden is MayHold for a socket.
func (a *ends) hidden(inode uint64, which func(pid int) bool) bool {
	return slices.ContainsFunc(namesIn("/proc"), func(name string) bool {
		pid, err := strconv.Atoi(name)
		return err == nil && mine(pid) && which(pid) && mayHold(pid, inode)
	})
}

func openDiag() (*sockDiag, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	// The answer is available as soon as the question is sent; if it ever is not, the timeout avoids a hang.
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &sockDiag{fd: fd}, nil
}

const (
	diagAsk   = 16 + 56 // struct nlmsghdr and inet_diag_req_v2
	diagReply = 16 + 72 // struct nlmsghdr and inet_diag_msg
)

// find looks for the socket that is bound to local and connected to remote.
func (d *sockDiag) find(local, remote netip.AddrPort) (end, error) {
	return d.ask(local, remote, endOf)
}

// ask is find with another readEnd.
func (d *sockDiag) ask(local, remote netip.AddrPort, read readEnd) (end, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seq++
	var ask [diagAsk]byte
	askDiag(&ask, d.seq, local, remote)
	if err := retry(func() error { return unix.Sendto(d.fd, ask[:], 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) }); err != nil {
		return end{}, err
	}
	var answer [1024]byte
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
		n := 0
		err := retry(func() (err error) { n, _, err = unix.Recvfrom(d.fd, answer[:], 0); return err })
		if err != nil {
			return end{}, err
		}
		if e, answers, err := readDiag(answer[:n], d.seq, local, remote, read); answers {
			return e, err
		}
	}
	return end{}, os.ErrDeadlineExceeded
}

func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func askDiag(b *[diagAsk]byte, seq uint32, local, remote netip.AddrPort) {
	binary.NativeEndian.PutUint32(b[0:], diagAsk)
	binary.NativeEndian.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(b[8:], seq)
	b[16], b[17] = unix.AF_INET, unix.IPPROTO_TCP
	if local.Addr().Is6() {
		b[16] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(b[20:], ^uint32(0)) // states: any
	binary.BigEndian.PutUint16(b[24:], local.Port())
	binary.BigEndian.PutUint16(b[26:], remote.Port())
	copy(b[28:44], local.Addr().AsSlice())
	copy(b[44:60], remote.Addr().AsSlice())
	// The interface is 0; there is no cookie.
	binary.NativeEndian.PutUint64(b[64:], ^uint64(0))
}

// readDiag reads one message; answers is false if it belongs to another question.
func readDiag(b []byte, seq uint32, local, remote netip.AddrPort, read readEnd) (e end, answers bool, err error) {
	if len(b) < 20 || binary.NativeEndian.Uint32(b[8:]) != seq {
		return end{}, false, nil
	}
	if binary.NativeEndian.Uint16(b[4:]) == unix.NLMSG_ERROR {
		errno := syscall.Errno(-int32(binary.NativeEndian.Uint32(b[16:])))
		if errno == unix.ENOENT {
			return end{}, true, errNoEnd
		}
		return end{}, true, fmt.Errorf("netlink: %w", errno)
	}
	if binary.NativeEndian.Uint16(b[4:]) != unix.SOCK_DIAG_BY_FAMILY || len(b) < diagReply {
		return end{}, true, errors.New("netlink: an answer of another form")
	}
	// If no connection has these ports, the kernel answers with a listener.
	if binary.BigEndian.Uint16(b[20:]) != local.Port() || binary.BigEndian.Uint16(b[22:]) != remote.Port() {
		return end{}, true, errNoEnd
	}
	e, err = read(b[17], binary.NativeEndian.Uint32(b[80:]), uint64(binary.NativeEndian.Uint32(b[84:])))
	return e, true, err
}

// A readEnd makes an end from a socket's state, user and inode, or says why it cannot.
type readEnd func(state byte, uid uint32, inode uint64) (end, error)

// listenerOf is the readEnd of listening sockets.
func listenerOf(state byte, uid uint32, inode uint64) (end, error) {
	if state != tcpListen || inode == 0 {
		return end{}, errNoEnd
	}
	return endOfUser(uid, inode), nil
}

func endOfUser(uid uint32, inode uint64) end {
	return end{mine: int64(uid) == int64(os.Geteuid()), root: uid == 0, who: fmt.Sprint("user ", uid), inode: inode}
}

// endOf makes an end from the kernel's data of a socket. A socket that no process holds any more has lost its user
// (the kernel says root) and its inode. A state before the connection's beginning belongs to a newer socket.
func endOf(state byte, uid uint32, inode uint64) (end, error) {
	switch state {
	case tcpEstablished, tcpFinWait1, tcpFinWait2, tcpCloseWait, tcpLastAck, tcpClosing:
	default:
		return end{}, errNoEnd
	}
	switch {
	case inode == 0 && (state == tcpEstablished || state == tcpCloseWait):
		return end{}, errQueued
	case inode == 0:
		return end{}, errNoEnd
	}
	return endOfUser(uid, inode), nil
}

// The states of a TCP socket (include/net/tcp_states.h).
const (
	tcpEstablished = 1
	tcpFinWait1    = 4
	tcpFinWait2    = 5
	tcpClose       = 7
	tcpCloseWait   = 8
	tcpLastAck     = 9
	tcpListen      = 10
	tcpClosing     = 11
)

// stillUp reports whether our own end is connected. As long as it is, no other connection can have its addresses.
func stillUp(conn net.Conn) bool {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	up := false
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		up = err == nil && info.State != tcpClose
	})
	return err == nil && up
}
