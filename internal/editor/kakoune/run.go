package kakoune

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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

// Run serves one Kakoune until it ends. serve is pollux's server for an editor, over a pair of pipes.
func Run(ctx context.Context, s Start, serve func(in io.Reader, out io.Writer) error) error {
	dirs := filepath.Join(s.State, "kakoune")
	dir := filepath.Join(dirs, strconv.Itoa(s.PID))
	if err := errors.Join(safefile.PrivateDir(dirs), safefile.PrivateDir(dir)); err != nil {
		return err
	}
	sweep(dirs)
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
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- serve(in, out)
		out.Close()
	}()
	err = join(ctx, rpc.NewQueue(rpc.NewChannel(fromServer, toServer, nil)), ownpipe.Guard(ln, s.Log), options{
		Start: s, Dir: dir,
		Send:      func(script string) error { return send(ctx, s, script) },
		MayDecide: func(conn net.Conn) error { return mayDecide(conn, s.PID) },
	})
	toServer.Close()
	return errors.Join(err, <-served)
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

// sweep removes what Kakounes have left that have ended.
func sweep(dirs string) {
	entries, _ := os.ReadDir(dirs)
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && !proc.Alive(pid) {
			_ = os.RemoveAll(filepath.Join(dirs, e.Name()))
		}
	}
}
