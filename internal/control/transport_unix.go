//go:build unix

package control

import (
	"context"
	"net"
	"os"
)

// listenAt opens a unix socket at path, for this user alone.
func listenAt(path string) (net.Listener, error) {
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

func dial(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}
