package proc

import (
	"os"
	"strconv"
)

// programOf returns the kernel's own link, which leads to the file even after the file was replaced.
func programOf(pid int) (string, bool) {
	path := "/proc/" + strconv.Itoa(pid) + "/exe"
	_, err := os.Readlink(path)
	return path, err == nil
}
