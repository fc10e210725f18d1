package proc

import (
	"bytes"
	"encoding/binary"
	"strings"

	"golang.org/x/sys/unix"
)

// commandLine reads kern.procargs2: a count, the program's path, NULs, then so
// many words. Of another user's process the system tells the name alone.
func commandLine(pid int) (string, bool) {
	data, err := unix.SysctlRaw("kern.procargs2", pid)
	if err == nil {
		if line, ok := parseArgs(data); ok {
			return line, true
		}
	}
	info, ok := lookup(pid)
	return info.Name, ok
}

func parseArgs(data []byte) (string, bool) {
	if len(data) < 4 {
		return "", false
	}
	count := int(binary.NativeEndian.Uint32(data))
	_, rest, ok := bytes.Cut(data[4:], []byte{0})
	if !ok {
		return "", false
	}
	words := bytes.Split(bytes.TrimLeft(rest, "\x00"), []byte{0})
	if count < 1 || count > len(words) {
		return "", false
	}
	return strings.TrimSpace(string(bytes.Join(words[:count], []byte{' '}))), true
}

func environ(int) ([]string, string, bool) { return nil, "", false }
