//go:build unix

package ownpipe

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
)

// ErrRefused is the error of dialling a socket on which nobody listens.
const ErrRefused = syscall.ECONNREFUSED

// Scheme says what kind of address Name returns.
const Scheme = "unix"

// Name returns what another program dials to reach the pipe at path.
func Name(path string) string { return path }

// ListenAt opens a unix socket at path, in a folder that is private to this user. Closing the listener removes the file.
func ListenAt(path string) (net.Listener, error) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	// Nobody can connect before the Chmod: the folder is private, and each
	// connection's peer is checked as well.
	if err := os.Chmod(path, 0o600); err != nil {
		ln.Close()
		return nil, err
	}
	return ln, nil
}

// Dial connects to the socket of a Name. It fails when another user's process listens there.
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

// ended says whether the process that made a connection has ended, as far as the system tells it otherwise than by the process's number.
func ended(c net.Conn) (over bool) {
	if conn, ok := c.(*net.UnixConn); ok {
		if raw, err := conn.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { over = endedAt(int(fd)) })
		}
	}
	return over
}

// Peer returns the process at the other end of a connection, 0 when the system does not say. It fails for a process of another user, except
// root, which may do anything anyway.
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
