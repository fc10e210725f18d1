package proc

import (
	"os"
	"strconv"
	"strings"
)

func commandLine(pid int) (string, bool) {
	words, ok := wordsOf(pid)
	return strings.TrimSpace(strings.Join(words, " ")), ok
}

// wordsOf reads /proc/PID/cmdline. A process without one (a kernel thread, a zombie) is shown by its name in
// brackets, as in ps.
func wordsOf(pid int) ([]string, bool) {
	data, err := readFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return nil, false
	}
	if words := splitWords(data); strings.TrimSpace(strings.Join(words, "")) != "" {
		return words, true
	}
	info, ok := lookup(pid)
	return []string{"[" + info.Name + "]"}, ok
}

// splitWords splits the kernel's NUL-terminated words.
func splitWords(data []byte) []string {
	return strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
}

func environ(pid int) ([]string, error) {
	data, err := readFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == 0 }), nil
}

func workingDir(pid int) (string, error) {
	return os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
}
