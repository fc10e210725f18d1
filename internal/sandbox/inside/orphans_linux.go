package inside

import (
	"os"
	"syscall"
	"time"

	"github.com/pollux-companion/pollux/internal/sandbox/kernel"
)

// supervise makes this process the one that orphans of the command are handed
// to, in place of a process namespace.
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

// killDescendants ends what the command left behind. Each one that dies hands
// its children to this process, so it goes on until there are none. It does not
// block in wait: runCommand may take the one it would wait for, and the next
// orphan would then never be killed.
func killDescendants() {
	for {
		for _, pid := range children() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already, at worst
		}
		_, err := ignoringEINTR(func() (int, error) { return syscall.Wait4(-1, nil, syscall.WNOHANG, nil) })
		if err != nil {
			return // there are none
		}
		time.Sleep(time.Millisecond)
	}
}

// children lists the children of all threads of this process.
func children() []int {
	threads, _ := os.ReadDir("/proc/self/task") // there is one at least
	var all []int
	for _, thread := range threads {
		data, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/children")
		if err != nil {
			continue // a thread that ended
		}
		pid := 0
		for _, c := range data { // numbers, each with a space after it
			if c >= '0' && c <= '9' {
				pid = 10*pid + int(c-'0')
			} else if pid > 0 {
				all, pid = append(all, pid), 0
			}
		}
	}
	return all
}

// prctl is for what has no answer.
func prctl(option int, arguments ...uintptr) error {
	_, err := kernel.Prctl(option, arguments...)
	return err
}
