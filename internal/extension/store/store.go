// Package store keeps installed extensions where Gemini CLI keeps them and as it keeps them, so
// that either program lists, loads, updates and removes what the other
// installed; but no step of it, interrupted or failing, leaves anything half-done.
//
// Every change is prepared beside the extensions folder on the same file
// system, written to a journal, made by one rename, and settled; a process that
// dies in between is rolled forward or back by the next one (see change).
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

// Options say where the store lies; nil means this user's own.
type Options struct {
	// Home is the folder that holds .gemini; "" takes GEMINI_CLI_HOME, else the home folder.
	Home string
	// WorkDir is the folder that "workspace" means, absolute; "" is the working folder.
	WorkDir string
	// Warn is told what the user should know though it stops nothing; nil for nobody.
	Warn func(string)
}

// Store is the extensions of one user. It holds no state of its own beside
// paths and where secrets are kept: every call reads the disk anew, because Gemini CLI writes there too. It is
// safe for concurrent use; changes take a lock that other processes of pollux respect as well.
type Store struct {
	home    string // the user's, as the CLI's rules for "user" mean it
	gemini  string // home/.gemini
	workDir string
	warn    func(string)
	now     func() time.Time

	findKeys sync.Once
	keys     keychain // set by findKeys

	// fault is called before each step of a change; a test ends the process or fails there.
	fault func(step string) error
	// exchange is swap; a test takes it away as a file system without it does.
	exchange func(a, b string) error
}

// Open finds the store; it creates nothing and reads nothing yet.
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

// Dir is the folder that holds one folder for each extension.
func (s *Store) Dir() string { return filepath.Join(s.gemini, "extensions") }

// own is a path below pollux's own folder in .gemini, which the CLI does not look into.
func (s *Store) own(elem ...string) string {
	return filepath.Join(append([]string{s.gemini, "pollux"}, elem...)...)
}

// stagingDir is where changes are prepared: outside the extensions folder,
// whose every sub-folder with a manifest the CLI loads, but on the same file system, also where
// the user made the extensions folder a link to another disk.
func (s *Store) stagingDir() string {
	real, err := filepath.EvalSymlinks(s.Dir())
	if err != nil || real == s.Dir() || filepath.Dir(real) == paths.Real(s.gemini) {
		return s.own("staging")
	}
	return filepath.Join(filepath.Dir(real), ".pollux-staging")
}

// folder is where the extension called name lies.
func (s *Store) folder(name string) string { return filepath.Join(s.Dir(), name) }

// NotFoundError says that no extension of a name is installed.
type NotFoundError struct {
	Name    string
	Nearest []string // names that the user may have meant, the nearest first
}

// Error names the extension, and the nearest names.
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

// ErrExists marks an install of a name that is taken.
var ErrExists = errors.New("already installed")

// ErrPolicy marks what the CLI's security settings forbid.
var ErrPolicy = errors.New("forbidden by settings")

// exists says whether anything lies at path, a dangling link included.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
