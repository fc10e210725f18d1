// Package ownpipe opens sockets, and on Windows named pipes, for processes of this user alone, and says who is at the other end.
package ownpipe

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// MaxPath is what every system takes for a socket: 104 bytes with the end on macOS, 108 on Linux.
const MaxPath = 103

// ListenIn opens a pipe in the first of dirs that can be made private and whose name is short enough. Its file is named by this
// process, at random, and ends in suffix.
func ListenIn(dirs []string, suffix string) (net.Listener, error) {
	var errs []error
	for _, dir := range dirs {
		ln, err := listenIn(dir, suffix)
		if err == nil {
			return ln, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func listenIn(dir, suffix string) (net.Listener, error) {
	// The random part keeps two companions of one process, and a dead one with the same PID, apart.
	path := filepath.Join(dir, strconv.Itoa(os.Getpid())+"-"+rand.Text()[:6]+suffix)
	if len(path) > MaxPath {
		return nil, fmt.Errorf("the path %q is longer than the %d bytes that a socket's may have", path, MaxPath)
	}
	if err := safefile.PrivateDir(dir); err != nil {
		return nil, err
	}
	return ListenAt(path)
}

// Sweep removes the files of a suffix in a folder that ListenIn has made for processes that are gone.
func Sweep(dir, suffix string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "-")
		if pid, err := strconv.Atoi(number); err == nil && pid > 1 && strings.HasSuffix(e.Name(), suffix) && !proc.Alive(pid) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// Guard returns l without the connections of other users, which are closed before a byte of them is read (SPEC A-5).
func Guard(l net.Listener, log *slog.Logger) net.Listener { return guarded{l, log} }

type guarded struct {
	net.Listener
	log *slog.Logger
}

// Accept waits for the next connection of this user's.
func (g guarded) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if _, err = Peer(conn); err == nil {
			return conn, nil
		}
		g.log.Warn("a stranger at a private socket", "address", g.Addr(), "err", err)
		_ = conn.Close()
	}
}
