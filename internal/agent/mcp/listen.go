package mcp

import (
	"log/slog"
	"net"

	"github.com/pollux-companion/pollux/internal/door"
	"github.com/pollux-companion/pollux/internal/ownpipe"
)

// privateSuffix ends the name of the socket for agents that connect by a private one.
const privateSuffix = ".agents"

// ListenPrivate opens the private socket in the first of the folders that can hold it.
func ListenPrivate(dirs []string, log *slog.Logger) (net.Listener, error) {
	ln, err := ownpipe.ListenIn(dirs, privateSuffix)
	if err != nil {
		return nil, err
	}
	return ownpipe.Guard(ln, log), nil
}

// SweepPrivate removes the private sockets that dead companions left in a folder.
func SweepPrivate(dir string) { ownpipe.Sweep(dir, privateSuffix) }

// OwnUser keeps other users' connections off a listener on loopback (SPEC A-5).
func OwnUser(ln net.Listener, log *slog.Logger) net.Listener { return door.OwnUser(ln, log) }
