package claude

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/agent/lockfile"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/settingsfile"
)

// OpenCodePorts are the variables that have opencode connect to a port without a token, which no companion takes (SPEC OC-2). With 0 in
// them it looks for a lock.
func OpenCodePorts() []string { return []string{PortVariable, "OPENCODE_EDITOR_SSE_PORT"} }

// ChooseOpenCode replays opencode's search among Claude Code's locks (SPEC OC-1): the longest folder, then the newest file. It deletes
// nothing.
func ChooseOpenCode(w lockfile.World) *lockfile.Choice {
	c := &lockfile.Choice{Folder: lockfile.Dir(w.Home), Taken: -1}
	c.Candidates = Locks().Look(c.Folder, w, "")
	longest := 0
	for i, l := range c.Candidates { // the newest first
		if l.Lock == nil || l.Dead || !l.Fits {
			continue
		}
		for _, root := range l.Lock.Roots {
			if n := len(filepath.Clean(root)); n > longest && paths.Within(paths.Real(root), paths.Real(w.Dir)) {
				longest, c.Taken, c.Why = n, i, "the longest folder that holds this one"
			}
		}
	}
	return c
}

// OpenCodeSettings is the user's own settings file, absolute. It need not exist.
func OpenCodeSettings(getenv func(string) string) (string, error) {
	dir := getenv("XDG_CONFIG_HOME")
	if home := getenv(settingsfile.HomeVariable); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	if dir == "" {
		return "", errors.New("there is no home folder: " + settingsfile.HomeVariable + " is not set; set it and try again")
	}
	dir, err := filepath.Abs(dir)
	return filepath.Join(dir, OpenCode, "opencode.json"), err
}

// OpenCodeMode says that opencode looks for a companion without being told to, unless a variable names a port (SPEC OC-2).
func OpenCodeMode(_, _ string, getenv func(string) string) finding.Finding {
	ports := OpenCodePorts()
	i := slices.IndexFunc(ports, func(name string) bool { return lockfile.EnvPort(getenv, name) != 0 })
	if i < 0 {
		return finding.Finding{Level: finding.OK, What: "it looks for a companion by itself, and finds one that starts later"}
	}
	return finding.Finding{
		Level: finding.Fault, What: ports[i] + " names a port in this terminal", Why: "opencode connects there without the lock's token, and is refused for good",
		Mend: "unset " + ports[i], Remark: "or run pollux run -- opencode",
	}
}
