package ide

import (
	"bytes"
	"cmp"
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

	"github.com/pollux-companion/pollux/internal/safefile"
)

// A Change is one step of an installation or removal.
type Change struct {
	// Action is write, keep (it is there already), remove, or leave (the
	// user changed it, so it stays).
	Action string `json:"action"`
	Path   string `json:"path"` // absolute
}

// A Report says what was done, or would be.
type Report struct {
	Editor  string   `json:"editor"`
	Place   string   `json:"place"`
	Changes []Change `json:"changes"`
}

// A State is what is known of one editor.
type State struct {
	Editor    string   `json:"editor"`
	Program   string   `json:"program,omitempty"`   // of the editor, absolute; "" when it is not on this machine
	Installed string   `json:"installed,omitempty"` // the version of pollux that wrote the plugin; "" for none
	Changed   []string `json:"changed,omitempty"`   // files of the plugin that are not what was written
}

// record is what an installation wrote.
type record struct {
	Version string            `json:"version"` // pollux's own
	Place   string            `json:"place"`
	Files   map[string]string `json:"files"` // SHA-256 by path
	Dirs    []string          `json:"dirs"`  // that did not exist before, outermost first
}

// An Installer writes plugins and remembers what it wrote.
type Installer struct {
	Machine Machine
	// Record is the file that remembers, below a private folder.
	Record string
	// Command is the pollux that plugins start, absolute; Version its version.
	Command, Version string
	// DryRun changes nothing.
	DryRun bool
}

// maxRecord bounds the file of records, in bytes.
const maxRecord = 1 << 20

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

// Install writes an editor's plugin, or brings it up to date. Nothing is
// written when a file that is not ours is in the way. Twice changes nothing.
func (i *Installer) Install(editor string) (Report, error) {
	place, err := i.Machine.Place(editor)
	if err != nil {
		return Report{}, err
	}
	files, err := Files(editor, i.Command)
	if err != nil {
		return Report{}, err
	}
	records, err := i.load()
	if err != nil {
		return Report{}, err
	}
	old := records[editor]
	report := Report{Editor: editor, Place: place}
	for _, name := range sortedKeys(files) {
		path := filepath.Join(place, filepath.FromSlash(name))
		action, err := i.plan(path, files[name], old.Files[path])
		if err != nil {
			return Report{Editor: editor, Place: place}, err
		}
		report.Changes = append(report.Changes, Change{action, path})
	}
	if i.DryRun {
		return report, nil
	}
	now := record{Version: i.Version, Place: place, Files: map[string]string{}, Dirs: old.Dirs}
	for _, name := range sortedKeys(files) {
		path := filepath.Join(place, filepath.FromSlash(name))
		made, err := makeDirs(filepath.Dir(path))
		now.Dirs = append(now.Dirs, made...)
		if err == nil {
			now.Files[path] = hash(files[name])
			err = put(path, files[name])
		}
		if err != nil {
			maps.Copy(now.Files, old.Files)
			records[editor] = now // so that uninstall knows what there is
			return report, errors.Join(fmt.Errorf("the plugin cannot be written: %w; make that folder yours and writable, then install again", err), i.save(records))
		}
	}
	for _, path := range sortedKeys(old.Files) { // of an older version
		if _, still := now.Files[path]; !still {
			report.Changes = append(report.Changes, removeOurs(path, old.Files[path], false))
		}
	}
	records[editor] = now
	return report, i.save(records)
}

// plan says what becomes of one file, or why nothing may.
func (i *Installer) plan(path string, content []byte, recorded string) (string, error) {
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

func put(path string, content []byte) error {
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
		return nil
	}
	return safefile.Write(path, content, &safefile.Options{Mode: 0o644})
}

// makeDirs makes dir and returns which folders did not exist, outermost first.
func makeDirs(dir string) (made []string, err error) {
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		made = append([]string{d}, made...)
	}
	return made, os.MkdirAll(dir, 0o755) //nolint:gosec // an editor's own folders, as the editor makes them
}

// removeOurs removes a file that is what was written; one that the user changed stays.
func removeOurs(path, recorded string, dry bool) Change {
	there, err := os.ReadFile(path)
	if info, lerr := os.Lstat(path); err != nil || lerr != nil || !info.Mode().IsRegular() || hash(there) != recorded {
		return Change{"leave", path}
	}
	if !dry && os.Remove(path) != nil {
		return Change{"leave", path}
	}
	return Change{"remove", path}
}

// ErrNotInstalled: there is nothing to remove.
var ErrNotInstalled = errors.New("it was not installed by pollux")

// Uninstall removes exactly what Install wrote, except files that the user
// changed, which the report names with "leave".
func (i *Installer) Uninstall(editor string) (Report, error) {
	records, err := i.load()
	if err != nil {
		return Report{}, err
	}
	old, ok := records[editor]
	if !ok {
		return Report{Editor: editor}, fmt.Errorf("%s: %w", editor, ErrNotInstalled)
	}
	report := Report{Editor: editor, Place: old.Place}
	for _, path := range sortedKeys(old.Files) {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		report.Changes = append(report.Changes, removeOurs(path, old.Files[path], i.DryRun))
	}
	if i.DryRun {
		return report, nil
	}
	for _, dir := range slices.Backward(slices.Sorted(slices.Values(old.Dirs))) {
		_ = os.Remove(dir) // not when something else is in it
	}
	delete(records, editor)
	return report, i.save(records)
}

// States says of every editor whether it is here and has the plugin; find
// finds a program in PATH, as exec.LookPath does.
func (i *Installer) States(find func(string) (string, error)) ([]State, error) {
	records, err := i.load()
	if err != nil {
		return nil, err
	}
	var all []State
	for _, editor := range Editors() {
		s := State{Editor: editor}
		for _, program := range Programs(editor) {
			if path, err := find(program); err == nil {
				s.Program = path
				break
			}
		}
		if r, ok := records[editor]; ok {
			s.Installed = r.Version
			for _, path := range sortedKeys(r.Files) {
				if there, err := os.ReadFile(path); err != nil || hash(there) != r.Files[path] {
					s.Changed = append(s.Changed, path)
				}
			}
		}
		all = append(all, s)
	}
	return all, nil
}
