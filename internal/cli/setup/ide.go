package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/settingsfile"
)

// setupRecord holds the changes that setup made to settings, oldest first.
type setupRecord struct {
	Settings []setupChange `json:"settings"`
}

// A setupChange is one change of an agent's settings. Older records name no agent, because there was only Gemini CLI.
type setupChange struct {
	Agent string `json:"agent,omitempty"`
	settingsfile.Change
}

func (c setupChange) of(one agent.Agent) bool {
	return cmp.Or(c.Agent, agent.Default) == one.Name
}

// maxSetupRecord bounds the record's file, in bytes.
const maxSetupRecord = 1 << 20

func setupFile(con *console.Console) string { return filepath.Join(con.Dirs.State, "setup.json") }

func loadSetup(con *console.Console) (setupRecord, error) {
	var r setupRecord
	data, err := safefile.ReadPrivate(setupFile(con), maxSetupRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return r, fmt.Errorf("%s, where setup keeps what it changed: %w; move it away and try again", setupFile(con), err)
	}
	return r, nil
}

// saveSetup stores the record of undoable changes. It removes the file when there are none.
func saveSetup(con *console.Console, r setupRecord) error {
	if len(r.Settings) == 0 {
		err := os.Remove(setupFile(con))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		_ = os.Remove(con.Dirs.State) // fails unless it is empty
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = safefile.PrivateDir(con.Dirs.State)
	}
	if err != nil {
		return err
	}
	return safefile.Write(setupFile(con), append(data, '\n'), nil)
}

// setupIDE switches IDE mode on in an agent's settings.
func setupIDE(_ context.Context, con *console.Console, one agent.Agent, f setupFlags) (setupReport, error) {
	if len(one.Settings.Switches) == 0 {
		return setupReport{Action: "kept", Text: "ide: " + one.Label + " looks for a companion by itself"}, nil
	}
	path, err := one.Settings.Path(os.Getenv)
	if err != nil {
		return setupReport{}, err
	}
	record, err := loadSetup(con)
	if err != nil {
		return setupReport{}, err
	}
	change, err := one.Settings.Program.Set(path, one.Settings.Switches, &settingsfile.Options{DryRun: f.dryRun})
	if err != nil {
		return setupReport{}, err
	}
	if len(change.Values) == 0 {
		return setupReport{Action: "kept", Path: path, Text: "ide: IDE mode is on already in " + path}, nil
	}
	r := setupReport{Action: "changed", Path: path}
	for _, v := range change.Values {
		r.Keys = append(r.Keys, v.Key)
	}
	r.Text = fmt.Sprintf("ide: %s %s true in %s", strings.Join(r.Keys, " and "), map[bool]string{false: "is now", true: "are now"}[len(r.Keys) > 1], path)
	if f.dryRun {
		r.Text = fmt.Sprintf("ide: %s would be set to true in %s", strings.Join(r.Keys, " and "), path)
		return r, nil
	}
	r.Text += "; " + one.Settings.Later
	record.Settings = append(record.Settings, setupChange{one.Name, change})
	if err := saveSetup(con, record); err != nil { // without the record nothing could be undone
		_, undone := one.Settings.Program.Undo(change, nil)
		return setupReport{}, errors.Join(err, undone)
	}
	return r, nil
}

// undoIDE undoes the changes of an agent's settings, newest first.
func undoIDE(_ context.Context, con *console.Console, one agent.Agent, f setupFlags) (setupReport, error) {
	record, err := loadSetup(con)
	if err != nil {
		return setupReport{}, err
	}
	r, changed, undone := setupReport{}, 0, 0
	for i, c := range slices.Backward(record.Settings) {
		if !c.of(one) {
			continue
		}
		keys, err := one.Settings.Program.Undo(c.Change, &settingsfile.Options{DryRun: f.dryRun})
		if err != nil {
			return setupReport{}, err
		}
		if r.Path == "" {
			r.Path = c.Path
		}
		changed, undone = changed+len(c.Values), undone+len(keys)
		r.Keys = append(r.Keys, keys...)
		if f.dryRun {
			continue
		}
		record.Settings = slices.Delete(slices.Clone(record.Settings), i, i+1)
		if err := saveSetup(con, record); err != nil {
			return setupReport{}, err
		}
	}
	if changed == 0 {
		return setupReport{}, errNothingSetUp
	}
	slices.Sort(r.Keys)
	r.Keys = slices.Compact(r.Keys)
	return undoReport(r, changed, undone, f.dryRun), nil
}

// undoReport describes the result for the changed keys; undone counts the restored ones.
func undoReport(r setupReport, changed, undone int, dryRun bool) setupReport {
	word := "is"
	switch {
	case dryRun:
		word = "would be"
	case len(r.Keys) > 1:
		word = "are"
	}
	switch undone {
	case changed:
		r.Action, r.Text = "undone", fmt.Sprintf("ide: %s %s as before in %s", strings.Join(r.Keys, " and "), word, r.Path)
	case 0:
		r.Action, r.Text = "left", "ide: "+r.Path+" was changed since and stays as it is"
	default:
		r.Action, r.Text = "undone", fmt.Sprintf("ide: %s %s as before in %s; the rest was changed since and stays", strings.Join(r.Keys, " and "), word, r.Path)
	}
	return r
}
