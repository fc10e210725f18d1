//go:build unix

package ownpipe

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
)

// ErrRefused is what a socket gives that nobody listens on.
const ErrRefused = syscall.ECONNREFUSED

// Scheme says what Name names.
const Scheme = "unix"

// Name is what another program dials to reach the pipe at path.
func Name(path string) string { return path }

// ListenAt opens a unix socket at path, in a folder that is this user's alone. Closing it removes the file.
func ListenAt(path string) (net.Listener, error) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	// Nobody else can have come between: the folder is the user's alone,
	// and the peer is checked at each connection besides.
	if err := os.Chmod(path, 0o600); err != nil {
		ln.Close()
		return nil, err
	}
	return ln, nil
}

// Dial joins the socket of a Name, and refuses one that another user's process listens on.
func Dial(ctx context.Context, name string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", name)
	if err != nil {
		return nil, err
	}
	if _, err := Peer(conn); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%q is served by %w", name, err)
	}
	return conn, nil
}

// Peer is the process at the other end of a connection, 0 when the system does not say. A process of another user is an error; root
// may do anything anyway.
func Peer(c net.Conn) (pid int, err error) {
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("not a unix socket: %T", c)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var uid uint32
	var unknown error
	if err := raw.Control(func(fd uintptr) { pid, uid, unknown = credentialsOf(int(fd)) }); err != nil {
		return 0, err
	}
	if unknown != nil {
		return 0, unknown
	}
	if int(uid) != os.Geteuid() && uid != 0 {
		return 0, fmt.Errorf("process %d of user %d", pid, uid)
	}
	return pid, nil
}
