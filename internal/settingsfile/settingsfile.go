// Package settingsfile reads and changes another program's settings in JSON with comments. Everything else in the
// file is preserved: comments, order, indentation, line ends, mode and links (SPEC §11.6).
package settingsfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// A Program is the owner of the settings, as messages name it: "Gemini CLI".
type Program string

// ClaudeCode takes no comments, but a byte order mark and an empty file, other than the other programs.
const ClaudeCode Program = "Claude Code"

// maxFile bounds a settings file, in bytes.
const maxFile = 1 << 20

// A problem is a place in the settings that the program would reject or misread.
type problem struct {
	File         string
	Line, Column int // 1-based; the column counts bytes
	Text         string
}

func (p *problem) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Text)
}

// Get reads one switch, such as "ide.enabled", from the file at path; nil means that it is not set. A missing file
// sets nothing and is no error. A file that the program cannot read is a *problem.
func (p Program) Get(path, key string) (*bool, error) {
	f, err := p.open(path)
	if err == nil {
		err = f.loads()
	}
	if err != nil {
		return nil, err
	}
	return f.get(key)
}

// Decode reads the whole file into v, like encoding/json, ignoring comments. A missing file leaves v unchanged.
func (p Program) Decode(path string, v any) error {
	f, err := p.open(path)
	if err != nil || f.root == nil {
		return err
	}
	return json.Unmarshal(plain(f.text()), v)
}

// A Change is what Set did to a file, in a form that can be stored as JSON and undone. It holds only the changed
// parts of the file.
type Change struct {
	Path    string  `json:"path"`              // the settings file, as the program names it
	Created bool    `json:"created,omitempty"` // the file did not exist
	Folder  bool    `json:"folder,omitempty"`  // nor did its folder
	Before  string  `json:"before,omitempty"`  // SHA-256 of the file, hexadecimal
	After   string  `json:"after"`
	Edits   []Edit  `json:"edits,omitempty"`
	Values  []Value `json:"values"`
}

// A Value is one key before and after a change.
type Value struct {
	Key string `json:"key"`
	Old *bool  `json:"old"` // nil: the key was missing
	New bool   `json:"new"`
}

// An Edit replaces Old by New at Offset, in bytes from the start of the old text.
type Edit struct {
	Offset int    `json:"offset"`
	Old    string `json:"old,omitempty"`
	New    string `json:"new,omitempty"`
}

// Options of Set and Undo; nil means the zero value.
type Options struct {
	DryRun bool // change nothing, and return what would change

	beforeWrite func() // lets a test change the file at this point
}

// errChanging: another program kept changing the file.
var errChanging = errors.New("another program is changing it at this moment; try again")

// attempts is how often a change is tried when another program interferes.
const attempts = 5

// Set switches keys on, such as "ide.enabled", and preserves everything else. All keys are members of one object. A
// missing file is created. If the returned Change has no Values, the keys were already on and nothing was written. A
// file that the program cannot read is a *problem, and is not changed.
func (p Program) Set(path string, keys []string, o *Options) (Change, error) {
	c := Change{Path: path}
	err := p.replace(path, keys, o, func(f *file) ([]byte, error) {
		c = Change{Path: path, Created: f.missing, Folder: f.noFolder}
		edits, values, err := f.set(keys)
		if err != nil || len(values) == 0 {
			return nil, err
		}
		next := apply(f.data, edits)
		c.Edits, c.Values, c.After = edits, values, hash(next)
		if !f.missing {
			c.Before = hash(f.data)
		}
		return next, nil
	})
	if err != nil {
		return Change{Path: path}, err
	}
	return c, nil
}

// Undo takes back what Set did: byte for byte if the file is still as Set left it; otherwise it restores the values
// that are. It returns the restored keys.
func (p Program) Undo(c Change, o *Options) (keys []string, err error) {
	var changed []string
	for _, v := range c.Values {
		changed = append(changed, v.Key)
	}
	remove := false
	err = p.replace(c.Path, changed, o, func(f *file) ([]byte, error) {
		keys, remove = nil, false
		if f.missing {
			return nil, nil
		}
		if hash(f.data) == c.After {
			keys = changed
			if remove = c.Created; remove {
				return nil, nil
			}
			if old, ok := revert(f.data, c.Edits); ok && hash(old) == c.Before {
				return old, nil
			}
		}
		var next []byte
		var err error
		next, keys, err = f.restore(c.Values)
		if len(keys) == 0 {
			return nil, err
		}
		return next, err
	})
	if err != nil || !remove || o != nil && o.DryRun {
		return keys, err
	}
	target, err := filepath.EvalSymlinks(c.Path)
	if err == nil {
		err = os.Remove(target)
	}
	if c.Folder {
		_ = os.Remove(filepath.Dir(c.Path)) // fails if the folder is not empty
	}
	return keys, err
}

// replace reads the file, asks change for the new content (nil: unchanged) and writes it. If somebody else changed
// the file meanwhile, it starts again. keys are for messages.
func (p Program) replace(path string, keys []string, o *Options, change func(*file) ([]byte, error)) error {
	if o == nil {
		o = &Options{}
	}
	for range attempts {
		f, err := p.open(path)
		if err != nil {
			return err
		}
		next, err := change(f)
		if err != nil || next == nil || o.DryRun {
			return err
		}
		if err := f.writable(keys); err != nil {
			return err
		}
		if o.beforeWrite != nil {
			o.beforeWrite()
		}
		now, err := p.open(path)
		if err != nil {
			return err
		}
		if now.target != f.target || now.missing != f.missing || !bytes.Equal(now.data, f.data) {
			continue
		}
		return f.write(next)
	}
	return fmt.Errorf("%s: %w", path, errChanging)
}

// A file is the settings at one moment.
type file struct {
	program  Program
	path     string // as the program names it
	target   string // after following all links
	missing  bool
	noFolder bool
	mode     fs.FileMode
	data     []byte
	root     *object // of data
}

func (p Program) open(path string) (*file, error) {
	f := &file{program: p, path: path, target: path}
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		_, err := os.Stat(filepath.Dir(path))
		f.missing, f.noFolder = true, errors.Is(err, fs.ErrNotExist)
		return f, f.parse()
	}
	if err != nil {
		return nil, err
	}
	if f.target, err = filepath.EvalSymlinks(path); err != nil {
		return nil, fmt.Errorf("%s is a link to nothing; remove it, or create the file that it names: %w", path, err)
	}
	info, err := os.Stat(f.target)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file; move it away and try again", f.target)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has %d bytes, more than the %d that pollux reads", f.target, info.Size(), maxFile)
	}
	f.mode = info.Mode()
	if f.data, err = os.ReadFile(f.target); err != nil {
		return nil, err
	}
	return f, f.parse()
}

// writable respects a file that its owner has made read-only.
func (f *file) writable(keys []string) error {
	if !f.missing && f.mode.Perm()&0o200 == 0 {
		return fmt.Errorf("%s is read-only; make it writable (chmod u+w), or set %s where it is made", f.target, strings.Join(keys, " and "))
	}
	return nil
}

func (f *file) write(data []byte) error {
	if f.noFolder {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
			return err
		}
	}
	return safefile.Write(f.target, data, &safefile.Options{KeepMode: true})
}
