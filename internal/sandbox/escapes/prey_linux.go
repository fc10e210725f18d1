package escapes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// tokenVariable is set in the environment outside and must not be visible inside.
const tokenVariable = "POLLUX_ESCAPES_TOKEN"

// A Prey is what a host has and a sandbox must protect: files, a process, services on loopback, a descriptor, a token
// in the environment. All of it is made for the purpose and harmless.
//
// Goroutines: one for each service and each of its connections; Close ends them.
type Prey struct {
	Home      string
	Workspace string
	// ReadOnly is a folder that the command may read at every level.
	ReadOnly string
	// Env tells the probes where things are.
	Env []string

	closers []func()
}

// NewFiles makes a Prey with files only, for plays, in an empty folder.
func NewFiles(root string) (*Prey, error) {
	p := &Prey{Home: filepath.Join(root, "home"), Workspace: filepath.Join(root, "home", "work"), ReadOnly: filepath.Join(root, "home", "extension")}
	return p, p.files()
}

// NewPrey makes a Prey in an empty folder. The folder's path must be short enough for sockets. The environment of
// this process gets a token and keeps it.
func NewPrey(root string) (_ *Prey, err error) {
	p, err := NewFiles(root)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	if err := os.Setenv(tokenVariable, "token"); err != nil {
		return nil, err
	}
	secret := filepath.Join(p.Home, ".ssh", "id")
	// Stands for a descriptor that an editor left open in pollux.
	leaked, err := unix.Open(secret, unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, func() { unix.Close(leaked) })
	shm, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o600|unix.IPC_CREAT)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, func() { _, _ = unix.SysvShmCtl(shm, unix.IPC_RMID, nil) })
	fifo := filepath.Join(root, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		return nil, err
	}
	reader, err := unix.Open(fifo, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) // a program of the user that listens
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, func() { unix.Close(reader) })
	p.Env = []string{
		"GORACE=atexit_sleep_ms=0", "PROBE_SECRET=" + secret, "PROBE_HOME=" + p.Home, "PROBE_WORKSPACE=" + p.Workspace, "PROBE_READONLY=" + p.ReadOnly,
		fmt.Sprintf("PROBE_PID=%d", os.Getpid()), fmt.Sprintf("PROBE_SHM=%d", shm), "PROBE_SOCKET=" + filepath.Join(root, "s"), "PROBE_FIFO=" + fifo, "PROBE_DATAGRAMS=" + filepath.Join(root, "d"),
	}
	datagrams, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(root, "d"), Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, func() { datagrams.Close() })
	return p, p.serve(filepath.Join(root, "s"))
}

// files makes the prey's files.
func (p *Prey) files() error {
	for _, dir := range []string{".ssh", "work/.git", "work/bin", "extension"} {
		if err := os.MkdirAll(filepath.Join(p.Home, dir), 0o700); err != nil {
			return err
		}
	}
	secret := filepath.Join(p.Home, ".ssh", "id")
	// A fake interpreter that leaves a file if anybody runs it outside.
	trap := "#!/bin/sh\n: >'" + filepath.Join(p.Home, "made-outside") + "'\necho '[\"/usr/bin/python3\",\"/usr\",\"/usr\"]'\n"
	for path, text := range map[string]string{
		secret: "secret", filepath.Join(p.Workspace, "file"): "secret", filepath.Join(p.ReadOnly, "tool"): "secret",
		filepath.Join(p.Workspace, "bin", "python3"): trap, filepath.Join(p.Workspace, "bin", "node"): trap, filepath.Join(p.Workspace, "bin", "git"): trap,
		filepath.Join(p.Workspace, "bin", "script"): "#!" + filepath.Join(p.Workspace, "bin", "python3") + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		if filepath.Base(filepath.Dir(path)) == "bin" {
			if err := os.Chmod(path, 0o700); err != nil {
				return err
			}
		}
	}
	return os.Symlink(secret, filepath.Join(p.Workspace, "link"))
}

// serve starts an echo service on loopback and on a Unix socket.
func (p *Prey) serve(socket string) error {
	for name, where := range map[string][2]string{"TCP": {"tcp", "127.0.0.1:0"}, "TCP6": {"tcp6", "[::1]:0"}, "UNIX": {"unix", fmt.Sprintf("@pollux-%d-%s", os.Getpid(), filepath.Base(filepath.Dir(socket)))}, "": {"unix", socket}} {
		l, err := net.Listen(where[0], where[1])
		if err != nil && name == "TCP6" {
			continue // the machine lacks this address family
		}
		if err != nil {
			return err
		}
		p.closers = append(p.closers, func() { l.Close() })
		p.Env = append(p.Env, "PROBE_"+name+"="+l.Addr().String())
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() { defer conn.Close(); _, _ = io.Copy(conn, conn) }()
			}
		}()
	}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p.closers = append(p.closers, func() { packets.Close() })
	go func() {
		buf := make([]byte, 100)
		for {
			n, from, err := packets.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = packets.WriteTo(buf[:n], from)
		}
	}()
	p.Env = append(p.Env, "PROBE_UDP="+packets.LocalAddr().String())
	return nil
}

// Close ends the services. The files stay; the folder belongs to the caller.
func (p *Prey) Close() {
	for _, f := range slices.Backward(p.closers) {
		f()
	}
	p.closers = nil
}

// Works says whether a probe must succeed on this machine without a sandbox.
func (p *Prey) Works(e *Escape) bool {
	if e.Play != nil || e.Outside == forNobody || e.Outside == forRoot && os.Getuid() != 0 {
		return false
	}
	six := slices.ContainsFunc(p.Env, func(v string) bool { return strings.HasPrefix(v, "PROBE_TCP6=") })
	return six || e.Name != "the same by IPv6" && e.Name != "raw packets of version 6"
}

// Outside tries a probe without a sandbox and returns its exit code, or -1 if ctx ended it.
func (p *Prey) Outside(ctx context.Context, e *Escape) (int, error) {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", e.Command("probe")[1:]...)
	cmd.Args[0] = "probe"
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = nil
	}
	return cmd.ProcessState.ExitCode(), err
}
