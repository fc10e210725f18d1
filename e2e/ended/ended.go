//go:build unix

// Package ended makes connections to unix sockets by processes that end before them: the process that connects is not always the one
// that asks.
package ended

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/pollux-companion/pollux/e2e/child"
	"github.com/pollux-companion/pollux/internal/proc"
)

// connectTo is the variable by which a test's program is told to connect its descriptor 3 to a socket, and to stay until its input ends.
const connectTo = "POLLUX_TEST_CONNECT"

// Main is the program that Connect starts. A test's TestMain calls it first.
func Main() {
	path := os.Getenv(connectTo)
	if path == "" {
		return
	}
	if err := syscall.Connect(3, &syscall.SockaddrUnix{Name: path}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("connected")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// Connect has another process connect to a socket. The connection is this process's as well; end ends the other process, and returns when
// its number is free. The test's TestMain calls Main.
func Connect(t *testing.T, path string) (conn net.Conn, maker proc.Info, end func()) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close() // FileConn has one of its own
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), connectTo+"="+path), []*os.File{f}
	in, out := child.Start(t, cmd)
	end = func() {
		in.Close()
		_ = cmd.Wait()
	}
	t.Cleanup(end)
	if said, err := bufio.NewReader(out).ReadString('\n'); said != "connected\n" {
		t.Fatalf("%q, %v", said, err)
	}
	conn, err = net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	maker, ok := proc.Lookup(cmd.Process.Pid)
	if !ok {
		t.Fatalf("no process %d", cmd.Process.Pid)
	}
	return conn, maker, end
}

// Reuse starts a process that has the number of an ended one, until the test ends. It returns false where the system does not let a test
// choose (Linux lets root).
func Reuse(t *testing.T, old proc.Info) bool {
	t.Helper()
	for range 1000 {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(old.PID-1)), 0o600); err != nil {
			t.Log("no process is given the number of another: ", err)
			return false
		}
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		end := func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		// Nobody but a test gets a number again within the hundredth of a second that a start is told by.
		if p, _ := proc.Lookup(cmd.Process.Pid); p.PID == old.PID && p.Start != old.Start {
			t.Cleanup(end)
			return true
		}
		end()
		if p, ok := proc.Lookup(old.PID); ok && p.Start != old.Start {
			return true // another process, or a thread of this one, was quicker and keeps it
		}
	}
	t.Fatalf("no process gets the number %d", old.PID)
	return false
}
