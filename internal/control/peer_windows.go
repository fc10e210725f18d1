package control

import (
	"net"

	"golang.org/x/sys/windows"
)

// errRefused is what a socket gives that nobody listens on.
const errRefused = windows.WSAECONNREFUSED

// checkPeer has nothing to ask: unix sockets on Windows carry no credentials. The
// access list of the user's profile, where the socket lies, keeps others out.
func checkPeer(*net.UnixConn) (pid int, err error) { return 0, nil }
