package claude

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/agent/lockfile"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/settingsfile"
)

// forceVariable has Claude Code take the terminal for an editor's own: then only the companion of a process above it counts.
const forceVariable = "FORCE_CODE_TERMINAL"

// Choose replays Claude Code's own search in a world (SPEC CC-1 to CC-4). It deletes nothing.
func Choose(w lockfile.World) *lockfile.Choice {
	c := &lockfile.Choice{Folder: lockfile.Dir(w.Home), Taken: -1}
	c.Candidates = Locks().Look(c.Folder, w, PortVariable)
	usual := filepath.Join(w.Getenv(settingsfile.HomeVariable), ".claude")
	if both := lockfile.Dir(usual); w.Getenv(homeVariable) != "" && paths.Real(both) != paths.Real(c.Folder) {
		c.Candidates = append(c.Candidates, Locks().Look(both, w, PortVariable)...)
	}
	here := paths.Real(w.Dir)
	var valid, named, below []int
	for i := range c.Candidates {
		l := &c.Candidates[i]
		if l.Lock == nil || l.Dead {
			continue
		}
		// Claude Code follows no links of a lock's folders.
		l.Fits = l.Named || slices.ContainsFunc(l.Lock.Roots, func(root string) bool {
			return filepath.IsAbs(root) && paths.Within(filepath.Clean(root), here)
		})
		switch {
		case !l.Fits:
		case l.Named:
			named, valid = append(named, i), append(valid, i)
		case w.Getenv(forceVariable) != "" && !slices.Contains(w.Above, l.Lock.PID):
			below = append(below, i)
		default:
			valid = append(valid, i)
		}
	}
	switch {
	case len(named) == 1:
		c.Taken, c.Why = named[0], PortVariable+" names its port"
	case len(valid) == 1 && len(below) > 0:
		c.Taken, c.Why = valid[0], "it is that of a process above this one"
	case len(valid) == 1:
		c.Taken, c.Why = valid[0], "the only one whose folders hold this one"
	case len(valid) > 1:
		c.Trouble = tooMany(c, valid)
	case len(below) > 0:
		c.Trouble = &finding.Finding{Level: finding.Fault, What: "the companion of this folder is not one of the processes above this one",
			Why: forceVariable + " is set: Claude Code takes this for an editor's own terminal", Mend: "unset " + forceVariable}
	}
	return c
}

// tooMany: of several it takes none (SPEC CC-4), and a lock in both of its folders counts twice (SPEC CC-1).
func tooMany(c *lockfile.Choice, valid []int) *finding.Finding {
	first := c.Candidates[valid[0]]
	if i := slices.IndexFunc(valid, func(i int) bool { return c.Candidates[i].Lock.Ours }); i >= 0 {
		first = c.Candidates[valid[i]] // who asks pollux means pollux's
	}
	f := &finding.Finding{Level: finding.Fault, What: fmt.Sprintf("%d companions serve this folder, and Claude Code connects to none of them", len(valid)),
		Why:    "it takes a companion by itself only where there is one",
		Mend:   fmt.Sprintf("export %s=%d", PortVariable, first.Lock.Port),
		Remark: "that chooses " + strings.TrimSpace(first.Lock.DisplayName+" "+strings.Join(first.Lock.Roots, ", ")) + "; or end the others, or choose by /ide in Claude Code"}
	for _, i := range valid {
		l := c.Candidates[i]
		f.Details = append(f.Details, fmt.Sprintf("%s (process %d): %s", l.Lock.DisplayName, l.Lock.PID, l.Path))
		if l.Path != first.Path && l.Lock.Port == first.Lock.Port {
			f.What = "the same lock lies in both of Claude Code's folders, and it connects to neither"
			f.Why = homeVariable + " is set, and Claude Code looks into the usual folder as well"
			f.Mend, f.Remark = "", "remove one of the two files"
		}
	}
	return f
}

// SettingsPath is the user's own settings file, absolute. It need not exist. Claude Code changes it only when the user asks for it.
func SettingsPath(getenv func(string) string) (string, error) {
	home, err := home(getenv)
	return filepath.Join(home, "settings.json"), err
}

// Switches are the keys that pollux setup switches on: a variable that Claude Code sets for itself (SPEC CC-3).
func Switches() []string { return []string{"env." + ConnectVariable} }

// program reads and changes Claude Code's settings files.
const program = settingsfile.ClaudeCode

// Mode says whether a Claude Code that is started without --ide looks for a companion by itself (SPEC CC-3).
func Mode(settings, _ string, getenv func(string) string) finding.Finding {
	off := finding.Finding{Level: finding.Fault, What: "Claude Code does not look for an editor by itself",
		Why: "it does so with --ide, or with " + ConnectVariable + " in its settings or its environment", Mend: "pollux setup claude",
		Remark: "or start it with claude --ide, or choose /ide in it", Fix: finding.Mode}
	set := strings.ToLower(getenv(ConnectVariable))
	said, err := program.Get(settings, Switches()[0])
	switch {
	case err != nil:
		return finding.Finding{Level: finding.Fault, What: "the settings cannot be read: " + err.Error(), Remark: "mend it at the place that is named"}
	case said != nil && *said:
		return finding.Finding{Level: finding.OK, What: "it looks for a companion by itself", Details: []string{"by " + settings}}
	case said != nil:
		off.What = settings + " says that Claude Code does not look for an editor"
		return off
	case slices.Contains([]string{"0", "false", "no", "off"}, set):
		return finding.Finding{Level: finding.Fault, What: ConnectVariable + " is " + set + " in this terminal", Why: "then Claude Code looks for no editor",
			Mend: "unset " + ConnectVariable}
	}
	for _, name := range []string{PortVariable, ConnectVariable, forceVariable} {
		if getenv(name) != "" {
			return finding.Finding{Level: finding.OK, What: "it looks for a companion by itself", Details: []string{"by " + name + " in this terminal"}}
		}
	}
	var own struct {
		AutoConnect bool `json:"autoConnectIde"`
	}
	if err := program.Decode(stateFile(getenv), &own); err == nil && own.AutoConnect {
		return finding.Finding{Level: finding.OK, What: "it looks for a companion by itself", Details: []string{"by autoConnectIde in " + stateFile(getenv)}}
	}
	return off
}

// stateFile is what Claude Code rewrites all the time; it is only read.
func stateFile(getenv func(string) string) string {
	if dir := getenv(homeVariable); dir != "" {
		return filepath.Join(dir, ".claude.json")
	}
	return filepath.Join(getenv(settingsfile.HomeVariable), ".claude.json")
}
