package workspace

import (
	"strings"
	"unicode"
)

// protectedNames are files and folders that make programs run commands as the user:
// repositories' hooks and settings, editors' tasks, agents' settings and servers, shell
// and container set-up. Whoever writes them can run anything.
const protectedNames = " .git .gemini .vscode .idea .husky .envrc .mcp.json .claude .cursor .devcontainer "

// protectedName reports whether a component of a path is never written. On every system it judges as the most
// forgiving file system would: it ignores case, invisible characters, trailing dots and blanks, streams ("x:y") and DOS
// short names.
func protectedName(name string) bool {
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, name)
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, ". ")
	short, _, isShort := strings.Cut(name, "~")
	for _, p := range strings.Fields(protectedNames) {
		if strings.EqualFold(p, name) {
			return true
		}
		plain := strings.ReplaceAll(p, ".", "")
		if isShort && len(short) >= 2 && len(short) <= len(plain) && strings.EqualFold(plain[:len(short)], short) {
			return true
		}
	}
	return false
}
