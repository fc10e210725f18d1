//go:build unix

package client

import (
	"os"
	"syscall"

	"github.com/pollux-companion/pollux/internal/proc"
)

func alive(pid int) bool { return proc.Alive(pid) }

func onWindows() *bool { return new(bool) }

func sameName(a, b string) bool { return a == b }

func ownerOf(info os.FileInfo) (uid int, known bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
