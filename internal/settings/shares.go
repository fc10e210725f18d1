package settings

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// Whether an agent is told what the user looks at (SPEC C-8), from the strictest.
const (
	ShareLeave  = "leave" // it does not even find this companion, so that it finds another
	ShareNever  = "never"
	ShareAsk    = "ask"
	ShareAlways = "always"
)

// strictness are the modes, from the strictest.
func strictness() []string { return []string{ShareLeave, ShareNever, ShareAsk, ShareAlways} }

// IsShareMode reports whether a text is one of the modes.
func IsShareMode(mode string) bool { return slices.Contains(strictness(), mode) }

// everyAgent stands in the settings for the agents that they do not name.
const everyAgent = "*"

// sharesFolder holds one file for each folder for which the user has decided.
const sharesFolder = "share"

// maxShares bounds such a file, in bytes.
const maxShares = 64 << 10

// Shares knows which agents are told what the user looks at. A decision for a folder holds for the folders below it. It comes before the settings.
// Of several roots the strictest counts. Its methods may be called from any goroutine.
type Shares struct {
	dir      string
	defaults map[string]string
	agents   []string // every agent

	writing sync.Mutex // held from reading a file to its change

	mu     sync.Mutex        // guards the below
	modes  map[string]string // by the agents' names
	forced map[string]bool   // never, although that could not be written down
	asked  map[string]bool   // the question was shown in this life, and not answered
	asking string            // the agent that a question is about; "" for none
	answer context.CancelFunc
}

// A shareFile is what the user has decided for a folder.
type shareFile struct {
	Folder string            `json:"folder"`
	Agents map[string]string `json:"agents"`
}

// NewShares reads nothing yet; call Look. state is the folder of what outlives a companion, defaults are Settings.Share, agents are the
// names of all agents.
func NewShares(state string, defaults map[string]string, agents []string) (*Shares, error) {
	for name := range defaults {
		if name != everyAgent && !slices.Contains(agents, name) {
			return nil, fmt.Errorf("the setting share names %q, which is no agent; the agents are %s", name, strings.Join(agents, ", "))
		}
	}
	return &Shares{
		dir: filepath.Join(state, sharesFolder), defaults: defaults, agents: agents,
		modes: map[string]string{}, forced: map[string]bool{}, asked: map[string]bool{},
	}, nil
}

func (s *Shares) file(folder string) string {
	sum := sha256.Sum256([]byte(folder))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:8])+".json")
}

// load reads the file of a folder. A missing file is no error.
func (s *Shares) load(folder string) (f shareFile, err error) {
	path := s.file(folder)
	data, err := safefile.ReadPrivate(path, maxShares)
	if errors.Is(err, fs.ErrNotExist) {
		return shareFile{Folder: folder, Agents: map[string]string{}}, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err == nil && f.Folder != folder {
		err = errors.New("it is about another folder")
	}
	if err != nil {
		return f, fmt.Errorf("%q says with whom you share what you look at, and cannot be used (%w); remove it and decide again with pollux share", path, err)
	}
	if f.Agents == nil {
		f.Agents = map[string]string{}
	}
	return f, nil
}

// recorded returns the decision for the nearest of a folder and the folders above it; "" for none, never when a file cannot be used.
func (s *Shares) recorded(root, name string) string {
	for folder := root; ; folder = filepath.Dir(folder) {
		f, err := s.load(folder)
		if err != nil {
			return ShareNever
		}
		if mode := f.Agents[name]; mode != "" {
			if !IsShareMode(mode) {
				return ShareNever
			}
			return mode
		}
		if filepath.Dir(folder) == folder {
			return ""
		}
	}
}

// Look finds out the modes for these roots.
func (s *Shares) Look(roots []string) {
	modes := map[string]string{}
	for _, name := range s.agents {
		preset := cmp.Or(s.defaults[name], s.defaults[everyAgent], ShareAlways)
		mode := preset
		for i, root := range roots {
			of := cmp.Or(s.recorded(root, name), preset)
			if i == 0 || slices.Index(strictness(), of) < slices.Index(strictness(), mode) {
				mode = of
			}
		}
		modes[name] = mode
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.forced {
		modes[name] = ShareNever
	}
	s.modes = modes
	if s.asking != "" && modes[s.asking] != ShareAsk {
		s.answer()
	}
}

// Set decides for every root. What cannot be written down counts for this life alone if it is never, and not at all otherwise.
func (s *Shares) Set(roots []string, name, mode string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	var errs []error
	for _, root := range roots {
		f, err := s.load(root)
		if err == nil {
			f.Agents[name] = mode
			err = s.write(f)
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.forced, name)
	if err != nil || len(roots) == 0 {
		s.forced[name] = true
	}
	return err
}

func (s *Shares) write(f shareFile) error {
	data, err := json.Marshal(f)
	if err == nil {
		err = safefile.PrivateDir(s.dir)
	}
	if err == nil {
		err = safefile.Write(s.file(f.Folder), data, &safefile.Options{Mode: 0o600})
	}
	return err
}

// Mode returns an agent's mode; never for an unknown agent.
func (s *Shares) Mode(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.modes[name], ShareNever)
}

// Withheld returns the agents that are told nothing.
func (s *Shares) Withheld() (names []string) {
	return slices.DeleteFunc(slices.Clone(s.agents), func(name string) bool { return s.Mode(name) == ShareAlways })
}

// Begin marks a question about an agent as asked; ok is false when it was asked before, or another question stands.
func (s *Shares) Begin(name string, answer context.CancelFunc) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking != "" || s.asked[name] || s.modes[name] != ShareAsk {
		return false
	}
	s.asking, s.answer = name, answer
	return true
}

// End notes that the question is over; again allows it to be asked anew.
func (s *Shares) End(again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[s.asking] = !again
	s.asking = ""
}

// A Pause is the file that says that sharing is paused for a set of roots. It outlives the companion, so that no restart shares what the
// user wants kept private.
type Pause string

// PauseOf returns the pause of these roots; state is as for NewShares.
func PauseOf(state string, roots []string) Pause {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(roots)), "\x00")))
	return Pause(filepath.Join(state, "paused", hex.EncodeToString(sum[:8])))
}

// Holds says whether sharing is paused. When that cannot be told, it is.
func (p Pause) Holds() bool {
	_, err := os.Lstat(string(p))
	return !errors.Is(err, fs.ErrNotExist)
}

// Set writes the start or the end of the pause down.
func (p Pause) Set(now bool) error {
	if !now {
		if err := os.Remove(string(p)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	err := safefile.PrivateDir(filepath.Dir(string(p)))
	if err == nil {
		err = safefile.Write(string(p), nil, &safefile.Options{Mode: 0o600})
	}
	return err
}
