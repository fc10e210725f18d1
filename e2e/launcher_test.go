package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// launcherAt makes this program the process that launcher starts.
const launcherAt = "POLLUX_E2E_LAUNCHER"

// A launcher starts programs that do not descend from this process: a companion below an agent decides nothing about that one's
// changes, and a benchmark is the agent (SPEC §11.1).
type launcher struct {
	b    *testing.B
	conn net.Conn
	out  *json.Decoder
}

// A launch is what a launcher is asked for: the pipes are FIFOs, "" for none.
type launch struct {
	Path       string
	Args, Env  []string
	Dir        string
	Stdin, Out string
}

// A launched is its answer.
type launched struct {
	PID   int
	Start time.Time // just before
	Error string
}

func newLauncher(b *testing.B) *launcher {
	b.Helper()
	dir, err := os.MkdirTemp("", "pollux-l-") // a socket's path is short
	if err != nil {
		b.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command("setsid", "--fork", os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), launcherAt+"="+ln.Addr().String()), os.Stderr
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	conn, err := ln.Accept()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close(); ln.Close(); os.RemoveAll(dir) })
	return &launcher{b: b, conn: conn, out: json.NewDecoder(conn)}
}

func (l *launcher) start(o launch) launched {
	l.b.Helper()
	var answer launched
	if err := json.NewEncoder(l.conn).Encode(o); err != nil {
		l.b.Fatal(err)
	}
	if err := l.out.Decode(&answer); err != nil || answer.Error != "" {
		l.b.Fatalf("starting %s: %v%s", o.Path, err, answer.Error)
	}
	return answer
}

// launchFor is that process, until the benchmark ends.
func launchFor(address string) {
	conn, err := net.Dial("unix", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	var children []*exec.Cmd
	for {
		var o launch
		if in.Decode(&o) != nil {
			for _, c := range children {
				_ = c.Process.Kill() // what has ended, or been stopped, is not signalled again
			}
			return
		}
		cmd := &exec.Cmd{Path: o.Path, Args: append([]string{o.Path}, o.Args...), Env: o.Env, Dir: o.Dir, Stderr: os.Stderr}
		if o.Stdin != "" {
			cmd.Stdin, _ = os.OpenFile(o.Stdin, os.O_RDWR|syscall.O_NONBLOCK, 0) // Start tells of what is missing
			cmd.Stdout, _ = os.OpenFile(o.Out, os.O_RDWR|syscall.O_NONBLOCK, 0)
		}
		answer := launched{Start: time.Now()}
		if err := cmd.Start(); err != nil {
			answer.Error = err.Error()
		} else {
			answer.PID = cmd.Process.Pid
			children = append(children, cmd)
			go func() { _ = cmd.Wait() }()
		}
		_ = out.Encode(answer)
	}
}
