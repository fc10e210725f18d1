package ide

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// A Change is one step of an installation or removal.
type Change struct {
	// Action is write, keep (already there), remove, or leave (the user changed it, so it stays).
	Action string `json:"action"`
	Path   string `json:"path"` // absolute
}

// A Report says what was done, or would be.
type Report struct {
	Editor  string   `json:"editor"`
	Place   string   `json:"place"` // a folder, a program, or, with Snippet, settings in words
	Changes []Change `json:"changes"`
	Snippet string   `json:"snippet,omitempty"` // what the user has to add to Place
}

// Left returns the files that stay because the user changed them.
func (r Report) Left() (paths []string) {
	for _, c := range r.Changes {
		if c.Action == "leave" {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

// A State describes one editor and its plugin.
type State struct {
	Editor    string   `json:"editor"`
	Program   string   `json:"program,omitempty"`   // the editor, absolute; "" if it is not on this machine
	Version   string   `json:"version,omitempty"`   // the editor's version as it reports it; "" if it does not
	Problem   string   `json:"problem,omitempty"`   // why the plugin cannot run in it; "" if nothing is known
	Installed string   `json:"installed,omitempty"` // of the pollux that wrote it, or of a fork's companion; "" for none
	Changed   []string `json:"changed,omitempty"`   // files of the plugin that the user changed
	Kept      []string `json:"kept,omitempty"`      // files that Uninstall left because the user had changed them
}

// record is what an installation wrote; without Files, what Uninstall left.
type record struct {
	Version string            `json:"version"` // pollux's own
	Place   string            `json:"place"`
	Files   map[string]string `json:"files"`          // SHA-256 by path
	Kept    map[string]string `json:"kept,omitempty"` // the same of files that the user changed and no version needs
	Dirs    []string          `json:"dirs"`           // folders that were created, outermost first
}

// ours returns the hash of what was written at path, "" if nothing was.
func (r record) ours(path string) string { return cmp.Or(r.Files[path], r.Kept[path]) }

// says reports whether two records describe the same files of one version.
func (r record) says(other record) bool {
	return r.Version == other.Version && r.Place == other.Place && maps.Equal(r.Files, other.Files) && maps.Equal(r.Kept, other.Kept)
}

// An Installer writes plugins and records what it wrote.
type Installer struct {
	Machine Machine
	// Record is the file of records, in a private folder.
	Record string
	// Command is the pollux that plugins start, absolute; Version is its version.
	Command, Version string
	// DryRun changes nothing.
	DryRun bool
}

// maxRecord bounds the file of records, in bytes.
const maxRecord = 1 << 20

// maxPlugin bounds an installed plugin's file when it is compared, in bytes.
const maxPlugin = 16 << 20

func (i *Installer) load() (map[string]record, error) {
	records := map[string]record{}
	data, err := safefile.ReadPrivate(i.Record, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return records, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &records); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w); move it away and install again", i.Record, err)
	}
	return records, nil
}

func (i *Installer) save(records map[string]record) error {
	data, err := json.MarshalIndent(records, "", "  ")
	if err != nil {
		return err
	}
	if err := safefile.PrivateDir(filepath.Dir(i.Record)); err != nil {
		return err
	}
	return safefile.Write(i.Record, data, nil)
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// Install writes or updates an editor's plugin. It writes nothing if a foreign file is in the way. A second call
// changes nothing.
func (i *Installer) Install(editor string) (Report, error) {
	place, err := i.Machine.place(editor)
	if err != nil {
		return Report{}, err
	}
	files, err := files(editor, i.Command)
	if err != nil {
		return Report{}, err
	}
	records, err := i.load()
	if err != nil {
		return Report{}, err
	}
	old := records[editor]
	report := Report{Editor: editor, Place: place}
	now := record{Version: i.Version, Place: place, Files: map[string]string{}, Kept: map[string]string{}, Dirs: old.Dirs}
	for _, name := range sortedKeys(files) {
		path := filepath.Join(place, filepath.FromSlash(name))
		action, err := i.actionFor(path, files[name], old.ours(path))
		if err != nil {
			return Report{Editor: editor, Place: place}, err
		}
		now.Files[path] = hash(files[name])
		report.Changes = append(report.Changes, Change{action, path})
	}
	older := maps.Clone(old.Kept)
	if older == nil {
		older = map[string]string{}
	}
	maps.Copy(older, old.Files)
	maps.DeleteFunc(older, func(path, _ string) bool { return now.Files[path] != "" })
	removals, kept, err := removeOurs(older, true)
	if err != nil || i.DryRun {
		report.Changes = append(report.Changes, removals...)
		return report, err
	}
	now.Kept = kept
	if old.says(now) && len(removals) == 0 && !slices.ContainsFunc(report.Changes, func(c Change) bool { return c.Action != "keep" }) {
		return report, nil // also when nothing could be written
	}
	records[editor] = now
	if err := i.put(place, files, records, editor); err != nil {
		return Report{Editor: editor, Place: place}, err
	}
	removals, _, err = removeOurs(older, false)
	report.Changes = append(report.Changes, removals...)
	return report, err
}

// put writes the files and then the records, all or nothing.
func (i *Installer) put(place string, files map[string][]byte, records map[string]record, editor string) (err error) {
	var undo []func()
	defer func() {
		if err != nil {
			for _, f := range slices.Backward(undo) {
				f()
			}
			err = fmt.Errorf("the plugin cannot be written: %w; nothing was changed: make that folder yours and writable, then install again", err)
		}
	}()
	now := records[editor]
	for _, name := range sortedKeys(files) {
		path := filepath.Join(place, filepath.FromSlash(name))
		made, err := makeDirs(filepath.Dir(path))
		now.Dirs = append(now.Dirs, made...)
		undo = append(undo, func() { removeDirs(made) })
		if err != nil {
			return err
		}
		before, err := os.ReadFile(path)
		switch {
		case err == nil && bytes.Equal(before, files[name]):
			continue
		case err == nil:
			undo = append(undo, func() { _ = safefile.Write(path, before, nil) })
		default:
			undo = append(undo, func() { _ = os.Remove(path) })
		}
		if err := safefile.Write(path, files[name], &safefile.Options{Mode: 0o644}); err != nil {
			return err
		}
	}
	records[editor] = now
	return i.save(records)
}

// actionFor returns the action for one file, or why there is none.
func (i *Installer) actionFor(path string, content []byte, recorded string) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "write", nil
	}
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file; move it away, then install again", path)
	}
	there, err := os.ReadFile(path)
	switch {
	case err != nil:
		return "", err
	case bytes.Equal(there, content):
		return "keep", nil
	case recorded == hash(there):
		return "write", nil
	case recorded != "":
		return "", fmt.Errorf("%s was changed since pollux wrote it; keep your copy elsewhere and remove it, then install again", path)
	}
	return "", fmt.Errorf("%s exists and was not written by pollux; move it away, then install again", path)
}

