package proc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Errors of CheckPeer.
var (
	// ErrForeign: the other end belongs to another user, or nobody holds it any more.
	ErrForeign = errors.New("the other end of the connection is not this user's")
	// errUntold: this system cannot say who owns the other end of a connection.
	errUntold = errors.New("this system does not say whose the other end of a connection is")
)

// errNoEnd: no process holds such an end.
var errNoEnd = errors.New("nobody holds the other end any more")

// An end is one end of a TCP connection on this machine, from the system's table.
type end struct {
	mine bool   // it belongs to this user
	root bool   // it belongs to root or the administrator
	who  string // its owner, for a message
	// One of these two leads to the process; 0 is unknown.
	inode uint64
	pid   int
}

// CheckPeer reports whether the client end of an accepted TCP connection on this machine belongs to this user or root
// (SPEC A-5). It reads nothing from the connection, and takes some ten microseconds on Linux. Its errors wrap
// ErrForeign, also if the other end cannot be found, or errUntold if the system cannot tell. It may be called from
// any goroutine.
func CheckPeer(conn net.Conn) error {
	ends, err := theEnds()
	if err != nil {
		return err
	}
	return checkPeer(conn, ends.find)
}

func checkPeer(conn net.Conn, find func(local, remote netip.AddrPort) (end, error)) error {
	client, ok := addrPort(conn.RemoteAddr())
	server, ok2 := addrPort(conn.LocalAddr())
	if !ok || !ok2 {
		return fmt.Errorf("%w: it is not TCP", ErrForeign)
	}
	e, err := find(client, server)
	if err != nil {
		return fmt.Errorf("%w: %v", ErrForeign, err)
	}
	if !e.mine && !e.root {
		return fmt.Errorf("%w: it is %s's", ErrForeign, e.who)
	}
	// A dead connection may hold bytes that a stranger sent, and its addresses may be in use by somebody else.
	if !stillUp(conn) {
		return fmt.Errorf("%w: the connection has broken", ErrForeign)
	}
	return nil
}

// TellsPeers returns nil if CheckPeer works on this system, else errUntold with the reason. It tries once, with a
// connection to itself.
func TellsPeers() error {
	_, err := theEnds()
	return err
}

// theEnds finds ends on this system, for the life of the process.
var theEnds = sync.OnceValues(func() (*ends, error) {
	all, err := openEnds()
	if err != nil {
		return nil, fmt.Errorf("%w: %v", errUntold, err)
	}
	return all, tryEnds(all.find)
})

// tryEnds looks for both ends of a connection of this process to itself.
func tryEnds(find func(local, remote netip.AddrPort) (end, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var listen net.ListenConfig
	ln, err := listen.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("%w: %v", errUntold, err)
	}
	defer ln.Close()
	var dial net.Dialer
	client, err := dial.DialContext(ctx, "tcp4", ln.Addr().String())
	if err != nil {
		return fmt.Errorf("%w: %v", errUntold, err)
	}
	defer client.Close()
	a, _ := addrPort(client.LocalAddr())
	b, _ := addrPort(client.RemoteAddr())
	e, err := find(a, b)
	switch {
	case err != nil:
		return fmt.Errorf("%w: it does not show a connection of this process (%v)", errUntold, err)
	case !e.mine:
		return fmt.Errorf("%w: it says that a connection of this process is %s's", errUntold, e.who)
	}
	return nil
}

// Peers returns the processes of this user that hold the client end of a TCP connection over loopback, the lowest PID first: a parent and a
// child that inherited it, or one that was given it. client is its address, server ours. It may search every process, milliseconds on a
// busy machine, and waits up to a second so that many calls share one search. Call it in the background, once per connection. There are none
// if the system cannot tell, and for another user's end.
func Peers(client, server netip.AddrPort) (pids []int) {
	client = netip.AddrPortFrom(client.Addr().Unmap(), client.Port())
	server = netip.AddrPortFrom(server.Addr().Unmap(), server.Port())
	if !client.Addr().IsLoopback() || !server.Addr().IsLoopback() {
		return nil
	}
	ends, err := theEnds()
	if err != nil {
		return nil
	}
	e, err := ends.find(client, server)
	if err != nil || !e.mine {
		return nil
	}
	if e.pid != 0 {
		return []int{e.pid}
	}
	return ends.holders(e.inode)
}

// MayHold says whether one of this user's processes may hold the client end of a TCP connection over loopback where Peers finds nobody: a
// process that hides its descriptors, or has a thread with descriptors of its own. It looks at every process for which which is true.
func MayHold(client, server netip.AddrPort, which func(pid int) bool) bool {
	ends, err := theEnds()
	if err != nil {
		return false
	}
	e, err := ends.find(netip.AddrPortFrom(client.Addr().Unmap(), client.Port()), netip.AddrPortFrom(server.Addr().Unmap(), server.Port()))
	return err == nil && e.mine && ends.hidden(e.inode, which)
}

func addrPort(a net.Addr) (netip.AddrPort, bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port()), true
}
