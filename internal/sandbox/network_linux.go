package sandbox

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// openNetwork raises the loopback interface, which is the only one, and makes
// the listeners at which the parent waits: DNS (UDP, TCP), the proxy, one for
// each port of the policy, and the tap, in this order.
func (s *stager) openNetwork() error {
	if s.Net == nil {
		return nil
	}
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	if err := routeEverything(); err != nil {
		return fmt.Errorf("routes: %w", err)
	}
	loopback := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: dnsPort}
	if err := s.listen(unix.AF_INET, unix.SOCK_DGRAM, loopback); err != nil {
		return err
	}
	if err := s.listen(unix.AF_INET, unix.SOCK_STREAM, loopback); err != nil {
		return err
	}
	if err := s.listen(unix.AF_INET, unix.SOCK_STREAM, &unix.SockaddrInet4{Addr: loopback.Addr, Port: s.Net.Proxy}); err != nil {
		return err
	}
	for _, port := range s.Net.Ports {
		err := s.listen(unix.AF_INET6, unix.SOCK_STREAM, &unix.SockaddrInet6{Port: port}) // both versions
		if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL) {
			err = s.listen(unix.AF_INET, unix.SOCK_STREAM, &unix.SockaddrInet4{Port: port})
		}
		if err != nil {
			return fmt.Errorf("port %d: %w", port, err)
		}
	}
	tap, err := openTap()
	if err != nil {
		return fmt.Errorf("tap: %w", err)
	}
	s.listeners = append(s.listeners, tap)
	return nil
}

func (s *stager) listen(family, kind int, at unix.Sockaddr) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	if family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err == nil {
		err = unix.Bind(fd, at)
	}
	if err == nil && kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, 128)
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	s.listeners = append(s.listeners, fd)
	return nil
}

// raiseLoopback brings lo up.
func raiseLoopback() error {
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
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
