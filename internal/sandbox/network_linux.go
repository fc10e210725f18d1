package sandbox

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// openNetwork raises the loopback interface, which is the only one, and makes
// the listeners at which the parent waits: DNS (UDP, TCP), the proxy, and one
// for each port of the policy, in this order.
func (s *stager) openNetwork() error {
	if s.Net == nil {
		return nil
	}
	if err := raiseLoopback(s.Net.Addrs); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	loopback, anywhere := [4]byte{127, 0, 0, 1}, [4]byte{}
	if err := s.listen(unix.SOCK_DGRAM, loopback, 53); err != nil {
		return err
	}
	if err := s.listen(unix.SOCK_STREAM, loopback, 53); err != nil {
		return err
	}
	if err := s.listen(unix.SOCK_STREAM, loopback, s.Net.Proxy); err != nil {
		return err
	}
	for _, port := range s.Net.Ports {
		if err := s.listen(unix.SOCK_STREAM, anywhere, port); err != nil {
			return err
		}
	}
	return nil
}

func (s *stager) listen(kind int, addr [4]byte, port int) error {
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: addr, Port: port}); err != nil {
		return fmt.Errorf("port %d: %w", port, err)
	}
	if kind == unix.SOCK_STREAM {
		if err := unix.Listen(fd, 128); err != nil {
			return fmt.Errorf("port %d: %w", port, err)
		}
	}
	s.listeners = append(s.listeners, fd)
	return nil
}

// raiseLoopback brings lo up and gives it the addresses that the policy names
// literally, so that connections to them end here too.
func raiseLoopback(addrs []string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return err
	}
	for i, text := range addrs {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return err
		}
		alias, err := unix.NewIfreq(fmt.Sprintf("lo:%d", i))
		if err != nil {
			return err
		}
		b := addr.As4()
		if err := alias.SetInet4Addr(b[:]); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFADDR, alias); err != nil {
			return fmt.Errorf("%s: %w", addr, err)
		}
	}
	return nil
}
