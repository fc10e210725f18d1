package proc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// errQueued: the connection waits in its listener's accept queue, so only the listener's user is known.
var errQueued = errors.New("nobody has accepted the connection yet")

// DialOwn connects, except to another user's listener on loopback, which must not receive a token (SPEC A-5). If the
// system cannot say who owns the listener, it connects. It waits at most ten seconds.
func DialOwn(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if err := CheckServer(conn); errors.Is(err, ErrForeign) {
		conn.Close()
		return nil, fmt.Errorf("another user listens at %s, and is told nothing: %w", address, err)
	}
	return conn, nil
}

// Listeners returns the processes of this user that hold the socket which listens at an address, the lowest PID first; none when the system
// does not tell. It may search every process, as Peers does.
func Listeners(at netip.AddrPort) (pids []int) {
	ends, err := theEnds()
	if err != nil {
		return nil
	}
	e, err := ends.listener(at)
	if err != nil || !e.mine {
		return nil
	}
	return ends.holders(e.inode)
}

// CheckServer reports whether the server end of a TCP connection to this machine's loopback belongs to this user or
// root, so that a client may send it a secret. It sends and reads nothing. Its errors wrap ErrForeign for another
// user's listener, and errUntold if that is unknown: the system cannot tell, the address is not loopback, or the
// connection has ended. It may be called from any goroutine.
func CheckServer(conn net.Conn) error {
	ends, err := theEnds()
	if err != nil {
		return err
	}
	server, ok := addrPort(conn.RemoteAddr())
	client, ok2 := addrPort(conn.LocalAddr())
	if !ok || !ok2 || !server.Addr().IsLoopback() {
		return fmt.Errorf("%w: it is not on loopback", errUntold)
	}
	return checkServer(conn, server, client, ends.find, ends.listener)
}

func checkServer(conn net.Conn, server, client netip.AddrPort, find func(local, remote netip.AddrPort) (end, error), listener func(netip.AddrPort) (end, error)) error {
	e, err := find(server, client)
	if errors.Is(err, errQueued) {
		e, err = listener(server)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %v", errUntold, err)
	case !e.mine && !e.root:
		return fmt.Errorf("%w: it is %s's", ErrForeign, e.who)
	case !stillUp(conn): // closing a listener drops its queue, so the listener found is another one
		return fmt.Errorf("%w: the connection has broken", errUntold)
	}
	return nil
}
