package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/sandbox/cgroup"
	"github.com/pollux-companion/pollux/internal/sandbox/inside"
)

// A stageProcess is the second start of this program: a process that waits for a setup, in namespaces of its own or,
// for the reduced sandbox, without any. It serves one run.
type stageProcess struct {
	cmd     *exec.Cmd
	conn    *net.UnixConn // to the process; nobody else has this end
	group   *cgroup.Group // its control group, nil for none
	reduced bool
	mounts  [32]byte // for a Pool: what was mounted when it was started
	begun   func()   // for a Pool: allows the next one to be started
}

// startStage starts a stage process, in a control group of its own below parent unless that is "". It dies with this
// thread and when conn is closed. more is added to its environment.
func startStage(reduced bool, parent string, more ...string) (*stageProcess, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	st := &stageProcess{cmd: stageCommand(reduced, theirs), conn: ours, reduced: reduced, begun: func() {}}
	st.cmd.Env = append(st.cmd.Env, more...)
	if parent == "" {
		err = st.cmd.Start()
	} else if st.group, err = cgroup.Make(parent); err == nil {
		err = st.group.Start(st.cmd)
	}
	if err != nil {
		st.group.Remove()
		ours.Close()
		return nil, err
	}
	return st, nil
}

// stageCommand prepares the second start of this program. The command's streams are sent later.
func stageCommand(reduced bool, control *os.File) *exec.Cmd {
	// No context: the process may wait for a run that is not known yet. The method end ends it.
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe")
	cmd.Args = []string{inside.Name}
	// If TZ is not set, a package that is initialised early reads /etc/localtime. The command has an environment of its own.
	cmd.Env = []string{"GOMAXPROCS=2", "GOGC=off", "GOTRACEBACK=none", "TZ=", "GORACE=" + os.Getenv("GORACE")}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{control}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if reduced {
		return cmd // no death signal: it must clean up after pollux dies
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET |
		syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	// Only this user and this group exist inside, under their own numbers.
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	// A user who is not mapped to 0 loses all capabilities at execve, except ambient ones.
	cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE, unix.CAP_DAC_OVERRIDE}
	return cmd
}

// stageFor returns the process for a run, a waiting one or a new one. If the control group cannot be used, the run
// goes without one: pollux watches memory anyway.
func (s *Sandbox) stageFor(reduced bool, l Limits) (*stageProcess, error) {
	if s.o.Pool != nil && !reduced {
		if st := s.o.Pool.take(); st != nil {
			err := st.group.Limit(l.Memory, l.Processes)
			if err == nil {
				return st, nil
			}
			s.o.Log.Warn("no control group for the sandbox", "err", err)
			st.discard()
			st.begun()
		}
	}
	find := cgroup.Parent
	if s.groups != nil {
		find = s.groups
	}
	if parent := find(); parent != "" {
		st, err := startStage(reduced, parent)
		if err == nil {
			if err = st.group.Limit(l.Memory, l.Processes); err == nil {
				return st, nil
			}
			st.discard()
		}
		s.o.Log.Warn("no control group for the sandbox", "err", err)
	}
	return startStage(reduced, "")
}

// end ends the process and with it all others of its sandbox. The reduced one gets time to kill its children first.
func (st *stageProcess) end() {
	if st.reduced {
		_ = st.conn.CloseWrite() // it may be gone already
		time.AfterFunc(5*time.Second, func() { _ = st.cmd.Process.Kill() })
		return
	}
	_ = st.cmd.Process.Kill() // it may be gone already
}

// discard ends an unused process and waits for it.
func (st *stageProcess) discard() {
	st.end()
	_ = st.cmd.Wait() // it was killed, so Wait returns an error
	st.conn.Close()
	st.group.Remove()
}

// awaitHello returns when the process waits for its setup.
func (st *stageProcess) awaitHello() error {
	if err := st.conn.SetReadDeadline(time.Now().Add(setupTimeout)); err != nil {
		return err
	}
	var rep inside.Report
	if err := inside.ReadReport(st.conn, &rep); err != nil {
		return err
	}
	if !rep.Hello {
		return fmt.Errorf("the first process inside says %q: %s", rep.Phase, rep.Cause)
	}
	return st.conn.SetReadDeadline(time.Time{})
}

// alive says whether the process still waits: its end of the connection is open.
func (st *stageProcess) alive() bool {
	raw, err := st.conn.SyscallConn()
	if err != nil {
		return false
	}
	waits := false
	err = raw.Control(func(fd uintptr) {
		_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		waits = errors.Is(err, unix.EAGAIN)
	})
	return err == nil && waits
}

// socketPair makes the connection to the stage.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

// give sends the process the command's streams and the setup.
func (st *stageProcess) give(set *inside.Setup, stdio ...*os.File) error {
	data, err := inside.EncodeSetup(set)
	if err != nil {
		return err
	}
	var fds []int
	for _, f := range stdio {
		fds = append(fds, int(f.Fd()))
	}
	n, _, err := st.conn.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil)
	if err != nil || n != 1 {
		return errors.Join(err, unix.EPIPE)
	}
	_, err = st.conn.Write(data)
	return err
}
