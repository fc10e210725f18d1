package sandbox

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	stageName = "pollux-sandbox" // argv[0] of the stage
	controlFD = 3                // its end of the connection to the parent
	// waitVariable is set for a stage that may have to wait for its setup.
	waitVariable = "POLLUX_SANDBOX_WAITS"

	// exitSetup is the stage's exit code when the sandbox could not be set up.
	exitSetup = 125
)

// Reexec is the first call of every main that uses this package. In the
// process that Run starts inside the sandbox's namespaces it does not return;
// anywhere else it does nothing.
func Reexec() {
	if len(os.Args) != 1 || os.Args[0] != stageName {
		return
	}
	// Privileges belong to threads. All of this happens on one, and the
	// command is started from it.
	runtime.LockOSThread()
	os.Exit(stage())
}

// A stager is the first process inside: it builds the sandbox around itself,
// starts the command, waits for it, and takes every other process with it.
//
// Goroutines: main's, on its own thread; and watch's, which ends the process
// when the parent is gone.
type stager struct {
	setup
	rootFD, procFD int
	landlock       int       // the version of its interface, 0 for none
	listeners      []int     // in the order of the setup
	clean          sync.Once // parentGone
}

// stage reads the setup, runs all steps and the command, and returns the exit code.
func stage() int {
	var s stager
	// Whatever an editor or a shell left open in pollux must not reach the
	// command. Closed at once, the numbers could be the runtime's own.
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fail("limits", err)
	}
	if os.Getenv(waitVariable) != "" {
		s.warmUp()
	}
	if err := writeMessage(controlFD, report{Hello: true}); err != nil {
		return exitSetup
	}
	first, err := takeStdio()
	if err != nil {
		return fail("start", err)
	}
	if err := readMessage(controlFD, first, &s.setup); err != nil {
		return fail("start", err)
	}
	if s.Version != setupVersion {
		return fail("start", errors.New("two versions of pollux; start it anew"))
	}
	code := s.run()
	if code != 0 {
		s.parentGone() // or it is about to do the same
	}
	return code
}

// warmUp does what is slow the first time in a process, and the same for every
// policy: the code is read in, the tables of types are made.
func (s *stager) warmUp() {
	sample := setup{Mounts: []mount{{Show: showBind, Target: "/x", Files: []CopyFile{{Name: "x", Data: []byte("x")}}}}, Net: &netSetup{Ports: []int{1}}, Args: []string{"x"}}
	if data, err := json.Marshal(&sample); err == nil {
		_ = json.Unmarshal(data, new(setup)) // made a moment ago
	}
	_, _ = assemble(rules(true, false)) // done again, and checked, when it counts
	if fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC); err == nil {
		unix.Close(fs)
	}
	_ = landlockHandled(landlockVersion(), false)
	_ = kernelAtLeast(6, 14)
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

// steps is the way down, in the only order that works: sysctls need a
// writable /proc, mounts need privileges, Landlock forbids mounts, and the
// filter forbids most of it.
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

// fail tells the parent and ends.
func fail(phase string, err error) int {
	r := report{Phase: phase, Cause: err.Error()}
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		r.Errno = int(errno)
	}
	_ = writeMessage(controlFD, r) // nobody is left to hear, at worst
	return exitSetup
}

// ready hands the listeners and the sandbox's /proc to the parent. Later
// nothing is accepted from here: then a command might speak.
func (s *stager) ready() error {
	if err := writeMessage(controlFD, report{Ready: true}); err != nil {
		return err
	}
	fds := append([]int{s.procFD}, s.listeners...)
	if err := unix.Sendmsg(controlFD, []byte{0}, unix.UnixRights(fds...), nil, 0); err != nil {
		return err
	}
	for _, fd := range s.listeners {
		unix.Close(fd)
	}
	return nil
}

// runCommand starts the command, waits for its end and reports it. The kernel
// ends what it left behind, when this process ends.
func (s *stager) runCommand() int {
	if s.Path == "" {
		return fail(phaseCommand, errors.New("no program"))
	}
	spareThreads(4)
	pid, err := syscall.ForkExec(s.Path, s.Args, &syscall.ProcAttr{Dir: s.Dir, Env: s.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return fail(phaseCommand, err)
	}
	if err := writeMessage(controlFD, report{Started: true}); err != nil {
		return exitSetup
	}
	go s.watch()
	releaseStdio()
	for {
		var status unix.WaitStatus
		var usage unix.Rusage
		ended, err := ignoringEINTR(func() (int, error) { return unix.Wait4(-1, &status, 0, &usage) })
		if err != nil {
			return fail(phaseCommand, err)
		}
		if ended != pid {
			continue // an orphan, which became ours
		}
		if s.Reduced {
			freely(killDescendants)
		}
		if err := writeMessage(controlFD, report{Ended: true, Status: uint32(status), Memory: usage.Maxrss * kib, CPU: usage.Utime.Nano() + usage.Stime.Nano()}); err != nil {
			return exitSetup
		}
		return 0
	}
}

// spareThreads makes the runtime have threads in hand: when the command has
// used up the processes that it may have, a new one would be refused to this
// process too, and that would end everything.
func spareThreads(n int) {
	var arrived sync.WaitGroup
	arrived.Add(n)
	for range n {
		go func() {
			runtime.LockOSThread() // waiting, it keeps its thread from the others
			defer runtime.UnlockOSThread()
			arrived.Done()
			arrived.Wait()
		}()
	}
	arrived.Wait()
}

// watch ends this process, and with it the sandbox, when the parent is gone,
// however it went.
func (s *stager) watch() {
	_ = readFull(controlFD, make([]byte, 1)) // nothing is ever sent
	s.parentGone()
	os.Exit(exitSetup)
}

// parentGone does what is the parent's where there is one.
func (s *stager) parentGone() {
	if s.Reduced {
		s.clean.Do(func() {
			freely(func() {
				killDescendants()
				_ = os.RemoveAll(s.Private) // nobody is left to hear
			})
		})
	}
}

// releaseStdio lets go of the command's streams, so that they end with it.
func releaseStdio() {
	if null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		for fd := range 3 {
			_ = unix.Dup3(null, fd, 0)
		}
	}
}
