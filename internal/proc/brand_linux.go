package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The brand is a limit on RLIMIT_LOCKS, which the kernel keeps for each process and has not looked at since Linux 2.4.25. A child has its
// parent's limits, and raising the hard one needs CAP_SYS_RESOURCE outside of any user namespace.
const brandLimit = 1 << 62 // any limit but none is a brand, so that a lower one hides nothing

// maxBranded bounds how many descendants are branded one by one.
const maxBranded = 1024

func brand(pid int) bool {
	if branded(pid) {
		return true
	}
	done := limitOf(pid, &unix.Rlimit{Cur: brandLimit, Max: brandLimit}, nil)
	for next, n := childrenOf(pid), 0; len(next) > 0 && n < maxBranded; n++ { // its parent first: a child that starts meanwhile has it from there
		child := next[0]
		next = next[1:]
		if !branded(child) {
			_ = limitOf(child, &unix.Rlimit{Cur: brandLimit, Max: brandLimit}, nil) // one of another user is beyond reach
		}
		next = append(next, childrenOf(child)...)
	}
	return done
}

func branded(pid int) bool {
	var now unix.Rlimit
	return limitOf(pid, nil, &now) && now.Max != unix.RLIM_INFINITY
}

// limitOf sets and reads the limit of a process of this user.
func limitOf(pid int, set, now *unix.Rlimit) bool {
	return unix.Prlimit(pid, unix.RLIMIT_LOCKS, set, now) == nil
}

// childrenOf returns what a process has started and not lost; nothing from a kernel that does not list it.
func childrenOf(pid int) (children []int) {
	lists, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, list := range lists {
		data, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(word); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}
