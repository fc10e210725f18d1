package inside

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"github.com/pollux-companion/pollux/internal/sandbox/kernel"
)

const (
	// Name is argv[0] of the first process inside.
	Name = "pollux-sandbox"
	// controlFD is the process's end of the connection to the parent.
	controlFD = 3
	// WaitVariable is set for a process that may wait long for its setup.
	WaitVariable = "POLLUX_SANDBOX_WAITS"

	// exitSetup is the exit code when the sandbox could not be built.
	exitSetup = 125
)

// init takes over in the process that Run starts inside the sandbox's namespaces, and never returns there. It does
// not wait for main: initialising every package of the program takes longer than building the sandbox. So the
// packages used here must be initialised early; a test checks the imports.
func init() {
	if len(os.Args) != 1 || os.Args[0] != Name {
		return
	}
	// Capabilities and Landlock belong to a thread. All steps run on this one, and it starts the command.
	runtime.LockOSThread()
	os.Exit(stage())
}

// A stager is the first process inside: it builds the sandbox around itself, starts the command, waits for it, and
// ends every other process of the sandbox.
//
// Goroutines: main's, on its own thread; and watch's, which ends the process when the parent is gone.
type stager struct {
	Setup
	rootFD, procFD int
	landlock       int       // the Landlock version, 0 for none
	listeners      []int     // in the order of the setup
	clean          sync.Once // runs the work of parentGone once
}

// stage reads the setup, runs all steps and the command, and returns the exit code.
func stage() int {
	var s stager
	// Descriptors that an editor or a shell left open in pollux must not reach the command. They are marked
	// close-on-exec; closing them now could hit descriptors of the Go runtime.
	if err := kernel.CloseRange(3, ^uint(0), kernel.CloseRangeCloexec); err != nil {
		return fail("limits", err)
	}
	if os.Getenv(WaitVariable) != "" {
		s.warmUp()
	}
	if err := tell(Report{Hello: true}); err != nil {
		return exitSetup
	}
	if err := takeStdio(); err != nil {
		return fail("start", err)
	}
	if err := readMessage(descriptor(controlFD), maxSetup, func(w *wire) { w.setup(&s.Setup) }); err != nil {
		return fail("start", err)
	}
	if s.Version != SetupVersion {
		return fail("start", errors.New("two versions of pollux; start it anew"))
	}
	code := s.run()
	if code != 0 {
		s.parentGone() // failed: clean up as if the parent were gone
	}
	return code
}

// warmUp does what is slow the first time in a process and the same for every policy, so that its code is loaded
// before the setup arrives.
func (s *stager) warmUp() {
	if fs, err := kernel.Fsopen("tmpfs", kernel.FsopenCloexec); err == nil {
		syscall.Close(fs)
	}
	_ = landlockHandled(kernel.LandlockVersion(), false)
	spareThreads(4)
}

func (s *stager) run() int {
	for _, step := range s.steps() {
		err := step.do()
		if err == nil && step.phase == s.Fail {
			err = errors.New("it was made to fail")
		}
		if err != nil {
			return fail(step.phase, err)
		}
	}
	return s.runCommand()
}

type step struct {
	phase string
	do    func() error
}

// steps returns the steps in the only order that works: sysctls need a writable /proc, mounts need privileges,
// Landlock forbids mounts, and the filter forbids most of the calls that build a sandbox.
func (s *stager) steps() []step {
	if s.Reduced {
		return []step{
			{"system", supervise}, {"limits", s.limit}, {"landlock", s.restrict}, {"seccomp", s.seccomp}, {"check", s.check},
		}
	}
	return []step{
		{"mounts", s.buildRoot},
		{"network", s.openNetwork},
		{"network", s.ready},
		{"system", s.system},
		{"limits", s.limit},
		{"privileges", s.dropPrivileges},
		{"landlock", s.restrict},
		{"seccomp", s.seccomp},
		{"check", s.check},
	}
}

// fail reports an error to the parent and returns the exit code.
func fail(phase string, err error) int {
	r := Report{Phase: phase, Cause: err.Error()}
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		r.Errno = int(errno)
	}
	_ = tell(r) // at worst the parent is gone
	return exitSetup
}

