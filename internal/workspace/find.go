package workspace

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// An index is the list of files that Find looks through. It is built in the
// background when it is first needed and again when it has aged.
type index struct {
	mu       sync.Mutex // guards what follows
	files    []indexed
	whole    bool // not cut at MaxFound
	built    time.Time
	stale    bool
	building chan struct{} // closed when the running build is done; nil when none runs
}

// An indexed file is prepared for matching.
type indexed struct {
	path  string // absolute
	lower string // relative to its root, with slashes, lower case
}

// Ages of an index. When somebody asks, it is built anew once it is indexFresh old, and
// at once after a change. A build ends after indexTimeout with the files found so far.
const (
	indexFresh   = 5 * time.Second
	indexTimeout = 20 * time.Second
)

func (x *index) drop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.files, x.built, x.stale = nil, time.Time{}, true
}

// touch notes that files were added or removed.
func (x *index) touch(changed bool) {
	if changed {
		x.mu.Lock()
		x.stale = true
		x.mu.Unlock()
	}
}

// Find returns at most limit files of the workspace, best first: files that are not
// ignored, and whose path relative to its root has the letters of query in that order.
// truncated says that there are more, or that the workspace has more than MaxFound
// files. Find waits for the first index as long as ctx allows. Later it answers from the
// last index while a new one is built.
func (w *Workspace) Find(ctx context.Context, query string, limit int) (files []string, truncated bool, err error) {
	all, whole, err := w.indexed(ctx)
	if err != nil {
		return nil, false, err
	}
	query = strings.ToLower(strings.Join(strings.Fields(query), ""))
	if len(query) > MaxQuery {
		return nil, false, nil
	}
	type hit struct {
		f     *indexed
		score int
	}
	var hits []hit
	for i := range all {
		if s, ok := score(query, all[i].lower); ok {
			hits = append(hits, hit{&all[i], s})
		}
	}
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(b.score-a.score, len(a.f.lower)-len(b.f.lower), natural(a.f.path, b.f.path))
	})
	for _, h := range hits[:min(limit, len(hits))] {
		files = append(files, h.f.path)
	}
	return files, !whole || len(hits) > limit, nil
}

// indexed returns the index, building it when there is none.
func (w *Workspace) indexed(ctx context.Context) (files []indexed, whole bool, err error) {
	x := &w.index
	for {
		x.mu.Lock()
		aged := x.stale || time.Since(x.built) > indexFresh
		if aged && x.building == nil {
			done := make(chan struct{})
			x.building, x.stale = done, false
			go w.build(done)
		}
		files, whole = x.files, x.whole
		ready, building := !x.built.IsZero(), x.building
		x.mu.Unlock()
		if ready {
			return files, whole, nil
		}
		select {
		case <-building:
		case <-ctx.Done():
			return nil, false, ctx.Err()
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
	x.files, x.whole = b.files, !b.cut
	x.built, x.building = time.Now(), nil
	x.mu.Unlock()
	close(done)
}

type builder struct {
	ws       *Workspace
	deadline time.Time
	files    []indexed
	cut      bool
}

// walk collects the files below dir; it follows no symlink.
func (b *builder) walk(root, dir string, r rules, depth int) {
	if len(b.files) >= MaxFound || depth > maxDepth/4 {
		b.cut = true
		return
	}
	p, err := b.ws.open(dir, toRead)
	if err != nil {
		return // it is gone or unreadable, and the index lists what can be opened
	}
	names, cut, _ := p.folder()
	p.close()
	b.cut = b.cut || cut
	for _, d := range names {
		name := d.Name()
		path := filepath.Join(dir, name)
		if time.Now().After(b.deadline) {
			b.cut = true
			return
		}
		switch {
		case name == ".git" || safefile.IsTemp(name) || r.git(name, d.IsDir()):
		case d.IsDir():
			b.walk(root, path, b.ws.ignores.enter(r, path, name), depth+1)
		case d.Type().IsRegular() && len(b.files) < MaxFound:
			rel := strings.TrimPrefix(path[len(root):], string(filepath.Separator))
			b.files = append(b.files, indexed{path, strings.ToLower(filepath.ToSlash(rel))})
		}
	}
}

// score tells how well path matches query, both in lower case; ok is false when it does
// not. Letters in a row, at the beginning of a word and in the file's own name count
// more. It searches from the end, to prefer the file's name to its folders.
func score(query, path string) (points int, ok bool) {
	if query == "" {
		return 0, true
	}
	name := strings.LastIndexByte(path, '/') + 1
	if i := strings.Index(path[name:], query); i >= 0 {
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
