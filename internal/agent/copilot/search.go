package copilot

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/agent/lockfile"
	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/paths"
)

// Choose replays Copilot CLI's own search in a world (SPEC GC-1): a lock one of whose folders is its own, the first by name. It deletes
// nothing.
func Choose(w lockfile.World) *lockfile.Choice {
	c := &lockfile.Choice{Folder: lockfile.Dir(w.Home), Taken: -1}
	c.Candidates = Locks().Look(c.Folder, w, "")
	slices.SortFunc(c.Candidates, func(a, b lockfile.Candidate) int { return strings.Compare(a.Name, b.Name) })
	above := ""
	for i := range c.Candidates {
		l := &c.Candidates[i]
		if l.Lock == nil || l.Dead {
			continue
		}
		if l.Fits && above == "" {
			above = l.Lock.Roots[0]
		}
		l.Fits = slices.ContainsFunc(l.Lock.Roots, func(root string) bool { return paths.Real(root) == paths.Real(w.Dir) })
		if l.Fits && c.Taken < 0 {
			c.Taken, c.Why = i, "its folder is this one"
		}
	}
	if c.Taken < 0 && above != "" {
		c.Trouble = &finding.Finding{
			Level: finding.Fault, What: fmt.Sprintf("the companion of %s serves this folder too, and %s does not take it", above, Label),
			Why: "it takes a companion by itself only where it is started in the companion's own folder", Remark: "start it there, or choose the companion by /ide",
		}
	}
	return c
}

// maxTold is where a selection is cut that pollux context shows, in UTF-16 units.
const maxTold = 10_000

// Told is what Copilot CLI tells its model with the next prompt, when params of a selection_changed were the last that came; "" is
// nothing (SPEC GC-5).
func Told(params []byte) (string, error) {
	var s struct {
		Text      string `json:"text"`
		FilePath  string `json:"filePath"`
		Selection struct {
			Start, End struct{ Line int }
		} `json:"selection"`
	}
	if err := json.Unmarshal(params, &s); err != nil || s.FilePath == "" || s.Text == "" {
		return "", err
	}
	lines := fmt.Sprintf("line %d", s.Selection.Start.Line+1)
	if s.Selection.End.Line > s.Selection.Start.Line {
		lines = fmt.Sprintf("lines %d-%d", s.Selection.Start.Line+1, s.Selection.End.Line+1)
	}
	return fmt.Sprintf("The user has the following text selected in their IDE. This may or may not be related to their request.\nFile: %s (%s)\n```\n%s\n```",
		filepath.Base(s.FilePath), lines, text.CutUTF16(s.Text, maxTold)), nil
}
