package kakoune

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/ownpipe"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/rpc"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// A Start names a Kakoune that runs, and pollux's own folders.
type Start struct {
	Session string // Kakoune's
	PID     int    // of its server
	Client  string // where it was started; empty before there is one
	State   string // pollux's folder for what outlives it
	Run     []string
	Log     *slog.Logger
}

// socketFile names the socket of the pollux that serves a Kakoune.
const socketFile = "socket"

// A Serve is pollux's server for an editor, over a pair of pipes.
type Serve func(in io.Reader, out io.Writer) error

// open opens the folder of a Kakoune's, and its lock.
func (s Start) open() (dirs, dir string, lock *os.File, err error) {
	dirs = filepath.Join(s.State, "kakoune")
	dir = filepath.Join(dirs, folder(s.PID))
	if err = errors.Join(safefile.PrivateDir(dirs), safefile.PrivateDir(dir)); err != nil {
		return "", "", nil, err
	}
	lock, err = os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	return dirs, dir, lock, err
}

// Run serves one Kakoune until it ends.
func Run(ctx context.Context, s Start, serve Serve) error {
	dirs, dir, lock, err := s.open()
	if err != nil {
		return err
	}
	defer lock.Close()
	if held, err := safefile.TryLock(lock); err != nil {
		return err
	} else if !held { // one serves this Kakoune already
		socket, err := safefile.ReadPrivate(filepath.Join(dir, socketFile), ownpipe.MaxPath)
		if err != nil {
			return err
		}
		return send(ctx, s, command("set-option global pollux_socket", string(socket)))
	}
	sweep(dirs, time.Now())
	ln, err := ownpipe.ListenIn(s.Run, ".kakoune")
	if err != nil {
		return err
	}
	ownpipe.Sweep(filepath.Dir(ln.Addr().String()), ".kakoune")
	// Kakoune hears of the socket later than its next event may come.
	if err := safefile.Write(filepath.Join(dir, socketFile), []byte(ln.Addr().String()), nil); err != nil {
		ln.Close()
		return err
	}
	return serve.with(func(wire rpc.Wire) error {
		return join(ctx, wire, ownpipe.Guard(ln, s.Log), options{
			Start: s, Dir: dir,
			Send:      func(script string) error { return send(ctx, s, script) },
			MayDecide: func(conn net.Conn) error { return mayDecide(conn, s.PID) },
		})
	})
}

// with runs the server until f, which speaks with it, returns.
func (serve Serve) with(f func(rpc.Wire) error) error {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- serve(in, out)
		out.Close()
	}()
	err := f(rpc.NewQueue(rpc.NewChannel(fromServer, toServer, nil)))
	toServer.Close()
	return errors.Join(err, <-served)
}

// Leave tells a pollux what a Kakoune that ends has in its proposals, where the one that knew has been killed. Busy is another that
// serves this Kakoune, or is about to.
func Leave(ctx context.Context, s Start, serve Serve) (busy bool, err error) {
	_, dir, lock, err := s.open()
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if held, err := safefile.TryLock(lock); err != nil || !held {
		return err == nil, err
	}
	open := []obj{}
	for _, p := range left(dir) {
		open = append(open, p.announce(dir))
	}
	if len(open) == 0 {
		return false, nil
	}
	return false, serve.with(func(wire rpc.Wire) error { return leave(ctx, wire, s, dir, open) })
}

// send has a Kakoune run a script, by the program that it is, or the one in PATH where the system does not say.
func send(ctx context.Context, s Start, script string) error {
	program, ok := proc.Program(s.PID)
	if !ok {
		var err error
		if program, err = paths.Program("kak"); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-p", s.Session)
	cmd.Stdin = strings.NewReader(script)
	return cmd.Run()
}

// mayDecide says why the process at the other end of a connection must not decide for the user of a Kakoune: it is not started by that,
// or by an agent below it.
func mayDecide(conn net.Conn, kak int) error {
	who, err := ownpipe.Who(conn)
	if err != nil {
		return err
	}
	child := slices.ContainsFunc(guard.Line(who.PID), func(p proc.Info) bool { return p.PID == kak })
	if !child || guard.Look(who.PID, nil) != guard.Person {
		return errors.New("only the user decides, in Kakoune itself")
	}
	return nil
}

// lockFile is locked by the pollux that uses the folder.
const lockFile = "lock"

// keepFor is how long a Kakoune's texts stay when nobody here can say whether it still runs.
const keepFor = 7 * 24 * time.Hour

// folder is the name of a Kakoune's own folder: another process of the same number, later or in another container, has another one.
func folder(pid int) string {
	about, _ := proc.Lookup(pid)
	return fmt.Sprintf("%d-%d-%s", pid, about.Start, here())
}

// here names the namespaces of this process.
func here() string {
	sum := sha256.Sum256([]byte(proc.Namespaces()))
	return hex.EncodeToString(sum[:4])
}

// sweep removes what Kakounes have left that have ended. Whether one runs in another container cannot be seen.
func sweep(dirs string, now time.Time) {
	entries, _ := os.ReadDir(dirs)
	for _, e := range entries {
		var pid int
		var start proc.Stamp
		var where string
		if n, _ := fmt.Sscanf(e.Name(), "%d-%d-%s", &pid, &start, &where); n < 3 {
			continue
		}
		path := filepath.Join(dirs, e.Name())
		lock, info, err := safefile.OpenPrivate(filepath.Join(path, lockFile))
		if err != nil {
			continue // it is just being made
		}
		over := where == here() && !proc.Same(pid, start) || where != here() && now.Sub(info.ModTime()) > keepFor
		over = over && !safefile.Locked(lock)
		lock.Close()
		if over {
			_ = os.RemoveAll(path)
		}
	}
}
