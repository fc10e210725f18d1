package ownpipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
)

// ErrRefused is the error of dialling a pipe on which nobody listens.
const ErrRefused = windows.ERROR_FILE_NOT_FOUND

// A pipeListener is a named pipe, with a file that marks it for programs that look for
// companions. The pipes of all users share one flat name space, which does not say whose
// they are; the folder of the file is private to the user.
type pipeListener struct {
	net.Listener
	mark string // path of the file
}

// Scheme says what kind of address Name returns.
const Scheme = "pipe"

// Name returns what another program dials to reach the pipe at path. It has the random part of path.
func Name(path string) string {
	base := filepath.Base(path)
	return `\\.\pipe\pollux-` + strings.TrimSuffix(base, filepath.Ext(base))
}

// ListenAt opens a named pipe for this user alone, and marks it with a file at path. It
// fails when the name is taken.
func ListenAt(path string) (net.Listener, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, err
	}
	ln, err := winio.ListenPipe(Name(path), &winio.PipeConfig{
		// P (protected): nothing is inherited. Everything (GA) to this user, nothing to anybody else.
		SecurityDescriptor: "D:P(A;;GA;;;" + user.User.Sid.String() + ")",
	})
	if err != nil {
		return nil, err
	}
	mark, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		ln.Close()
		return nil, err
	}
	return &pipeListener{ln, path}, mark.Close()
}

// Close ends the pipe and removes its mark.
func (l *pipeListener) Close() error {
	_ = os.Remove(l.mark)
	return l.Listener.Close()
}

// Addr returns the mark's path, which a client dials.
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: l.mark, Net: "pipe"} }

// Dial connects to the pipe of a Name. It fails when a process of another user has
// opened the pipe.
func Dial(ctx context.Context, name string) (net.Conn, error) {
	conn, err := winio.DialPipeContext(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := checkServer(conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func checkServer(conn net.Conn) error {
	pid, err := peerOf(conn, windows.GetNamedPipeServerProcessId)
	if err != nil {
		return err
	}
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		return fmt.Errorf("process %d serves the pipe and is not this user's: %w", pid, err)
	}
	defer windows.CloseHandle(process)
	var token windows.Token
	if err := windows.OpenProcessToken(process, windows.TOKEN_QUERY, &token); err != nil {
		return fmt.Errorf("process %d serves the pipe and is not this user's: %w", pid, err)
	}
	defer token.Close()
	theirs, err := token.GetTokenUser()
	if err != nil {
		return err
	}
	ours, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return err
	}
	if !theirs.User.Sid.Equals(ours.User.Sid) {
		return fmt.Errorf("process %d of another user serves the pipe", pid)
	}
	return nil
}

// Peer returns the process at the other end. The pipe's access list lets in nobody but this user.
func Peer(conn net.Conn) (pid int, err error) {
	id, err := peerOf(conn, windows.GetNamedPipeClientProcessId)
	return int(id), err
}

func peerOf(conn net.Conn, ask func(windows.Handle, *uint32) error) (pid uint32, err error) {
	pipe, ok := conn.(interface{ Fd() uintptr })
	if !ok {
		return 0, errors.New("the pipe has no handle to ask")
	}
	err = ask(windows.Handle(pipe.Fd()), &pid)
	return pid, err
}

// ended is false: the system tells it by the process's number alone.
func ended(net.Conn) bool { return false }
