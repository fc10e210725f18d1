package workspace

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// An ignoreCache knows the patterns of the workspace's ignore files and reads
// one again when its time or size has changed.
type ignoreCache struct {
	excludes string    // core.excludesFile
	never    []pattern // the user's own list

	mu    sync.Mutex // guards what follows
	files map[string]ignoreFile
}

// An ignoreFile is what was read from one file, and what told that it was current.
type ignoreFile struct {
	modified time.Time
	size     int64
	patterns []pattern
}

// maxIgnoreFiles bounds the cache; beyond it everything is forgotten and read anew.
const maxIgnoreFiles = 4096

func (c *ignoreCache) init(o Options) {
	c.excludes = o.ExcludesFile
	c.never = parsePatterns([]byte(strings.Join(o.NeverShare, "\n")), foldCase)
	c.files = make(map[string]ignoreFile)
}

// load returns the patterns of a file, none when it is not there or not a regular file.
func (c *ignoreCache) load(path string) []pattern {
	if path == "" {
		return nil
	}
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	have, ok := c.files[path]
	if ok && have.modified.Equal(fi.ModTime()) && have.size == fi.Size() {
		return have.patterns
	}
	if len(c.files) >= maxIgnoreFiles {
		clear(c.files)
	}
	have = ignoreFile{modified: fi.ModTime(), size: fi.Size()}
	if f, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0); err == nil {
		defer f.Close()
		if now, err := f.Stat(); err == nil && now.Mode().IsRegular() {
			data, _ := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
			have.patterns = parsePatterns(data, foldCase)
		}
	}
	c.files[path] = have
	return have.patterns
}

// rules are the patterns that hold in one folder, the strongest last: each
// level is one file.
type rules struct {
	levels []level
	names  []string // the folder itself, relative to the top
	all    bool     // the folder itself is ignored, and so is everything in it
}

type level struct {
	depth    int // how many of the names lead to the folder of the file
	patterns []pattern
}

// ignored tells about a name in the folder.
func (r rules) ignored(name string, isDir bool) bool {
	if r.all {
		return true
	}
	if foldCase {
		name = lowerASCII(name)
	}
	names := append(r.names[:len(r.names):len(r.names)], name)
	for i := len(r.levels) - 1; i >= 0; i-- {
		l := r.levels[i]
		for j := len(l.patterns) - 1; j >= 0; j-- {
			if p := &l.patterns[j]; p.matches(names[l.depth:], isDir) {
				return !p.negated
			}
		}
	}
	return false
}

// enter returns the rules of a folder in the one of r. dir is its absolute path.
func (c *ignoreCache) enter(r rules, dir, name string) rules {
	all := r.ignored(name, true)
	if !all && isRepository(dir) {
		return c.top(dir) // a repository in a repository goes by its own rules
	}
	if foldCase {
		name = lowerASCII(name)
	}
	in := rules{all: all, names: append(r.names[:len(r.names):len(r.names)], name)}
	in.levels = append(r.levels[:len(r.levels):len(r.levels)],
		level{len(in.names), c.load(filepath.Join(dir, ".gitignore"))})
	return in
}

// top returns the rules of the uppermost folder of a repository, or of a root that is in none.
func (c *ignoreCache) top(dir string) rules {
	return rules{levels: []level{
		{0, c.load(c.excludes)},
		{0, c.load(filepath.Join(dir, ".git", "info", "exclude"))},
		{0, c.load(filepath.Join(dir, ".gitignore"))},
	}}
}

// at returns the rules of a canonical folder at or below root. They begin at
// the repository that root lies in, whose files hold inside root too.
func (c *ignoreCache) at(root, dir string) rules {
	top := root
	for d := root; ; {
		if isRepository(d) {
			top = d
			break
		}
		up := filepath.Dir(d)
		if up == d {
			break
		}
		d = up
	}
	r := c.top(top)
	rest := strings.Trim(dir[len(top):], string(filepath.Separator))
	if rest == "" {
		return r
	}
	at := top
	for _, name := range strings.Split(rest, string(filepath.Separator)) {
		at = filepath.Join(at, name)
		r = c.enter(r, at, name)
		if samePath(at, root) {
			r.all = false // who opens an ignored folder as a root wants to see what is in it
		}
	}
	return r
}

func isRepository(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

// Ignored reports whether git would ignore a path of the workspace: its own or
// a folder's name fits a pattern of a .gitignore, .git/info/exclude or
// core.excludesFile. What is not in the workspace is not ignored.
func (w *Workspace) Ignored(path string) bool {
	l, err := w.locate(path)
	if err != nil || len(l.names) == 0 {
		return false
	}
	fi, err := os.Lstat(l.path)
	dir := filepath.Dir(l.path)
	return w.ignores.at(l.root, dir).ignored(filepath.Base(l.path), err == nil && fi.IsDir())
}

// MayShare reports whether agents may hear of a file (SPEC C-6, C-8): it is a
// regular file, it lies in the workspace or the settings allow others, and
// neither a .geminiignore on its way nor the user's own list names it or a
// folder above it, under the name given or under the one behind its symlinks.
func (w *Workspace) MayShare(path string) bool {
	if checkPath(path) != nil {
		return false
	}
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() {
		return false
	}
	l, err := w.locate(path)
	if err != nil {
		return w.options.ShareOutside && !w.hidden(filepath.VolumeName(path)+string(filepath.Separator), path)
	}
	if w.hidden(l.root, l.path) {
		return false
	}
	given, ok := w.rootOf(filepath.Clean(path))
	return !ok || !w.hidden(given, filepath.Clean(path))
}

// hidden goes from root down to path and asks the .geminiignore of each folder
// and the user's list.
func (w *Workspace) hidden(root, path string) bool {
	names := strings.Split(strings.Trim(path[len(root):], string(filepath.Separator)), string(filepath.Separator))
	r := rules{levels: []level{{0, w.ignores.never}}}
	dir := root
	for i, name := range names {
		r.levels = append(r.levels, level{len(r.names), w.ignores.load(filepath.Join(dir, ".geminiignore"))})
		if r.ignored(name, i < len(names)-1) {
			return true
		}
		dir = filepath.Join(dir, name)
		if foldCase {
			name = lowerASCII(name)
		}
		r.names = append(r.names, name)
	}
	return false
}
