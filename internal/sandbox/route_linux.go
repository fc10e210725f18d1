package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// loopbackIndex is the number of the loopback interface in every network namespace.
const loopbackIndex = 1

// routeEverything makes every address one of the loopback interface's own, so
// that contacts to addresses end in this namespace, at pollux where it listens,
// and can be told of instead of failing unseen. There is no other interface
// through which anything could leave.
func routeEverything() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	if err := addRoute(fd, unix.AF_INET); err != nil {
		return err
	}
	switch err := addRoute(fd, unix.AF_INET6); {
	case err == nil:
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EAFNOSUPPORT), errors.Is(err, unix.EACCES), errors.Is(err, unix.EINVAL):
		// The kernel has no version 6, or it is switched off.
	default:
		return fmt.Errorf("version 6: %w", err)
	}
	return nil
}

// addRoute is "ip route add local default dev lo".
func addRoute(fd int, family uint8) error {
	const length = unix.SizeofNlMsghdr + unix.SizeofRtMsg + unix.SizeofRtAttr + 4
	m := make([]byte, 0, length)
	m = binary.NativeEndian.AppendUint32(m, length)
	m = binary.NativeEndian.AppendUint16(m, unix.RTM_NEWROUTE)
	m = binary.NativeEndian.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	m = binary.NativeEndian.AppendUint32(m, 1) // sequence
	m = binary.NativeEndian.AppendUint32(m, 0) // to the kernel
	m = append(m, family, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_HOST, unix.RTN_LOCAL)
	m = binary.NativeEndian.AppendUint32(m, 0) // flags
	m = binary.NativeEndian.AppendUint16(m, unix.SizeofRtAttr+4)
	m = binary.NativeEndian.AppendUint16(m, unix.RTA_OIF)
	m = binary.NativeEndian.AppendUint32(m, loopbackIndex)
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4*kib)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return unix.EPROTO
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

// openTap opens what sees the beginning of every contact in this namespace:
// the first segment of a TCP connection, and UDP. Its reader is the parent.
func openTap() (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0) // nothing comes before the filter is there
	if err != nil {
		return -1, err
	}
	filter, err := bpf.Assemble(tapFilter())
	if err == nil {
		program := sockFilter(filter)
		err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: loopbackIndex})
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

// tapLength is as much of a packet as is looked at: both headers, with the
// longest options of the first.
const tapLength = 128

// tapFilter lets through what openTap says, once: on the loopback interface
// every packet is seen twice, on its way out and in.
func tapFilter() []bpf.Instruction {
	const syn, ack = 0x02, 0x10
	return []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OUTGOING, SkipTrue: 16}, // to the end: nothing
		bpf.LoadExtension{Num: bpf.ExtProto},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipTrue: 7},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IP, SkipFalse: 13},
		bpf.LoadAbsolute{Off: 9, Size: 1}, // version 4: the protocol
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_UDP, SkipTrue: 10},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipFalse: 10},
		bpf.LoadMemShift{Off: 0},
		bpf.LoadIndirect{Off: 13, Size: 1},
		bpf.Jump{Skip: 4},
		bpf.LoadAbsolute{Off: 6, Size: 1}, // version 6: the next header
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_UDP, SkipTrue: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipFalse: 4},
		bpf.LoadAbsolute{Off: 40 + 13, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: syn | ack}, // of TCP's flags
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: syn, SkipFalse: 1},
		bpf.RetConstant{Val: tapLength},
		bpf.RetConstant{Val: 0},
	}
}
