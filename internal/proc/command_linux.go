package proc

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// commandLine reads /proc/PID/cmdline. A process without one (a kernel thread, a zombie) is shown by its name in
// brackets, as in ps.
func commandLine(pid int) (string, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return "", false
	}
	if line := strings.TrimSpace(joinWords(data)); line != "" {
		return line, true
	}
	info, ok := lookup(pid)
	return "[" + info.Name + "]", ok
}

// joinWords turns the kernel's NUL-terminated words into one line.
func joinWords(data []byte) string {
	return string(bytes.ReplaceAll(bytes.TrimRight(data, "\x00"), []byte{0}, []byte{' '}))
}

func environ(pid int) ([]string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil, safefile.Cause(err)
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == 0 }), nil
}

func workingDir(pid int) (string, error) {
	dir, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	return dir, safefile.Cause(err)
}
