//go:build unix

package mcp_test

import (
	"syscall"
	"testing"
)

// descriptors is how many files and connections this process may have open.
func descriptors(t *testing.T) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	return int(min(limit.Cur, 1<<20))
}
