package inside

import (
	"os"
	"syscall"
	"time"

	"github.com/pollux-companion/pollux/internal/sandbox/kernel"
)

// supervise makes this process the reaper of the command's orphans. It replaces the process namespace that the
// reduced sandbox does not have.
func supervise() error {
	if err := prctl(kernel.PRSetChildSubreaper, 1); err != nil {
		return on("taking in orphans", err)
	}
	return prctl(syscall.PR_SET_DUMPABLE, 0)
}

// freely calls f on a thread that Landlock does not bind.
func freely(f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	<-done
}

// killDescendants kills everything that the command left behind. A dying process hands its children to this one, so
// the loop runs until there are none. It must not block in wait: runCommand may reap the process that it would wait
// for, and the next orphan would then never be killed.
func killDescendants() {
	for {
		for _, pid := range children() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone already
		}
		_, err := ignoringEINTR(func() (int, error) { return syscall.Wait4(-1, nil, syscall.WNOHANG, nil) })
		if err != nil {
			return // no children are left
		}
		time.Sleep(time.Millisecond)
	}
}

// children lists the children of all threads of this process.
func children() []int {
	threads, _ := os.ReadDir("/proc/self/task") // there is at least one thread
	var all []int
	for _, thread := range threads {
		data, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/children")
		if err != nil {
			continue // the thread ended
		}
		pid := 0
		for _, c := range data { // each number is followed by a space
			if c >= '0' && c <= '9' {
				pid = 10*pid + int(c-'0')
			} else if pid > 0 {
				all, pid = append(all, pid), 0
			}
		}
	}
	return all
}

// prctl is for options that return nothing.
func prctl(option int, arguments ...uintptr) error {
	_, err := kernel.Prctl(option, arguments...)
	return err
}
