package inside

import (
	"errors"
	"syscall"
	"unsafe"

	"github.com/pollux-companion/pollux/internal/sandbox/kernel"
)

// loopbackIndex is the index of the loopback interface in every network namespace.
const loopbackIndex = 1

// routeEverything routes every address to the loopback interface. A connection to any address then ends in this
// namespace: at pollux if it listens there, otherwise in the tap, which reports it. There is no other interface, so
// nothing can leave.
func routeEverything() error {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return err
	}
	if err := addRoute(fd, syscall.AF_INET); err != nil {
		return err
	}
	switch err := addRoute(fd, syscall.AF_INET6); {
	case err == nil:
	case errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.EAFNOSUPPORT), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EINVAL):
		// The kernel has no IPv6, or it is disabled.
	default:
		return on("version 6", err)
	}
	return nil
}

// A routeRequest is the netlink message that adds a route through an interface.
type routeRequest struct {
	head  syscall.NlMsghdr
	route syscall.RtMsg
	attr  syscall.RtAttr
	index uint32
}

// A routeAnswer is the start of the kernel's answer.
type routeAnswer struct {
	head syscall.NlMsghdr
	code int32
	_    [4 << 10]byte
}

// addRoute does "ip route add local default dev lo".
func addRoute(fd int, family uint8) error {
	m := routeRequest{
		head:  syscall.NlMsghdr{Type: syscall.RTM_NEWROUTE, Flags: syscall.NLM_F_REQUEST | syscall.NLM_F_ACK | syscall.NLM_F_CREATE | syscall.NLM_F_REPLACE, Seq: 1},
		route: syscall.RtMsg{Family: family, Table: syscall.RT_TABLE_LOCAL, Protocol: syscall.RTPROT_STATIC, Scope: syscall.RT_SCOPE_HOST, Type: syscall.RTN_LOCAL},
		attr:  syscall.RtAttr{Len: syscall.SizeofRtAttr + 4, Type: syscall.RTA_OIF}, index: loopbackIndex,
	}
	m.head.Len = uint32(unsafe.Sizeof(m))
	if err := syscall.Sendto(fd, unsafe.Slice((*byte)(unsafe.Pointer(&m)), unsafe.Sizeof(m)), 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return err
	}
	var answer routeAnswer
	n, _, err := syscall.Recvfrom(fd, unsafe.Slice((*byte)(unsafe.Pointer(&answer)), unsafe.Sizeof(answer)), 0)
	if err != nil {
		return err
	}
	if n < syscall.SizeofNlMsghdr+4 || answer.head.Type != syscall.NLMSG_ERROR {
		return syscall.EPROTO
	}
	if answer.code != 0 {
		return syscall.Errno(-answer.code)
	}
	return nil
}

// openTap opens a packet socket that sees the first TCP segment of each connection in this namespace, and all UDP.
// The parent reads it.
func openTap(filter []syscall.SockFilter) (int, error) {
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0) // protocol 0 receives no packets until the filter is attached
	if err != nil {
		return -1, err
	}
	if len(filter) == 0 {
		err = syscall.EINVAL
	} else {
		err = kernel.AttachFilter(fd, filter)
	}
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrLinklayer{Protocol: htons(syscall.ETH_P_ALL), Ifindex: loopbackIndex})
	}
	if err != nil {
		syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }
