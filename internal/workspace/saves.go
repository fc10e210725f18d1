package workspace

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// saves notes the half-written files in the user's folders, in a folder of pollux's own. By the notes, SweepSaves finds what a killed
// process left of a save, anywhere. The zero value notes nothing.
type saves struct{ dir string }

// maxSaveNote bounds a note, in bytes; maxSaves how many are looked at.
const (
	maxSaveNote = MaxPath + 1024
	maxSaves    = 1000
	saveSuffix  = ".save"
)

// A saveNote describes one running save.
type saveNote struct {
	Temp  string     `json:"temp"` // the half-written file, absolute
	PID   int        `json:"pid"`  // the process that writes it
	Start proc.Stamp `json:"start"`
}

// note must be called before a half-written file is made, and done when the file is gone. A crash in between leaves the
// note, by which SweepSaves finds the file. A failure to write the note does not stop the save.
func (s saves) note(temp string) (done func()) {
	if s.dir == "" || safefile.PrivateDir(s.dir) != nil {
		return func() {}
	}
	data, err := json.Marshal(saveNote{Temp: temp, PID: os.Getpid(), Start: proc.Self()})
	path := filepath.Join(s.dir, filepath.Base(temp)+saveSuffix)
	if err != nil || os.WriteFile(path, data, 0o600) != nil {
		_ = os.Remove(path)
		return func() {}
	}
	return func() { _ = os.Remove(path) }
}

// SweepSaves removes the half-written files that killed processes left in the user's folders, and returns their paths. dir has the
// notes about them (Options.Saves). It removes only regular files of this user, with a name that pollux gives, whose noted writer has
// ended.
func SweepSaves(dir string) (removed []string) {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() || safefile.PrivateDir(dir) != nil {
		return nil
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries[:min(len(entries), maxSaves)] {
		temp, ok := strings.CutSuffix(e.Name(), saveSuffix)
		if !ok || !safefile.IsTemp(temp) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		data, err := safefile.ReadPrivate(path, maxSaveNote)
		var note saveNote
		if err != nil || json.Unmarshal(data, &note) != nil || filepath.Base(note.Temp) != temp || !filepath.IsAbs(note.Temp) {
			note = saveNote{} // the note is torn, so its file was never begun
		}
		if note.PID != 0 && proc.Same(note.PID, note.Start) {
			continue
		}
		if note.Temp != "" && safefile.RemoveOwn(note.Temp) == nil {
			removed = append(removed, note.Temp)
		}
		_ = os.Remove(path)
	}
	return removed
}
