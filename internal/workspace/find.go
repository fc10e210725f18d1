package workspace

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// An index is the list of files that Find looks through. It is built in the
// background when it is first needed and again when it has aged.
type index struct {
	mu       sync.Mutex // guards what follows
	folders  []folder
	whole    bool // not cut at maxFound
	built    time.Time
	stale    bool
	building chan struct{} // closed when the running build is done; nil when none runs
}

// A folder of the index with the names of its files. Half a million files fit into
// some megabytes because a folder's path is kept once, and its names are one string.
type folder struct {
	path  string // absolute
	lower string // relative to its root, with slashes, in lower case; it ends with a slash unless it is empty
	names string // of its files, sorted, with a slash between them
}

// Ages of an index. When somebody asks, it is built anew once it is indexFresh old, and
// at once after a change. A build ends after indexTimeout with the files found so far.
const (
	indexFresh   = 5 * time.Second
	indexTimeout = 20 * time.Second
	indexWait    = 80 * time.Millisecond
)

func (x *index) drop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.folders, x.built, x.stale = nil, time.Time{}, true
}

// touch notes that files were added or removed.
func (x *index) touch(changed bool) {
	if changed {
		x.mu.Lock()
		x.stale = true
		x.mu.Unlock()
	}
}

// Found is what Find has found.
type Found struct {
	Files     []string // absolute, best first
	Truncated bool     // there are more, or the workspace has more than maxFound files
	Old       bool     // a new index is being built: ask again in a moment
}

// Find returns at most limit files of the workspace: files that are not ignored, and whose
// path relative to its root has the letters of query in that order. It waits for the first
// index as long as ctx allows. Later it answers from the last index while a new one takes
// longer than a moment.
func (w *Workspace) Find(ctx context.Context, query string, limit int) (Found, error) {
	folders, found, err := w.indexed(ctx)
	if err != nil {
		return Found{}, err
	}
	wanted := appendLower(nil, strings.Join(strings.Fields(query), ""))
	if len(wanted) > maxQuery {
		return Found{}, nil
	}
	best := ranking{limit: limit}
	var path []byte
	for i := range folders {
		f := &folders[i]
		path = append(path[:0], f.lower...)
		for name := range strings.SplitSeq(f.names, "/") {
			path = appendLower(path[:len(f.lower)], name)
			if points, ok := score(wanted, path, len(f.lower)); ok {
				best.add(hit{f, name, points, len(path)})
			}
		}
	}
	for _, h := range best.hits {
		found.Files = append(found.Files, filepath.Join(h.folder.path, h.name))
	}
	found.Truncated = found.Truncated || best.all > limit
	return found, nil
}

// Warm has the index built in the background, so that the first Find need not wait for it.
func (w *Workspace) Warm() {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, _ = w.indexed(done)
}

// A hit is a file that fits a query.
type hit struct {
	folder *folder
	name   string
	points int
	length int // of its path relative to its root
}

// A ranking keeps the best hits. More points come first, then shorter paths, then the order
// in which they were added.
type ranking struct {
	limit int
	hits  []hit // best first
	all   int   // how many were added
}

func (r *ranking) add(h hit) {
	r.all++
	at := len(r.hits)
	for at > 0 && (h.points > r.hits[at-1].points || h.points == r.hits[at-1].points && h.length < r.hits[at-1].length) {
		at--
	}
	switch {
	case len(r.hits) < r.limit:
		r.hits = slices.Insert(r.hits, at, h)
	case at < len(r.hits):
		copy(r.hits[at+1:], r.hits[at:])
		r.hits[at] = h
	}
}

