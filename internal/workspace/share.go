package workspace

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/paths"
)

// ignoreNames are the files by which the author of a folder keeps files from agents, all in the form of a .gitignore. Each binds what
// every agent is told, whichever agent reads the file itself.
var ignoreNames = [...]string{".geminiignore", ".qwenignore", ".agentignore", ".aiignore", ".aiexclude"} //nolint:gochecknoglobals // constant

// A Withheld folder is not shared at all, because one of its ignore files, or an agent's settings, cannot be followed: nobody knows
// what the file should hide.
type Withheld struct {
	Folder  string // absolute; "" for every folder
	File    string // the ignore file or the settings, absolute
	Problem string // the rest of a sentence that begins with File
	From    string // the label of the only agent that is told nothing; "" for all agents
}

func (w Withheld) String() string {
	what, whom := "no file", "agents"
	if w.Folder != "" {
		what = fmt.Sprintf("nothing in %q", w.Folder)
	}
	if w.From != "" {
		whom = w.From
	}
	return fmt.Sprintf("%s is shared with %s: %q %s", what, whom, w.File, w.Problem)
}

// withholding remembers which folders are withheld.
type withholding struct {
	mu    sync.Mutex // guards what follows
	files map[string]string
}

// note records what was found out about a file, and says whether it is new. "" means no problem.
func (h *withholding) note(file, problem string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, known := h.files[file]
	switch {
	case problem == "" && known:
		delete(h.files, file)
	case problem != "" && (known || len(h.files) < maxIgnoreFiles):
		if h.files == nil {
			h.files = make(map[string]string)
		}
		h.files[file] = problem
	}
	return problem != "" && problem != was
}

// Withheld lists the folders whose ignore file cannot be followed, among the folders in which a file was looked at
// since the start.
func (w *Workspace) Withheld() []Withheld {
	w.withheld.mu.Lock()
	files := make([]string, 0, len(w.withheld.files))
	for file := range w.withheld.files {
		files = append(files, file)
	}
	w.withheld.mu.Unlock()
	e := &effort{left: contextEffort, bytes: contextBytes}
	var list []Withheld
	for _, file := range files {
		var f *ignoreFile
		if d, folder := w.denierOf(file); d != nil {
			f = w.loadDenials(d, file, folder, e)
		} else {
			f = w.ignores.load(file, e)
		}
		if f == nil {
			f = &ignoreFile{path: file}
		}
		w.withheld.note(file, f.problem)
		if f.problem != "" {
			list = append(list, w.withholds(file, f.problem))
		}
	}
	slices.SortFunc(list, func(a, b Withheld) int { return cmp.Compare(a.File, b.File) })
	return list
}

// withholds says what a file with a problem withholds.
func (w *Workspace) withholds(file, problem string) Withheld {
	if d, folder := w.denierOf(file); d != nil {
		return Withheld{Folder: folder, File: file, Problem: problem, From: d.Label}
	}
	return Withheld{Folder: filepath.Dir(file), File: file, Problem: problem}
}

// Sharing returns a function that says whether agents may hear of a file (SPEC C-6, C-8). The file must be a
// regular file, and lie in the workspace unless the settings allow others. Nothing may name it or a folder above it: not
// the user's own list, the list of secrets (see Secret), or an ignore file on its way (.geminiignore and its kin). That holds for the
// given name and for the one behind its symlinks. An ignore file cannot show what the lists or files of another name hide. A folder
// with an ignore file that cannot be followed completely is withheld, with everything in it.
//
// The function judges the files of one moment. Many files then cost little more than one: ignore files are
// read once, and patterns that take too long are given up, which withholds their folder. It is not safe for concurrent use.
func (w *Workspace) Sharing() (mayShare func(path string) bool) {
	return w.newSharing().may
}

func (w *Workspace) newSharing() *sharing {
	return &sharing{w: w, effort: effort{left: contextEffort, bytes: contextBytes}, folders: make(map[folderKey]*sharedFolder), spent: make(map[*ignoreFile]int)}
}

// A sharing is one call of Sharing.
type sharing struct {
	w       *Workspace
	effort  effort
	folders map[folderKey]*sharedFolder
	spent   map[*ignoreFile]int // steps
}

type folderKey struct{ root, dir string }

// A sharedFolder is a folder on the way to a file.
type sharedFolder struct {
	rules  [len(ignoreNames)]rules // those of each name by themselves
	hidden bool                    // the folder is hidden, and so is everything in it
}