// ready sends the listeners and the sandbox's /proc to the parent, before any command runs.
func (s *stager) ready() error {
	if err := tell(Report{Ready: true}); err != nil {
		return err
	}
	fds := append([]int{s.procFD}, s.listeners...)
	if err := syscall.Sendmsg(controlFD, []byte{0}, syscall.UnixRights(fds...), nil, 0); err != nil {
		return err
	}
	for _, fd := range s.listeners {
		syscall.Close(fd)
	}
	return nil
}

// runCommand starts the command, waits for it and reports its end. When this process exits, the kernel kills every
// process left in the namespace.
func (s *stager) runCommand() int {
	if s.Path == "" {
		return fail(PhaseCommand, errors.New("no program"))
	}
	spareThreads(4)
	pid, err := syscall.ForkExec(s.Path, s.Args, &syscall.ProcAttr{Dir: s.Dir, Env: s.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return fail(PhaseCommand, err)
	}
	if err := tell(Report{Started: true}); err != nil {
		return exitSetup
	}
	go s.watch()
	releaseStdio()
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		ended, err := ignoringEINTR(func() (int, error) { return syscall.Wait4(-1, &status, 0, &usage) })
		if err != nil {
			return fail(PhaseCommand, err)
		}
		if ended != pid {
			continue // it was an orphan
		}
		if s.Reduced {
			freely(killDescendants)
		}
		if err := tell(Report{Ended: true, Status: int(status), Memory: usage.Maxrss << 10, CPU: usage.Utime.Nano() + usage.Stime.Nano()}); err != nil {
			return exitSetup
		}
		return 0
	}
}

// spareThreads makes the runtime start n threads in advance. Once the command uses up its processes, the kernel
// refuses this process new threads too, and that would crash it.
func spareThreads(n int) {
	var arrived sync.WaitGroup
	arrived.Add(n)
	for range n {
		go func() {
			runtime.LockOSThread() // it blocks its thread, so each goroutine needs another one
			defer runtime.UnlockOSThread()
			arrived.Done()
			arrived.Wait()
		}()
	}
	arrived.Wait()
}

// watch ends this process, and so the sandbox, when the parent is gone for any reason.
func (s *stager) watch() {
	_, _ = descriptor(controlFD).Read(make([]byte, 1)) // the parent sends nothing; the read ends when it is gone
	s.parentGone()
	os.Exit(exitSetup)
}

// parentGone does the cleanup that is otherwise the parent's.
func (s *stager) parentGone() {
	if s.Reduced {
		s.clean.Do(func() {
			freely(func() {
				killDescendants()
				_ = os.RemoveAll(s.Private) // nobody is left to tell
			})
		})
	}
}

// releaseStdio closes this process's copies of the command's streams, so that they end when the command does.
func releaseStdio() {
	if null, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0); err == nil {
		for fd := range 3 {
			_ = syscall.Dup3(null, fd, 0)
		}
	}
}

// takeStdio receives the command's streams and makes them this process's own.
func takeStdio() error {
	first, oob := make([]byte, 1), make([]byte, syscall.CmsgSpace(3*4))
	got, err := ignoringEINTR(func() ([2]int, error) {
		n, oobn, _, _, err := syscall.Recvmsg(controlFD, first, oob, syscall.MSG_CMSG_CLOEXEC)
		return [2]int{n, oobn}, err
	})
	if err != nil {
		return err
	}
	if got[0] == 0 {
		return syscall.EPIPE // the parent is gone or has no use for this process
	}
	messages, err := syscall.ParseSocketControlMessage(oob[:got[1]])
	if err != nil || len(messages) != 1 {
		return errors.Join(errors.New("the streams did not arrive"), err)
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 3 {
		return errors.Join(errors.New(strconv.Itoa(len(fds))+" streams arrived"), err)
	}
	for to, fd := range fds {
		if err := syscall.Dup3(fd, to, 0); err != nil {
			return err
		}
		syscall.Close(fd)
	}
	return nil
}
