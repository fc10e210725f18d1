//go:build unix

package mcp

import "syscall"

// writeNow writes what a non-blocking socket takes at once, and returns how many bytes that was.
func writeNow(fd uintptr, b []byte) int {
	for {
		n, err := syscall.Write(int(fd), b)
		if err != syscall.EINTR {
			return max(n, 0)
		}
	}
}