// appendLower appends s in lower case.
func appendLower(dst []byte, s string) []byte {
	start := len(dst)
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf {
			return append(dst[:start], strings.ToLower(s)...)
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// indexed returns the index, building it when there is none. found has no files yet.
func (w *Workspace) indexed(ctx context.Context) (folders []folder, found Found, err error) {
	x := &w.index
	var late <-chan time.Time
	for {
		x.mu.Lock()
		aged := x.stale || time.Since(x.built) > indexFresh
		if aged && x.building == nil {
			done := make(chan struct{})
			x.building, x.stale = done, false
			go w.build(done)
		}
		building := x.building
		folders, found = x.folders, Found{Truncated: !x.whole, Old: building != nil}
		ready := !x.built.IsZero()
		x.mu.Unlock()
		if building == nil {
			return folders, found, nil
		}
		if ready && late == nil {
			timer := time.NewTimer(indexWait)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-building:
		case <-late:
			return folders, found, nil
		case <-ctx.Done():
			return nil, Found{}, ctx.Err()
		}
	}
}

func (w *Workspace) build(done chan struct{}) {
	roots := w.Roots()
	b := builder{ws: w, deadline: time.Now().Add(indexTimeout)}
	for _, root := range roots {
		nested := slices.ContainsFunc(roots, func(r string) bool { return r != root && paths.Within(r, root) })
		if !nested {
			b.walk(root, root, w.ignores.at(root, root), 0)
		}
	}
	x := &w.index
	x.mu.Lock()
	x.folders, x.whole = b.folders, !b.cut
	x.built, x.building = time.Now(), nil
	x.mu.Unlock()
	close(done)
}

type builder struct {
	ws       *Workspace
	deadline time.Time
	folders  []folder
	files    int
	cut      bool
}

// walk collects the files below dir; it follows no symlink.
func (b *builder) walk(root, dir string, r rules, depth int) {
	if b.files >= maxFound || depth > maxDepth/4 || time.Now().After(b.deadline) {
		b.cut = true
		return
	}
	p, err := b.ws.open(dir, toRead)
	if err != nil {
		return // it is gone or unreadable, and the index lists what can be opened
	}
	entries, cut, _ := p.folder()
	p.close()
	b.cut = b.cut || cut
	var files, dirs []string
	for _, d := range entries {
		if time.Now().After(b.deadline) { // somebody has written patterns that take long
			b.cut = true
			break
		}
		name := d.Name()
		switch {
		case name == ".git" || safefile.IsTemp(name) || r.git(name, d.IsDir()):
		case d.IsDir():
			dirs = append(dirs, name)
		case d.Type().IsRegular():
			files = append(files, name)
		}
	}
	if room := maxFound - b.files; len(files) > room {
		files, b.cut = files[:room], true
	}
	b.add(root, dir, files)
	slices.Sort(dirs)
	for _, name := range dirs {
		path := filepath.Join(dir, name)
		b.walk(root, path, b.ws.ignores.enter(r, path, name), depth+1)
	}
}

// add puts a folder's files into the index.
func (b *builder) add(root, dir string, files []string) {
	if len(files) == 0 {
		return
	}
	slices.Sort(files)
	b.files += len(files)
	lower := strings.ToLower(filepath.ToSlash(strings.TrimPrefix(dir[len(root):], string(filepath.Separator))))
	if lower != "" {
		lower += "/"
	}
	b.folders = append(b.folders, folder{path: dir, lower: lower, names: strings.Join(files, "/")})
}

// score tells how well a path matches query, both in lower case; ok is false when it does
// not. The file's own name begins at name. Letters in a row, at the beginning of a word and
// in the file's own name count more. It searches from the end, to prefer the file's name to
// its folders.
func score(query, path []byte, name int) (points int, ok bool) {
	if len(query) == 0 {
		return 0, true
	}
	if i := bytes.Index(path[name:], query); i >= 0 {
		points = 1000 * len(query)
		if i == 0 {
			points += 500
		}
		if len(query) == len(path)-name {
			points += 1000
		}
		return points, true
	}
	last := len(path)
	at := len(path) - 1
	for q := len(query) - 1; q >= 0; q-- {
		for at >= 0 && path[at] != query[q] {
			at--
		}
		if at < 0 {
			return 0, false
		}
		points++
		if at+1 == last {
			points += 5
		}
		if at == 0 || strings.IndexByte("/-_. ", path[at-1]) >= 0 {
			points += 8
		}
		if at >= name {
			points += 3
		}
		last = at
		at--
	}
	return points, true
}
