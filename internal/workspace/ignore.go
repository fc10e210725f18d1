package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// Bounds on what the cache remembers of ignore files. Beyond them it forgets everything and reads anew.
const (
	maxIgnoreFiles = 4096
	maxIgnoreBytes = 8 << 20
)

// Bounds on the steps of matching: for everything in one context, which takes a few milliseconds, and for one entry
// of a listing.
const (
	contextEffort = 1 << 20
	contextBytes  = maxIgnoreFile // bytes that are read and parsed anew
	entryEffort   = 1 << 20
)

// stampGrain is how coarse a file system's times may be. A file that was written this shortly before it was read
// may have been written again without a visible change of its time.
const stampGrain = 2 * time.Second

// An ignoreCache holds the patterns of the workspace's ignore files. It reads a file
// again when the file may have changed.
type ignoreCache struct {
	excludes string      // core.excludesFile
	never    *ignoreFile // the user's own list
	secrets  *ignoreFile

	mu    sync.Mutex // guards what follows
	files map[string]*ignoreFile
	bytes int64 // the size of the files read for them
}

// An ignoreFile is the content of one file. It is immutable, except for costly.
type ignoreFile struct {
	path    string
	key     string      // in ignoreCache.files
	info    fs.FileInfo // to tell whether the file is still the same; nil when that is not known
	settled bool        // the file had not changed for a while when it was read
	// problem says why the patterns may not be what the file's author wanted: the rest of a
	// sentence that begins with the path; "" when they are. Then nobody knows what the file should hide.
	problem  string
	patterns []pattern
	denials  []Denial // of an agent's settings, which have no patterns
	// literal finds the patterns without wildcards: by their name, or with a leading slash by their path from the
	// file's folder. wild are the other patterns. Both hold indexes of patterns, in their order.
	literal map[string][]int
	wild    []int
}

func (c *ignoreCache) init(o Options) {
	c.excludes = o.ExcludesFile
	c.never = &ignoreFile{path: "the setting ignore"}
	for _, line := range o.NeverShare { // each as a file of its own: the bound on patterns is for files that others write
		c.never.patterns = append(c.never.patterns, parsePatterns([]byte(line), paths.FoldCase())...)
	}
	c.never.sort()
	c.secrets = &ignoreFile{path: "the list of secrets", patterns: secretPatterns(paths.FoldCase())}
	c.secrets.sort()
	c.files = make(map[string]*ignoreFile)
}

// load returns what a file says, nil when it does not exist. Reading and parsing spend from e.
func (c *ignoreCache) load(path string, e *effort) *ignoreFile {
	return c.loadAs(path, path, e, (*ignoreFile).parse)
}

// loadAs is load for a file that is parsed in another way. key stands for the file and this way.
func (c *ignoreCache) loadAs(path, key string, e *effort, parse func(f *ignoreFile, data []byte)) *ignoreFile {
	if path == "" {
		return nil
	}
	fi, err := os.Lstat(path)
	if err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		if fi, err = os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return &ignoreFile{path: path, problem: "is a link that leads nowhere"}
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &ignoreFile{path: path, problem: "cannot be read: " + safefile.Cause(err).Error()}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	have, ok := c.files[key]
	if ok && have.settled && have.info.ModTime().Equal(fi.ModTime()) && have.info.Size() == fi.Size() && os.SameFile(have.info, fi) {
		return have
	}
	if fi.Mode().IsRegular() && fi.Size() <= maxIgnoreFile && !e.read(fi.Size()) {
		return &ignoreFile{path: path, problem: tooMuch}
	}
	read := readIgnoreFile(path, parse)
	if read.info == nil {
		return read
	}
	if ok {
		c.bytes -= have.info.Size()
	}
	if c.bytes += read.info.Size(); len(c.files) >= maxIgnoreFiles || c.bytes > maxIgnoreBytes {
		clear(c.files)
		c.bytes = read.info.Size()
	}
	read.key, c.files[key] = key, read
	return read
}

// tooCostly is the problem of files whose patterns take more steps than allowed.
const tooCostly = "has patterns that take too long to try; remove some of those with wildcards"

// tooMuch is the problem of files that could not be read within the bounds of one context.
const tooMuch = "is one of so many ignore files that they cannot be read at once; shorten them"

// blame records a problem of a file, until the file changes.
func (c *ignoreCache) blame(f *ignoreFile, problem string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files[f.key] == f {
		blamed := *f
		blamed.problem, blamed.settled = problem, true
		c.files[f.key] = &blamed
	}
}

