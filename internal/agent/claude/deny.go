package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/settingsfile"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// A Denier is what the workspace obeys.
type Denier = workspace.Denier

// Deniers are the settings by which users keep files from the tools of Claude Code and of opencode.
func Deniers(getenv func(string) string) []Denier {
	return []Denier{denier(getenv), openCodeDenier(getenv)}
}

// denier is Claude Code's permissions.deny: the rules for its tool Read, which other file tools obey too (SPEC CC-18).
func denier(getenv func(string) string) workspace.Denier {
	home := homeOf(getenv)
	user := ownSettings(getenv)
	if home != "" {
		user = append([]string{filepath.Join(home, ".claude", "settings.json")}, user...)
	}
	for _, dir := range managed(getenv) {
		user = append(user, filepath.Join(dir, "managed-settings.json"), filepath.Join(dir, "managed-settings.d", "*.json"))
	}
	return workspace.Denier{
		Agent: Name, Label: "Claude Code", Always: user, Own: ownSettings,
		Beside: []string{".claude/settings.json", ".claude/settings.local.json"},
		Read: func(data []byte, file, folder string) ([]workspace.Denial, error) {
			return denials(data, file, folder, home)
		},
	}
}

// ownSettings is the user's settings file where a variable moves it.
func ownSettings(getenv func(string) string) []string {
	if dir := getenv(homeVariable); filepath.IsAbs(dir) {
		return []string{filepath.Join(dir, "settings.json")}
	}
	return nil
}

// homeOf returns the user's home folder, "" when it is not known.
func homeOf(getenv func(string) string) string {
	if home := getenv(settingsfile.HomeVariable); filepath.IsAbs(home) {
		return filepath.Clean(home)
	}
	return ""
}

// denials reads a settings file. What Claude Code does not load is an error, because its user wanted something by it.
func denials(data []byte, file, folder, home string) ([]workspace.Denial, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if len(data) == 0 {
		return nil, nil
	}
	var settings struct {
		Permissions struct {
			Deny []any `json:"deny"`
		} `json:"permissions"`
	}
	if err := json.Unmarshal(data, &settings); err != nil {
		return nil, fmt.Errorf("is not as Claude Code needs it: %w; mend it", err)
	}
	var all []workspace.Denial
	for _, one := range settings.Permissions.Deny {
		rule, ok := one.(string)
		if !ok {
			return nil, errors.New("has an entry in permissions.deny that is not a text; mend it")
		}
		if pattern, ok := readRule(rule); ok {
			all = append(all, denial(pattern, file, folder, home)...)
		}
	}
	return all, nil
}

// readRule returns the pattern of a rule that is about reading files, "" for a rule about all of them. Claude Code skips rules with blanks
// around them or in small letters; here they count.
func readRule(rule string) (pattern string, ok bool) {
	tool, rest, args := strings.Cut(strings.TrimSpace(rule), "(")
	if !workspace.FitsWhole(strings.ToLower(strings.TrimSpace(tool)), "read") {
		return "", false
	}
	pattern = strings.TrimSuffix(rest, ")")
	switch {
	case !args, pattern == "*":
		return "", true
	case strings.TrimSpace(pattern) == "":
		return "", false
	}
	return pattern, true
}

// denial says what a pattern fits. From one place there may be several readings; all of them count.
func denial(pattern, file, folder, home string) []workspace.Denial {
	deny := workspace.Denial{Deny: true, Tool: "Read"}
	from := func(base, pattern string) []workspace.Denial {
		deny.Base, deny.Pattern = base, pattern
		return []workspace.Denial{deny}
	}
	switch {
	case pattern == "":
		deny.Whole, deny.Pattern = true, "*"
		return []workspace.Denial{deny}
	case strings.HasPrefix(pattern, "//"):
		rest := strings.TrimLeft(pattern, "/")
		root := string(filepath.Separator)
		if len(rest) > 1 && rest[1] == ':' { // //c:/Users on Windows
			root, rest = rest[:2]+root, strings.TrimLeft(rest[2:], "/")
		} else if volume := filepath.VolumeName(file); volume != "" {
			root = volume + root
		}
		return from(root, "/"+rest)
	case strings.HasPrefix(pattern, "~/"):
		return from(home, "/"+strings.TrimLeft(pattern[2:], "/"))
	case strings.HasPrefix(pattern, "/") && folder == "": // of the user's own settings, or of managed ones
		return append(from(filepath.Dir(file), pattern), from("", pattern)...)
	}
	return from(folder, strings.TrimPrefix(pattern, "./"))
}
