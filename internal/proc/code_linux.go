package proc

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// DropCode takes the pages of the program's own code off this process's
// resident memory: most of them served the start alone and, since the system
// maps 64 KB around each byte that is touched, many never ran. Those that are
// needed come back from the page cache by themselves. The code must not have been
// changed in memory, which Go's never is. It may be called at any time.
func DropCode() error {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer maps.Close()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uintptr
		var perms string
		line := lines.Text()
		if !strings.HasSuffix(line, " "+program) {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &perms); err != nil || perms != "r-xp" {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); errno != 0 {
			return errno
		}
	}
	return nil
}
