package proc

import (
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
	done := limit(pid)
	for next, n := childrenOf(pid), 0; len(next) > 0 && n < maxBranded; n++ { // its parent first: a child that starts meanwhile has it from there
		child := next[0]
		next = next[1:]
		if !branded(child) {
			_ = limit(child) // one of another user is beyond reach
		}
		next = append(next, childrenOf(child)...)
	}
	return done
}

func branded(pid int) bool {
	var now unix.Rlimit
	switch err := unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &now); err {
	case nil:
		return now.Max != unix.RLIM_INFINITY
	case unix.EPERM: // root's, or one that has changed its group, as by sg
		return readBrand(pid)
	default:
		return false
	}
}

// readBrand is branded by the file that the kernel shows to everybody.
func readBrand(pid int) bool {
	data, err := readFile("/proc/" + strconv.Itoa(pid) + "/limits")
	_, rest, ok := strings.Cut(string(data), "\nMax file locks ")
	line, _, _ := strings.Cut(rest, "\n")
	limits := strings.Fields(line) // the soft one, the hard one, the unit
	return err == nil && (!ok || len(limits) < 2 || limits[1] != "unlimited")
}

// limit sets the limit of a process of this user.
func limit(pid int) bool {
	return unix.Prlimit(pid, unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: brandLimit, Max: brandLimit}, nil) == nil
}

// childrenOf returns what a process has started and not lost; nothing from a kernel that does not list it.
func childrenOf(pid int) (children []int) {
	lists, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, list := range lists {
		data, _ := readFile(list)
		for _, word := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(word); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}
