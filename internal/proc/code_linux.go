package proc

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// DropCode takes the pages of the program's own code and constants off this
// process's resident memory: most of them served the start alone and, since the
// system maps 64 KB and more around each byte that is touched, many were never used. Those that
// are needed come back from the page cache by themselves. What was changed in
// memory, by a loader or a debugger, stays. It may be called at any time.
func DropCode() error {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer smaps.Close()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	var from, to uintptr
	unchanged := false // from and to are those of a part of the program that nothing has been written to
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Text()
		name, value, _ := strings.Cut(line, ":")
		switch {
		case strings.Contains(name, " "): // the first line of a part, whatever it is of
			var perms string
			_, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &perms)
			unchanged = err == nil && strings.HasSuffix(line, " "+program) && (perms == "r-xp" || perms == "r--p")
		case name == "Anonymous", name == "Swap":
			unchanged = unchanged && strings.TrimSpace(value) == "0 kB"
		case name == "VmFlags" && unchanged: // the last
			if _, _, errno := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); errno != 0 {
				return errno
			}
		}
	}
	return nil
}