func (s *sharing) may(path string) bool {
	if s.effort.exhausted() || checkPath(path) != nil || !utf8.ValidString(path) { // JSON would name another file
		return false
	}
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() {
		return false
	}
	l, err := s.w.locate(path)
	if err != nil {
		return s.w.options.ShareOutside && !s.hidden(filepath.VolumeName(path)+string(filepath.Separator), filepath.Clean(path), false)
	}
	if s.hidden(l.root, l.path, false) {
		return false
	}
	given, ok := s.w.rootOf(filepath.Clean(path))
	return !ok || !s.hidden(given, filepath.Clean(path), false)
}

// Secret reports whether a file usually holds passwords, tokens or private keys, by its own name or the name behind its
// symlinks. The user's own list can allow it. The file need not exist.
func (w *Workspace) Secret(path string) bool {
	for _, p := range []string{filepath.Clean(path), paths.Real(path)} {
		below := p[len(filepath.VolumeName(p)):]
		if root, ok := w.rootOf(p); ok {
			below = p[len(root):]
		}
		names := strings.FieldsFunc(filepath.ToSlash(below), func(c rune) bool { return c == '/' })
		for i := range names {
			if w.ignores.secret(names[:i+1], i+1 < len(names)) {
				return true
			}
		}
	}
	return false
}

// secret says whether the user's list or the list of secrets hides a path; names are its components from a root.
func (c *ignoreCache) secret(names []string, isDir bool) bool {
	if paths.FoldCase() {
		names = slices.Clone(names)
		for i, name := range names {
			names[i] = lowerASCII(name)
		}
	}
	// These lists have no bound on their cost: the user or pollux wrote them.
	if p, ok := c.never.last(names, isDir, nil); ok {
		return !p.negated
	}
	p, ok := c.secrets.last(names, isDir, nil)
	return ok && !p.negated
}

// hidden checks a path below root against the lists, and against the ignore files of each folder on its way.
func (s *sharing) hidden(root, path string, isDir bool) bool {
	f := s.folder(root, filepath.Dir(path))
	if f.hidden {
		return true
	}
	names := f.rules[0].in(filepath.Base(path)).names
	if s.w.ignores.secret(names, isDir) {
		return true
	}
	for _, r := range f.rules {
		if s.hides(r, names, isDir) {
			return true
		}
	}
	return false
}

// hides says whether rules hide a name; the strongest pattern that fits decides.
func (s *sharing) hides(r rules, names []string, isDir bool) bool {
	for i := len(r.levels) - 1; i >= 0; i-- {
		l := r.levels[i]
		before := s.effort.left
		p, ok := l.file.last(names[l.depth:], isDir, &s.effort)
		s.spent[l.file] += before - s.effort.left
		if s.effort.exhausted() {
			s.giveUp()
			return true
		}
		if ok {
			return !p.negated
		}
	}
	return false
}

// folder returns what is known of root or a folder below it.
func (s *sharing) folder(root, dir string) *sharedFolder {
	key := folderKey{root, dir}
	if f := s.folders[key]; f != nil {
		return f
	}
	f := &sharedFolder{}
	if len(dir) > len(root) {
		f.hidden = s.hidden(root, dir, true)
		f.rules = s.folder(root, filepath.Dir(dir)).rules
		for i := range f.rules {
			f.rules[i] = f.rules[i].in(filepath.Base(dir))
		}
	}
	if !f.hidden {
		for i, name := range ignoreNames {
			path := filepath.Join(dir, name)
			file := s.w.ignores.load(path, &s.effort)
			if file != nil && file.problem != "" {
				f.hidden = true
				s.withhold(file, file.problem)
			} else {
				s.w.withheld.note(path, "")
			}
			f.rules[i] = f.rules[i].with(file)
		}
	}
	s.folders[key] = f
	return f
}

// giveUp withholds the folder of the file whose patterns took the most steps. No file that has not been judged yet
// is shared in this moment.
func (s *sharing) giveUp() {
	var most *ignoreFile
	for f, steps := range s.spent {
		if most == nil || steps > s.spent[most] {
			most = f
		}
	}
	s.w.ignores.blame(most, tooCostly)
	s.withhold(most, tooCostly)
}

func (s *sharing) withhold(f *ignoreFile, problem string) {
	if s.w.withheld.note(f.path, problem) && s.w.options.Withholds != nil {
		s.w.options.Withholds(Withheld{Folder: filepath.Dir(f.path), File: f.path, Problem: problem})
	}
}
