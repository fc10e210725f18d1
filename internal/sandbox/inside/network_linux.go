package inside

import (
	"errors"
	"strconv"
	"syscall"

	"github.com/pollux-companion/pollux/internal/sandbox/kernel"
)

// openNetwork raises the loopback interface, the only one, and opens the listeners that the parent serves. Their
// order: DNS (UDP, TCP), the proxy, one for each port of the policy, the tap.
func (s *stager) openNetwork() error {
	if s.Net == nil {
		return nil
	}
	if err := raiseLoopback(); err != nil {
		return on("loopback", err)
	}
	if err := routeEverything(); err != nil {
		return on("routes", err)
	}
	loopback := &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: DNSPort}
	if err := s.listen(syscall.AF_INET, syscall.SOCK_DGRAM, loopback); err != nil {
		return err
	}
	if err := s.listen(syscall.AF_INET, syscall.SOCK_STREAM, loopback); err != nil {
		return err
	}
	if err := s.listen(syscall.AF_INET, syscall.SOCK_STREAM, &syscall.SockaddrInet4{Addr: loopback.Addr, Port: s.Net.Proxy}); err != nil {
		return err
	}
	// These listen on every address, because each allowed name has one of its own inside.
	for _, port := range s.Net.Ports {
		err := s.listen(syscall.AF_INET6, syscall.SOCK_STREAM, &syscall.SockaddrInet6{Port: port}) // IPv6 and IPv4
		if errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL) {
			err = s.listen(syscall.AF_INET, syscall.SOCK_STREAM, &syscall.SockaddrInet4{Port: port})
		}
		if err != nil {
			return on("port "+strconv.Itoa(port), err)
		}
	}
	tap, err := openTap(s.Net.Tap)
	if err != nil {
		return on("tap", err)
	}
	s.listeners = append(s.listeners, tap)
	return nil
}

// listen opens a listener for the parent. A socket belongs to the network namespace in which it was made: opened here and
// served outside, it is the command's way to the parent.
func (s *stager) listen(family, kind int, place syscall.Sockaddr) error {
	fd, err := syscall.Socket(family, kind|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	if family == syscall.AF_INET6 {
		err = syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY, 0)
	}
	if err == nil {
		err = syscall.Bind(fd, place)
	}
	if err == nil && kind == syscall.SOCK_STREAM {
		err = syscall.Listen(fd, 128)
	}
	if err != nil {
		syscall.Close(fd)
		return err
	}
	s.listeners = append(s.listeners, fd)
	return nil
}

// raiseLoopback switches the loopback interface on. A new network namespace has it switched off, and has no other.
func raiseLoopback() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	return kernel.SetInterfaceFlags(fd, "lo", syscall.IFF_UP|syscall.IFF_RUNNING)
}