// readIgnoreFile reads an existing file. The result has no info when another try may give something else.
func readIgnoreFile(path string, parse func(f *ignoreFile, data []byte)) *ignoreFile {
	f := &ignoreFile{path: path}
	begun := time.Now()
	data, info, err := safefile.ReadRegular(path, maxIgnoreFile)
	switch {
	case errors.Is(err, safefile.ErrTooBig):
		f.problem = "is larger than 1 MiB; shorten it"
		return f
	case errors.Is(err, safefile.ErrNotRegular), errors.Is(err, safefile.ErrChanging):
		f.problem = err.Error()
		return f
	case err != nil:
		f.problem = "cannot be read: " + err.Error()
		return f
	}
	f.info, f.settled = info, begun.Sub(info.ModTime()) > stampGrain
	if text.IsBinary(data) {
		f.problem = "is not text in UTF-8; save it as UTF-8"
		return f
	}
	parse(f, data)
	return f
}

// parse takes the lines of an ignore file.
func (f *ignoreFile) parse(data []byte) {
	f.patterns = parsePatterns(data, paths.FoldCase())
	longest := 0
	for line := range bytes.Lines(data) {
		if line[0] != '#' {
			longest = max(longest, len(line))
		}
	}
	switch {
	case longest > maxPattern:
		f.problem = fmt.Sprintf("has a line of %d bytes, longer than any path; shorten it", longest)
	case len(f.patterns) > maxPatterns:
		f.problem, f.patterns = "has more than 10,000 patterns; shorten it", f.patterns[:maxPatterns]
	}
	f.sort()
}

// sort fills literal and wild.
func (f *ignoreFile) sort() {
	f.literal = make(map[string][]int)
	for i, p := range f.patterns {
		if p.segments != nil {
			f.wild = append(f.wild, i)
			continue
		}
		key := p.plain
		if p.anchored {
			key = "/" + key
		}
		f.literal[key] = append(f.literal[key], i)
	}
}

// last returns the strongest pattern that fits a name: the last one in the file. names lead to it from the file's folder.
func (f *ignoreFile) last(names []string, isDir bool, e *effort) (p *pattern, ok bool) {
	best := -1
	for _, key := range [2]string{names[len(names)-1], "/" + strings.Join(names, "/")} {
		fits := f.literal[key]
		for i := len(fits) - 1; i >= 0 && fits[i] > best && e.spend(1); i-- {
			if isDir || !f.patterns[fits[i]].dirOnly {
				best = fits[i]
			}
		}
	}
	for i := len(f.wild) - 1; i >= 0 && f.wild[i] > best && e.spend(1); i-- {
		if f.patterns[f.wild[i]].matches(names, isDir, e) {
			best = f.wild[i]
		}
	}
	if best < 0 {
		return nil, false
	}
	return &f.patterns[best], true
}

// rules are the patterns that hold in one folder, the strongest last. Each level is one
// file.
type rules struct {
	levels []level
	names  []string // the folder itself, relative to the top
	all    bool     // the folder itself is ignored, and so is everything in it
}

type level struct {
	depth int // how many of the names lead to the folder of this file
	file  *ignoreFile
}

// with adds a file to the rules of a folder; nil adds nothing.
func (r rules) with(f *ignoreFile) rules {
	if f != nil {
		r.levels = append(r.levels[:len(r.levels):len(r.levels)], level{len(r.names), f})
	}
	return r
}

// in returns the same rules one folder further down, when that has no ignore file.
func (r rules) in(name string) rules {
	if paths.FoldCase() {
		name = lowerASCII(name)
	}
	r.names = append(r.names[:len(r.names):len(r.names)], name)
	return r
}

// ignored says whether a name in the folder is ignored. A caller that bounds the effort must check e afterwards.
func (r rules) ignored(name string, isDir bool, e *effort) bool {
	if r.all {
		return true
	}
	names := r.in(name).names
	for i := len(r.levels) - 1; i >= 0; i-- {
		l := r.levels[i]
		if p, ok := l.file.last(names[l.depth:], isDir, e); ok {
			return !p.negated
		}
	}
	return false
}

// git says whether git ignores a name in the folder. Patterns that take too long are passed over, since the list
// that this is for shows no secrets.
func (r rules) git(name string, isDir bool) bool {
	return r.ignored(name, isDir, &effort{left: entryEffort})
}

// enter returns the rules of the folder name in the folder dir of r; dir is absolute.
func (c *ignoreCache) enter(r rules, dir, name string) rules {
	all := r.git(name, true)
	if !all && isRepository(dir) {
		return c.top(dir) // a nested repository has only its own rules
	}
	in := r.in(name).with(c.load(filepath.Join(dir, ".gitignore"), nil))
	in.all = all
	return in
}

// top returns the rules of the uppermost folder of a repository, or of a root outside any repository.
func (c *ignoreCache) top(dir string) rules {
	return rules{}.with(c.load(c.excludes, nil)).
		with(c.load(filepath.Join(dir, ".git", "info", "exclude"), nil)).
		with(c.load(filepath.Join(dir, ".gitignore"), nil))
}

// at returns the rules of a canonical folder at or below root. They begin at the
// repository around root, whose files count inside root too.
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
		if paths.Same(at, root) {
			r.all = false // a user who opens an ignored folder as a root wants to see its files
		}
	}
	return r
}

func isRepository(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}
