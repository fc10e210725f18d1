package safefile

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// TryLock locks an open file unless somebody else has locked it. The lock ends with the process, however that ends.
// The locked byte lies far beyond the content, which stays readable.
func TryLock(f *os.File) (bool, error) {
	at := windows.Overlapped{OffsetHigh: 1}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// Locked says whether somebody else holds the lock of TryLock. It disturbs nobody who asks the same.
func Locked(f *os.File) bool {
	at := windows.Overlapped{OffsetHigh: 1}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if err == nil {
		_ = windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
	}
	return errors.Is(err, windows.ERROR_LOCK_VIOLATION)
}
