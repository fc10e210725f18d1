package qwen

import (
	"path/filepath"
	"slices"

	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/agent/lockfile"
)

// unsupported is Qwen Code's message when it finds no editor.
const unsupported = "IDE integration is not supported in your current environment. To use this feature, run Qwen Code in one of these supported IDEs: VS Code or VS Code forks"

// Choose replays Qwen Code's own search in a world (SPEC ). It deletes nothing. When no lock fits, Qwen Code tries
// the port that PortVariable names, without a token.
func Choose(w lockfile.World) *lockfile.Choice {
	c := &lockfile.Choice{Folder: lockfile.Dir(w.Home), Taken: -1, Says: unsupported}
	c.Candidates = Locks().Look(c.Folder, w, PortVariable)
	c.Taken = slices.IndexFunc(c.Candidates, func(l lockfile.Candidate) bool { return l.Lock != nil && l.Fits && (!l.Dead || l.Named) })
	if c.Taken < 0 {
		return c
	}
	taken := c.Candidates[c.Taken]
	c.Why = "the newest whose folders hold this one"
	if taken.Named {
		c.Why = PortVariable + " names its port"
	}
	if taken.Lock.Name == "" || taken.Lock.DisplayName == "" {
		c.Trouble = &finding.Finding{Level: finding.Fault, What: taken.Name + " does not introduce an editor (ideInfo)",
			Why: "without that Qwen Code says nothing and stays unconnected", Remark: "update the companion that wrote it"}
		return c
	}
	c.Says = "Failed to connect to IDE companion extension in " + taken.Lock.DisplayName +
		". Please ensure the extension is running. To install the extension, run /ide install."
	return c
}

// Mode says whether Qwen Code looks for a companion at all (SPEC Q-9). settings is the user's settings file, dir Qwen Code's working
// folder.
func Mode(settings, dir string, getenv func(string) string) finding.Finding {
	defaults, system := system(getenv)
	on, by := false, ""
	for _, file := range []string{defaults, settings, filepath.Join(dir, ".qwen", "settings.json"), system} { // each outranks the ones before it
		said, err := Program.Get(file, enabled)
		if err != nil {
			return finding.Finding{Level: finding.Fault, What: "the settings cannot be read: " + err.Error(), Remark: "mend it at the place that is named"}
		}
		if said != nil {
			on, by = *said, file
		}
	}
	switch {
	case on:
		return finding.Finding{Level: finding.OK, What: "IDE mode is on", Details: []string{"by " + by}}
	case by == "" || by == settings || by == defaults:
		return finding.Finding{Level: finding.Fault, What: "IDE mode is off in " + settings, Why: "without it Qwen Code does not look for an editor",
			Mend: "pollux setup qwen", Fix: finding.Mode}
	}
	return finding.Finding{Level: finding.Fault, What: by + " switches IDE mode off", Why: "it outranks your own settings",
		Remark: `set "ide": {"enabled": true} in it, or take "ide" out`}
}
