package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// A Trouble is an entry of a folder that cannot be installed unchanged.
type Trouble struct {
	Entry   string // slash-separated; "" for the whole folder
	Why     string
	Refused bool // an install would refuse the folder; otherwise it is only worth knowing
}

// maxTroubles bounds a report to a length that people read.
const maxTroubles = 100

// CheckFolder returns every reason why an install from the folder dir would be refused, apart from its manifest, and
// the links that lead nowhere. It copies nothing and follows no link. Nil limits are defaultLimits.
func CheckFolder(dir string, l *Limits) ([]Trouble, error) {
	root, err := manifest.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var found []Trouble
	add := func(name string, err error) {
		why := err.Error()
		if r := (*refusal)(nil); errors.As(err, &r) {
			why = r.why
		}
		found = append(found, Trouble{Entry: name, Why: why, Refused: true})
	}
	m := &meter{Limits: l.orDefault()}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case len(found) >= maxTroubles:
			return fs.SkipAll
		case err != nil:
			add(name, fmt.Errorf("cannot be read: %w", safefile.Cause(err)))
			return fs.SkipDir
		case name == ".":
			return nil
		case !manifest.IsContent(name) && d.IsDir():
			return fs.SkipDir
		case !manifest.IsContent(name):
			return nil
		}
		if err := m.entry(name); err != nil {
			add(name, err)
			return fs.SkipAll // all others would exceed it too
		}
		if err := checkEntry(root, m, name, d); err != nil {
			add(name, err)
		} else if why := unusable(root, name, d); why != "" {
			found = append(found, Trouble{Entry: name, Why: why, Refused: d.Type().IsRegular()})
		}
		return nil
	})
	if err == nil && len(found) == 0 {
		if _, err := manifest.ReadTree(dir); err != nil {
			found = append(found, Trouble{Why: err.Error(), Refused: true})
		}
	}
	return found, err
}

// unusable says what is wrong with an entry of an allowed kind: an unreadable file, or a link that leads nowhere.
func unusable(root *os.Root, name string, d fs.DirEntry) string {
	local := filepath.FromSlash(name)
	switch {
	case d.Type()&fs.ModeSymlink != 0:
		if _, err := root.Stat(local); errors.Is(err, fs.ErrNotExist) {
			target, _ := root.Readlink(local) // it existed a moment ago
			return fmt.Sprintf("is a link to %q, which is not there", target)
		}
	case d.Type().IsRegular():
		f, err := root.OpenFile(local, os.O_RDONLY|safefile.NoWait, 0)
		if err != nil {
			return fmt.Sprintf("cannot be read: %v", safefile.Cause(err))
		}
		f.Close()
	}
	return ""
}
