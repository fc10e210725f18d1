package history

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// An index remembers the entries of one folder, so that adding one need not read the others, only their names. Its
// methods may be called from any goroutine.
type index struct {
	dir string

	mu    sync.Mutex // guards what follows; held while entries are removed
	kept  []keptFile // oldest first
	bytes int64      // of kept
}

// A keptFile is an entry in the folder.
type keptFile struct {
	entryFile
	size   int64
	ranked bool   // person and owner are known
	person bool   // a person decided, not a rule and not the agent
	owner  string // the session's label
}

func (k keptFile) weigh() (size int64, person bool, owner string) { return k.size, k.person, k.owner }

// add counts an entry that was just written.
func (x *index) add(k keptFile) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kept = append(x.kept, k) // the next look counts it, in its place
}

// prune removes entries that are too old, and then entries beyond the bounds.
func (x *index) prune(entries int, bytes int64, age time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.look()
	for len(x.kept) > 0 && time.Since(x.kept[0].settled) > age {
		x.discard(0)
	}
	if len(x.kept) <= entries && x.bytes <= bytes {
		return
	}
	for i := range x.kept {
		x.rank(&x.kept[i])
	}
	for len(x.kept) > entries || x.bytes > bytes {
		x.discard(leastWanted(x.kept, keptFile.weigh))
	}
}

// look reads the folder's names, because other companions write and remove there too. The caller holds mu.
func (x *index) look() {
	files, err := entryFiles(x.dir)
	if err != nil {
		slog.Warn("the history could not be pruned", "error", err)
	}
	known := make(map[string]keptFile, len(x.kept))
	for _, k := range x.kept {
		known[k.name] = k
	}
	x.kept, x.bytes = x.kept[:0], 0
	for _, f := range files {
		k, ok := known[f.name]
		if !ok {
			info, err := os.Lstat(filepath.Join(x.dir, f.name))
			if err != nil {
				continue // pruned meanwhile
			}
			k = keptFile{entryFile: f, size: info.Size()}
		}
		x.kept = append(x.kept, k)
		x.bytes += k.size
	}
}

// rank reads who decided an entry of another companion, and whose it is. The caller holds mu.
func (x *index) rank(k *keptFile) {
	if k.ranked {
		return
	}
	if h, err := readHead(filepath.Join(x.dir, k.name)); err == nil {
		k.person, k.owner = h.byPerson(), h.Owner
	}
	k.ranked = true
}

// discard removes an entry. The caller holds mu.
func (x *index) discard(i int) {
	if err := remove(filepath.Join(x.dir, x.kept[i].name)); err != nil {
		slog.Warn("an old entry of the history could not be removed", "error", err)
	}
	x.bytes -= x.kept[i].size
	x.kept = slices.Delete(x.kept, i, i+1)
}
