//go:build unix

package proc

import (
	"math"
	"syscall"
)

// descriptors returns how many files and connections this process may have open at one time.
func descriptors() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}
