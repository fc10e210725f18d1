package editor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/ownpipe"
)

// commandEnv is the variable that names the program to start instead of pollux, for plugins with a setting for it.
const commandEnv = "POLLUX_CONFORM_COMMAND"

// PlugFlag is the hidden flag of pollux conform that makes it the stand-in for pollux: see Plug.
const PlugFlag = "editor-plug"

// A process is the editor, from startEditor to end. It has a workspace, and a folder in its PATH where a stand-in is
// called pollux.
//
// Goroutines: one accepts connections, one reads the screen, one waits for the editor; end ends and awaits them.
type process struct {
	cmd   *exec.Cmd
	base  string // private; holds the rest
	dir   string // the workspace
	tty   *os.File
	ln    net.Listener
	conns chan net.Conn
	done  chan struct{} // closed when the editor has ended
	over  bool          // a check has ended it

	mu   sync.Mutex // guards tail
	tail []byte     // of what the editor has written to its terminal
}

func startEditor(o Options) (*process, error) {
	program := o.Program
	base, err := os.MkdirTemp("", "px") // private, and short enough for a socket
	if err == nil {
		base, err = filepath.EvalSymlinks(base)
	}
	if err == nil && program == "" {
		program, err = os.Executable()
	}
	if err != nil {
		return nil, err
	}
	e := &process{base: base, dir: filepath.Join(base, "app"), conns: make(chan net.Conn), done: make(chan struct{})}
	bin, sock := filepath.Join(base, "bin"), filepath.Join(base, "s")
	err = errors.Join(os.Mkdir(e.dir, 0o700), os.Mkdir(bin, 0o700))
	if err == nil {
		e.ln, err = ownpipe.ListenAt(sock)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(base))
	}
	stand, err := standIn(bin, program, ownpipe.Name(sock))
	if err == nil {
		err = e.run(o.Command, bin, stand)
	}
	if err != nil {
		return nil, errors.Join(err, e.ln.Close(), os.RemoveAll(base))
	}
	go e.accept()
	return e, nil
}

// run starts the editor's command in the workspace.
func (e *process) run(command []string, bin, stand string) (err error) {
	e.cmd = exec.Command(command[0], command[1:]...) //nolint:noctx // end ends it
	if filepath.Base(command[0]) != command[0] {     // a relative path refers to the user's folder, not the workspace
		if e.cmd.Path, err = filepath.Abs(command[0]); err != nil {
			return err
		}
	}
	e.cmd.Dir = e.dir
	e.cmd.Env = append(os.Environ(), "TERM=xterm-256color", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), commandEnv+"="+stand)
	if e.tty, err = inTerminal(e.cmd); err != nil {
		return fmt.Errorf("the editor does not start: %w", err)
	}
	if e.tty != nil {
		go e.read()
	}
	go func() {
		_ = e.cmd.Wait()
		close(e.done)
	}()
	return nil
}

func (e *process) accept() {
	for {
		conn, err := e.ln.Accept()
		if err != nil {
			return
		}
		select {
		case e.conns <- conn:
		case <-e.done:
			conn.Close()
		case <-time.After(time.Minute): // nobody waits for another pollux
			conn.Close()
		}
	}
}

// read empties the screen: an editor whose terminal is full stands still.
func (e *process) read() {
	buf := make([]byte, 32<<10)
	for {
		n, err := e.tty.Read(buf)
		e.mu.Lock()
		e.tail = append(e.tail, buf[:n]...)
		e.tail = e.tail[max(0, len(e.tail)-2000):]
		e.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// screen returns the end of what the editor has written.
func (e *process) screen() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return string(e.tail)
}

// keys types into the editor's terminal.
func (e *process) keys(text string) error {
	if e.tty == nil {
		return skipError("the editor has no terminal to type into on this system")
	}
	_, err := io.WriteString(e.tty, text)
	return err
}

// hangUp asks the editor to end, as the end of its terminal does.
func (e *process) hangUp() { _ = hangUp(e.cmd.Process) }

func (e *process) end() {
	e.hangUp()
	select {
	case <-e.done:
	case <-time.After(5 * time.Second):
		_ = e.cmd.Process.Kill()
		<-e.done
	}
	e.ln.Close()
	if e.tty != nil {
		e.tty.Close()
	}
	_ = os.RemoveAll(e.base)
}

// Plug is the stand-in for pollux that a plugin starts: it connects the plugin's streams with the run that listens at
// address, and returns the exit code. It ends when either side does.
func Plug(ctx context.Context, address string, args []string, in io.Reader, out, errs io.Writer) int {
	conn, err := ownpipe.Dial(ctx, address)
	if err == nil {
		_, err = fmt.Fprintf(conn, "%s\n", list(args))
	}
	if err != nil {
		fmt.Fprintf(errs, "pollux conform: %v\n", err)
		return 1
	}
	defer conn.Close()
	ended := make(chan int, 2)
	go func() {
		_, _ = io.Copy(conn, in)
		ended <- 0
	}()
	go func() {
		_, _ = io.Copy(out, conn)
		ended <- 1
	}()
	return <-ended
}

func list(args []string) string {
	if args == nil {
		args = []string{}
	}
	data, _ := json.Marshal(args)
	return string(data)
}
