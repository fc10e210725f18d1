package proc

import (
	"os"
	"strconv"
)

// programOf is the kernel's own link: it leads to the file also when that was replaced meanwhile.
func programOf(pid int) (string, bool) {
	path := "/proc/" + strconv.Itoa(pid) + "/exe"
	_, err := os.Readlink(path)
	return path, err == nil
}
