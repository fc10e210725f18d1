package proc

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf16"
)

// parseArgs2 takes macOS's kern.procargs2 apart: a count, the program's path, NULs, so many words, and then
// the environment, which the system leaves out for its own programs. ok is false for what is no such block.
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
		case len(b) == 0: // what follows is the kernel's own: executable_path= and the like
			return words, env, true
		default:
			env = append(env, string(b))
		}
	}
	return words, env, true
}

// parsePathInfo finds the working folder in macOS's struct proc_vnodepathinfo: behind the folder's own
// data comes its path, which ends with a NUL.
func parsePathInfo(data []byte) (string, bool) {
	if len(data) < vnodeInfoSize+maxPathLen {
		return "", false
	}
	path, _, ok := bytes.Cut(data[vnodeInfoSize:vnodeInfoSize+maxPathLen], []byte{0})
	return string(path), ok && strings.HasPrefix(string(path), "/")
}

// Sizes of <sys/proc_info.h>, the same on every Mac: struct vnode_info, a path, and both twice.
const (
	vnodeInfoSize = 152
	maxPathLen    = 1024
	pathInfoSize  = 2 * (vnodeInfoSize + maxPathLen)
)

// parseEnvBlock takes a Windows environment apart: texts that end with a NUL, and an empty one at the end. The
// shell's notes about drives (=C:=C:\) are no variables.
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