// makeDirs makes dir and returns the folders that did not exist, outermost first.
func makeDirs(dir string) (made []string, err error) {
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		made = append([]string{d}, made...)
	}
	return made, os.MkdirAll(dir, 0o755) //nolint:gosec // an editor's own folders, as the editor makes them
}

// removeDirs removes those folders that are empty.
func removeDirs(dirs []string) {
	for _, dir := range slices.Backward(slices.Sorted(slices.Values(dirs))) {
		_ = os.Remove(dir) // fails if the folder is not empty
	}
}

// removeOurs removes files that are unchanged. Files that the user changed stay, and are returned in kept. Missing
// files are not reported.
func removeOurs(files map[string]string, dry bool) (changes []Change, kept map[string]string, err error) {
	kept = map[string]string{}
	for _, path := range sortedKeys(files) {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		there := []byte(nil)
		if err == nil && info.Mode().IsRegular() {
			there, err = os.ReadFile(path)
		}
		if err != nil {
			return changes, kept, err
		}
		if !info.Mode().IsRegular() || hash(there) != files[path] {
			kept[path] = files[path]
			changes = append(changes, Change{"leave", path})
			continue
		}
		if !dry {
			if err := os.Remove(path); err != nil {
				return changes, kept, err
			}
		}
		changes = append(changes, Change{"remove", path})
	}
	return changes, kept, nil
}

// ErrNotInstalled: there is nothing to remove.
var ErrNotInstalled = errors.New("it was not installed by pollux")

// Uninstall removes exactly what Install wrote, except files that the user changed. The report names these with
// "leave", on every call as long as they exist.
func (i *Installer) Uninstall(editor string) (Report, error) {
	records, err := i.load()
	if err != nil {
		return Report{}, err
	}
	old, ok := records[editor]
	if !ok {
		return Report{Editor: editor}, fmt.Errorf("%s: %w", editor, ErrNotInstalled)
	}
	files := maps.Clone(old.Files)
	if files == nil {
		files = map[string]string{}
	}
	maps.Copy(files, old.Kept)
	report := Report{Editor: editor, Place: old.Place}
	var kept map[string]string
	report.Changes, kept, err = removeOurs(files, i.DryRun)
	if err != nil {
		return report, fmt.Errorf("%s cannot be removed: %w; make its folder yours and writable, then uninstall again", editor, err)
	}
	gone := len(old.Files) == 0 && len(report.Changes) == 0 // the user removed the rest
	if !i.DryRun {
		removeDirs(old.Dirs)
		delete(records, editor)
		if len(kept) > 0 {
			records[editor] = record{Version: old.Version, Place: old.Place, Kept: kept, Dirs: old.Dirs}
		}
		err = i.save(records)
	}
	if gone && err == nil {
		err = fmt.Errorf("%s: %w", editor, ErrNotInstalled)
	}
	return report, err
}

// States returns for every editor whether it is installed, its version, and whether it has the plugin. find finds a
// program in PATH, like exec.LookPath. Editors are asked concurrently, each for a few seconds at most.
func (i *Installer) States(ctx context.Context, find func(string) (string, error)) ([]State, error) {
	records, err := i.load()
	if err != nil {
		return nil, err
	}
	all := make([]State, len(Editors()))
	var wait sync.WaitGroup
	for n, editor := range Editors() {
		s := &all[n]
		s.Editor = editor
		for _, program := range commandsOf(editor) {
			if path, err := find(program); err == nil {
				s.Program = path
				wait.Go(func() { s.Version, s.Problem = ask(ctx, editor, path) })
				break
			}
		}
		r := records[editor]
		s.Kept = sortedKeys(r.Kept)
		if len(r.Files) == 0 {
			continue
		}
		s.Installed = r.Version
		for _, path := range sortedKeys(r.Files) {
			if there, _, err := safefile.ReadRegular(path, maxPlugin); err != nil || hash(there) != r.Files[path] {
				s.Changed = append(s.Changed, path)
			}
		}
	}
	wait.Wait()
	return all, nil
}
