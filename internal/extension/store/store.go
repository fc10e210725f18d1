// Package store keeps installed extensions where and how Gemini CLI keeps them, so that either program lists, loads,
// updates and removes what the other installed. No step, interrupted or failing, leaves anything half-done.
//
// Every change is prepared beside the extensions folder on the same file system, written to a journal, made by one
// rename, and settled. If a process dies in between, the next one rolls the change forward or back (see change).
package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/words"
)

// Options say where the store is; nil means the current user's.
type Options struct {
	// Home is the folder that contains .gemini; "" means GEMINI_CLI_HOME, or the home folder.
	Home string
	// WorkDir is the folder that "workspace" means, absolute; "" means the working folder.
	WorkDir string
	// Warn is told what the user should know although nothing failed; nil for nobody.
	Warn func(string)
}

// Store is one user's extensions. It holds only paths and the place of secrets; every call reads the disk again,
// because Gemini CLI writes there too. It is safe for concurrent use. Changes take a lock that other pollux processes
// respect.
type Store struct {
	home    string // the home folder in the CLI's rules for the scope "user"
	gemini  string // home/.gemini
	workDir string
	warn    func(string)
	now     func() time.Time

	findKeys sync.Once
	keys     keychain // set by findKeys

	// fault is called before each step of a change; a test ends the process or fails there.
	fault func(step string) error
	// exchange is swap; a test replaces it to simulate a file system without it.
	exchange func(a, b string) error
}

// Open returns the store. It neither reads nor creates anything yet.
func Open(opts *Options) (*Store, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.Home == "" {
		o.Home = os.Getenv("GEMINI_CLI_HOME")
	}
	if o.Home == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, errors.New("there is no home folder: HOME is not set (nor GEMINI_CLI_HOME); set it and try again")
		}
		o.Home = home
	}
	home, err := filepath.Abs(o.Home)
	if err != nil {
		return nil, err
	}
	if o.WorkDir == "" {
		if o.WorkDir, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("the working folder is gone: %w", err)
		}
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	return &Store{
		home: home, gemini: filepath.Join(home, ".gemini"), workDir: filepath.Clean(o.WorkDir),
		warn: o.Warn, now: time.Now, fault: func(string) error { return nil }, exchange: swap,
	}, nil
}

// Dir returns the folder with one folder for each extension.
func (s *Store) Dir() string { return filepath.Join(s.gemini, "extensions") }

// own returns a path below pollux's own folder in .gemini, which the CLI ignores.
func (s *Store) own(elem ...string) string {
	return filepath.Join(append([]string{s.gemini, "pollux"}, elem...)...)
}

// stagingDir returns the folder in which changes are prepared. It is outside the extensions folder, where the CLI
// loads every sub-folder with a manifest. It is on the same file system, even if the extensions folder is a link to
// another disk.
func (s *Store) stagingDir() string {
	real, err := filepath.EvalSymlinks(s.Dir())
	if err != nil || real == s.Dir() || filepath.Dir(real) == paths.Real(s.gemini) {
		return s.own("staging")
	}
	return filepath.Join(filepath.Dir(real), ".pollux-staging")
}

// folder returns the folder of the extension called name.
func (s *Store) folder(name string) string { return filepath.Join(s.Dir(), name) }

// NotFoundError says that no extension with this name is installed.
type NotFoundError struct {
	Name    string
	Nearest []string // similar names, the nearest first
}

// Error names the extension and the nearest names.
func (e *NotFoundError) Error() string {
	text := fmt.Sprintf("no extension %q is installed", words.Printable(e.Name))
	switch len(e.Nearest) {
	case 0:
		return text + "; pollux extensions list shows those that are"
	case 1:
		return text + fmt.Sprintf("; did you mean %q?", e.Nearest[0])
	}
	text += "; did you mean "
	for i, n := range e.Nearest {
		if i > 0 {
			text += " or "
		}
		text += fmt.Sprintf("%q", n)
	}
	return text + "?"
}

// ErrExists marks an install under a name that is already used.
var ErrExists = errors.New("already installed")

// errPolicy marks what the CLI's security settings forbid.
var errPolicy = errors.New("forbidden by settings")

// exists says whether anything is at path, even a dangling link.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
