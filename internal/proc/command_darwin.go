package proc

import (
	"fmt"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func commandLine(pid int) (string, bool) {
	words, ok := wordsOf(pid)
	return strings.TrimSpace(strings.Join(words, " ")), ok
}

// wordsOf reads kern.procargs2. For another user's process it returns only the name.
func wordsOf(pid int) ([]string, bool) {
	data, err := unix.SysctlRaw("kern.procargs2", pid)
	if err == nil {
		if words, _, ok := parseArgs2(data); ok {
			return words, true
		}
	}
	info, ok := lookup(pid)
	return []string{info.Name}, ok
}

func environ(pid int) ([]string, error) {
	data, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return nil, err
	}
	_, env, ok := parseArgs2(data)
	if !ok || len(env) == 0 {
		return nil, fmt.Errorf("%w: macOS hides it for its own programs, such as /bin/zsh", errHidden)
	}
	return env, nil
}

// Constants from <sys/proc_info.h>.
const (
	procInfoCallPIDInfo  = 2
	procPIDVnodePathInfo = 9
)

func workingDir(pid int) (string, error) {
	buf := make([]byte, pathInfoSize)
	n, _, errno := syscall.Syscall6(unix.SYS_PROC_INFO, procInfoCallPIDInfo, uintptr(pid), procPIDVnodePathInfo, 0,
		uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
	if errno != 0 {
		return "", errno
	}
	dir, ok := parsePathInfo(buf[:min(int(n), len(buf))])
	if !ok {
		return "", errHidden
	}
	return dir, nil
}
