//go:build unix

package safefile

import (
	"errors"
	"os"
	"syscall"
)

// TryLock takes the lock of an open file if nobody has it. It ends with the
// process, however that ends.
func TryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}
