package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/sandbox/inside"
)

// setupTimeout bounds how long building a sandbox may take. It usually takes milliseconds, and seconds only on an
// overloaded machine.
const setupTimeout = 30 * time.Second

// refillDelay is how long a command runs before a Pool starts its next process. Most commands have ended by then;
// starting earlier would compete with them for the processor and kernel locks.
const refillDelay = 100 * time.Millisecond

// A hearing is what the parent learnt from the stage.
type hearing struct {
	failed error  // the sandbox was not built, or the command not started
	phase  string // the last known phase
	began  bool   // the command was started
	ended  bool
	status uint32
	memory int64
	cpu    int64 // nanoseconds
	closer []func()
}

func (h *hearing) close() {
	for _, f := range h.closer {
		f()
	}
}

// listen sends the setup and follows the stage to its end. The stage reports when it is ready, when the command
// has started and when it has ended. So when the stage dies, the last report says how far it came.
func (r *run) listen(ctx context.Context, st *streams) (h hearing) {
	conn := r.stage.conn
	slow := time.AfterFunc(setupTimeout, func() {
		r.kill(&SetupError{Phase: "start", Cause: fmt.Sprintf("it took more than %v", setupTimeout), Fix: "try again when the machine has less to do"})
	})
	h.closer = append(h.closer, func() { slow.Stop() })
	err := r.stage.give(r.setup, st.stdin, st.stdout, st.stderr)
	st.closeTheirs()
	st.begin()
	if err != nil {
		h.phase = "start" // the stage is dead; its exit status says more
	}
	for {
		var rep inside.Report
		if err := inside.ReadReport(conn, &rep); err != nil {
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				h.failed = &SetupError{Phase: "start", Cause: err.Error(), Fix: remedy("start", 0)}
				r.kill(h.failed)
			}
			return h
		}
		switch {
		case rep.Phase != "":
			h.failed = stageError(rep, r.setup.Path)
		case rep.Ready:
			h.phase = "system"
			if err := r.ready(ctx, conn, &h); err != nil {
				h.failed = &SetupError{Phase: "network", Cause: err.Error(), Fix: remedy("network", 0)}
				r.kill(h.failed)
				return h
			}
		case rep.Started:
			h.began = true
			next := time.AfterFunc(refillDelay, r.stage.begun)
			h.closer = append(h.closer, func() { next.Stop() })
			slow.Stop()
			begun, timer := time.Now(), r.setTimer()
			h.closer = append(h.closer, func() { timer.Stop(); r.result.Elapsed = time.Since(begun) })
		case rep.Ended:
			h.ended, h.status, h.memory, h.cpu = true, uint32(rep.Status), rep.Memory, rep.CPU
		}
	}
}

// ready receives the descriptors that follow the report Ready: the sandbox's /proc and its listeners.
func (r *run) ready(ctx context.Context, conn *net.UnixConn, h *hearing) error {
	oob := make([]byte, unix.CmsgSpace(4*(maxPorts+5)))
	_, n, flags, _, err := conn.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 || flags&unix.MSG_CTRUNC != 0 {
		return fmt.Errorf("the listeners did not arrive (%w)", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	files := make([]*os.File, len(fds))
	for i, fd := range fds {
		unix.CloseOnExec(fd)
		files[i] = os.NewFile(uintptr(fd), "listener")
	}
	h.closer = append(h.closer, r.watchMemory(ctx, files[0]))
	if r.setup.Net == nil {
		return nil
	}
	g, err := r.openGate(ctx, files[1:])
	if err != nil {
		return err
	}
	h.closer = append(h.closer, func() { r.result.Denials = g.Close() })
	return nil
}

// stageError is the error for a failed step inside.
func stageError(rep inside.Report, path string) error {
	e := &SetupError{Phase: rep.Phase, Cause: rep.Cause}
	if rep.Phase == inside.PhaseCommand {
		e.Cause = fmt.Sprintf("%q: %s", path, rep.Cause)
	}
	e.Fix = remedy(rep.Phase, syscall.Errno(rep.Errno))
	return e
}
