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

// ErrRefused is what a pipe gives that nobody listens on.
const ErrRefused = windows.ERROR_FILE_NOT_FOUND

// A pipeListener is a named pipe with the file that shows it to those who look
// for companions: pipes of all users share one flat name space, which says
// nothing of whose they are, but the folder of the file is the user's alone.
type pipeListener struct {
	net.Listener
	mark string // path of the file
}

// Scheme says what Name names.
const Scheme = "pipe"

// Name is what another program dials to reach the pipe at path. Its random part is that of path.
func Name(path string) string {
	base := filepath.Base(path)
	return `\\.\pipe\pollux-` + strings.TrimSuffix(base, filepath.Ext(base))
}

// ListenAt opens a named pipe for this user alone and marks it with a file at
// path. It fails when somebody else has the pipe's name already.
func ListenAt(path string) (net.Listener, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, err
	}
	ln, err := winio.ListenPipe(Name(path), &winio.PipeConfig{
		// Protected, so that nothing is inherited; generic all to the user, nothing to anybody else.
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

// Addr is the mark's path, by which a client dials.
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: l.mark, Net: "pipe"} }

// Dial joins the pipe of a Name, and refuses one that a process of another
// user has opened under that name.
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

// Peer is the process at the other end; the pipe's access list has let in nobody but this user.
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
