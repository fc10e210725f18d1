package proc

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf16"
)

// parseArgs2 parses macOS's kern.procargs2: a count, the program's path, NULs, that many words, and then the
// environment, which the system omits for its own programs. ok is false if the data has another form.
func parseArgs2(data []byte) (words, env []string, ok bool) {
	if len(data) < 4 {
		return nil, nil, false
	}
	count := int(binary.NativeEndian.Uint32(data))
	_, rest, ok := bytes.Cut(data[4:], []byte{0})
	if !ok {
		return nil, nil, false
	}
	all := bytes.Split(bytes.TrimLeft(rest, "\x00"), []byte{0})
	if count < 1 || count > len(all) {
		return nil, nil, false
	}
	for i, b := range all {
		switch {
		case i < count:
			words = append(words, string(b))
		case len(b) == 0: // only the kernel's own strings follow: executable_path= and so on
			return words, env, true
		default:
			env = append(env, string(b))
		}
	}
	return words, env, true
}

// parsePathInfo returns the working folder from macOS's struct proc_vnodepathinfo: after the folder's own data comes
// its path, which ends with a NUL.
func parsePathInfo(data []byte) (string, bool) {
	if len(data) < vnodeInfoSize+maxPathLen {
		return "", false
	}
	path, _, ok := bytes.Cut(data[vnodeInfoSize:vnodeInfoSize+maxPathLen], []byte{0})
	return string(path), ok && strings.HasPrefix(string(path), "/")
}

// Sizes from <sys/proc_info.h>, the same on every Mac: struct vnode_info, a path, and both twice.
const (
	vnodeInfoSize = 152
	maxPathLen    = 1024
	pathInfoSize  = 2 * (vnodeInfoSize + maxPathLen)
)

// parseEnvBlock parses a Windows environment: NUL-terminated strings, and an empty one at the end. It omits the
// shell's notes about drives (=C:=C:\), which are not variables.
func parseEnvBlock(block []uint16) []string {
	env := []string{}
	for len(block) > 0 {
		end := 0
		for end < len(block) && block[end] != 0 {
			end++
		}
		if end == 0 {
			break
		}
		if text := string(utf16.Decode(block[:end])); !strings.HasPrefix(text, "=") {
			env = append(env, text)
		}
		block = block[min(end+1, len(block)):]
	}
	return env
}
