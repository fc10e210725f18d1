// Package usertest lets a test act as another user of the machine, for what must hold against them.
package usertest

import (
	"os"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/peers"
)

// ID is the other user's number.
const ID = 65534

// Do runs f as the other user, on a thread of its own that ends with it: the sockets that f opens and the files that it makes
// are that user's. It needs root, and says so and returns false without; where nothing may be left out, the test fails then.
// f must not call t.Fatal, and what it starts in goroutines of its own runs as this user.
func Do(t testing.TB, f func()) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		if peers.Required() {
			t.Error("not root: nothing is tried as another user; run the tests as root, as .ci/run wants it")
		}
		t.Log("not root: nothing is tried as another user")
		return false
	}
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked, so that the thread ends here
		// By number: the library's calls change every thread.
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETRESGID, ID, ID, ID); errno != 0 {
			failed <- errno
			return
		}
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETRESUID, ID, ID, ID); errno != 0 {
			failed <- errno
			return
		}
		f()
		failed <- nil
	}()
	if err := <-failed; err != nil {
		t.Fatalf("becoming user %d: %v", ID, err)
	}
	return true
}
