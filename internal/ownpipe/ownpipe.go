// Package ownpipe opens unix sockets, and named pipes on Windows, for processes of this user alone, and says which process is at the other end.
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

// MaxPath is the longest path of a socket, in bytes, on every system: macOS allows 104 with the terminating zero, Linux 108.
const MaxPath = 103

// ListenIn opens a pipe in the first of dirs that can be made private and gives a short enough path. The name has this process's PID
// and random letters, and ends in suffix.
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
		return nil, fmt.Errorf("the path %q is longer than %d bytes, the most for a socket", path, MaxPath)
	}
	if err := safefile.PrivateDir(dir); err != nil {
		return nil, err
	}
	return ListenAt(path)
}

// Sweep removes a folder's files with a suffix that ListenIn made for processes that have ended.
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

// ErrEnded: the process that made a connection has ended. Another one may hold its end, and a third one may have its number.
var ErrEnded = errors.New("the process that made the connection has ended")

// Who returns the process at the other end of a connection, with the time of its start, by which it is told later from a process that got
// its number: ask soon after the connection was made, and proc.Same before each use. Its error is ErrEnded, or one of Peer. The Info has no
// start for a process that the system hides, and no PID when the system does not say which one it is.
func Who(c net.Conn) (proc.Info, error) {
	pid, err := Peer(c)
	if err != nil || pid == 0 {
		return proc.Info{}, err
	}
	p, ok := proc.Lookup(pid)
	if ended(c) || !ok && !proc.Alive(pid) { // ended is asked after Lookup, so that what was found is that process
		return proc.Info{PID: pid}, ErrEnded
	}
	p.PID = pid
	return p, nil
}

// Guard returns l without the connections of other users: it closes them before it reads a byte (SPEC A-5). Accept may be called from any goroutine.
func Guard(l net.Listener, log *slog.Logger) net.Listener { return guarded{l, log} }

type guarded struct {
	net.Listener
	log *slog.Logger
}

// Accept waits for the next connection of this user.
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
