package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pollux-companion/pollux/internal/ownpipe"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// A companion leaves a pointer to its socket in the state folder, so that no variable (XDG_RUNTIME_DIR) leads a process past it that agrees
// to something. The companion locks the file as long as it lives: whoever sees the lock and does not reach the socket is kept from it.

// pointerSuffix ends the name of every pointer.
const pointerSuffix = ".at"

// PointFrom leaves a pointer to the socket in a folder, until Close, and returns s. A failure is only logged.
func (s *Server) PointFrom(dir string) *Server {
	if err := s.point(dir); err != nil {
		s.log.Warn("commands with another XDG_RUNTIME_DIR do not find this companion", "err", err)
	}
	return s
}

func (s *Server) point(dir string) error {
	if ownpipe.Scheme != "unix" {
		return nil // there is one folder, and no variable for another
	}
	if err := safefile.PrivateDir(dir); err != nil {
		return err
	}
	pointed([]string{dir}) // removes what killed companions have left
	name := filepath.Join(dir, strings.TrimSuffix(filepath.Base(s.Path()), socketSuffix)+pointerSuffix)
	fresh := filepath.Join(dir, safefile.TempName())
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(s.Path())
	if err == nil {
		_, err = safefile.TryLock(f)
	}
	if err == nil {
		err = os.Rename(fresh, name) // nobody sees it before it is locked
	}
	if err != nil {
		_ = os.Remove(fresh)
		f.Close()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unpoint = func() {
		_ = os.Remove(name)
		f.Close()
	}
	return nil
}

// pointed returns the sockets of the living companions that have left a pointer in dirs. It removes the pointers of others.
func pointed(dirs []string) (paths []string) {
	for _, dir := range dirs {
		for _, pointer := range filesIn(dir, pointerSuffix) {
			data, err := safefile.ReadPrivate(pointer, ownpipe.MaxPath)
			if err != nil {
				continue
			}
			f, err := os.Open(pointer)
			if err != nil {
				continue
			}
			if safefile.Locked(f) {
				paths = append(paths, string(data))
			} else {
				_ = os.Remove(pointer)
			}
			f.Close()
		}
	}
	return paths
}

// errMany: there are more sockets than anybody has companions.
var errMany = fmt.Errorf("%w: there are more than %d sockets, too many to ask; end the programs that made them, or remove them", ErrSilent, maxSockets)

// listForGuard is ListAll for who must not miss a companion: it also follows pointers. hidden says which companions are not reached.
func listForGuard(ctx context.Context, dirs []string) (clients []*Client, hidden []error) {
	many := len(socketsIn(dirs)) > maxSockets // before dead ones are removed
	clients, silent := ListAll(ctx, dirs)
	if len(silent) > 0 { // an agent may have stopped that companion, or hold its connections, so that nobody learns of the agent
		hidden = append(hidden, SilentError(silent))
	}
	if many {
		hidden = append(hidden, errMany)
	}
	paths := slices.DeleteFunc(pointed(dirs), func(path string) bool {
		return slices.ContainsFunc(clients, func(c *Client) bool { return c.path == path })
	})
	if len(paths) > maxSockets && !many {
		hidden = append(hidden, errMany)
	}
	var (
		mu   sync.Mutex
		wait sync.WaitGroup
	)
	for _, path := range paths[:min(len(paths), maxSockets)] {
		wait.Go(func() { // each may take as long as a Dial
			c, err := dialBusy(ctx, path)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				clients = append(clients, c)
				return
			}
			cause := err
			if e := (*net.OpError)(nil); errors.As(err, &e) {
				cause = safefile.Cause(e.Err)
			}
			pid, _, _ := strings.Cut(filepath.Base(path), "-")
			if !slices.ContainsFunc(silent, func(s Silent) bool { return fmt.Sprint(s.PID) == pid }) {
				hidden = append(hidden, fmt.Errorf("%w: process %s runs, and its socket %q is not reached from here (%v); end that process and start it again", ErrSilent, pid, path, cause))
			}
		})
	}
	wait.Wait()
	return clients, hidden
}
