package history

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// relookAfter is after how many entries of its own an index reads its folder again, whatever the folder's time says:
// some file systems count it in ticks, and another companion's change may fall into one of this one's.
const relookAfter = 64

// An index knows what lies in one folder of entries, so that a new entry costs no look at the others. It reads the folder when
// somebody else has changed it, which the folder's time tells. Its methods may be called from any goroutine.
type index struct {
	dir string

	mu    sync.Mutex // guards what follows; held while files are written and removed
	kept  []keptFile // oldest first
	bytes int64      // of kept
	seen  time.Time  // the folder's time when it was looked at; zero before
	added int        // since the folder was read
}

// A keptFile is an entry in the folder.
type keptFile struct {
	entryFile
	size   int64
	ranked bool   // person and owner have been looked for
	person bool   // a person decided, not a rule and not the agent
	owner  string // the session's label
}

func (k keptFile) weigh() (size int64, person bool, owner string) { return k.size, k.person, k.owner }

// add has write make an entry's file, and counts it.
func (x *index) add(k keptFile, write func() error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.look()
	if err := write(); err != nil {
		return err
	}
	x.added++
	i, there := slices.BinarySearchFunc(x.kept, k.name, func(k keptFile, name string) int { return strings.Compare(k.name, name) })
	if there {
		x.bytes -= x.kept[i].size
		x.kept[i] = k
	} else {
		x.kept = slices.Insert(x.kept, i, k)
	}
	x.bytes += k.size
	x.seen = x.changed()
	return nil
}

// prune removes what is too old, and then entries until the rest is within the bounds.
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
	if !x.seen.IsZero() { // else something is not as it was known
		x.seen = x.changed()
	}
}

// changed is the folder's time, zero when it is gone.
func (x *index) changed() time.Time {
	info, err := os.Stat(x.dir)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// look reads the folder's names unless nobody else has changed it. The caller holds mu.
func (x *index) look() {
	now := x.changed()
	if !now.IsZero() && now.Equal(x.seen) && x.added < relookAfter {
		return
	}
	files, err := entryFiles(x.dir)
	if err != nil {
		slog.Warn("the history could not be pruned", "error", err)
	}
	known := make(map[string]keptFile, len(x.kept))
	for _, k := range x.kept {
		known[k.name] = k
	}
	x.kept, x.bytes, x.seen, x.added = nil, 0, now, 0
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

// rank finds out what an entry of another companion's is about. The caller holds mu.
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
	err := os.Remove(filepath.Join(x.dir, x.kept[i].name))
	if errors.Is(err, fs.ErrNotExist) {
		x.seen = time.Time{} // somebody was quicker, also with others
	} else if err != nil {
		slog.Warn("an old entry of the history could not be removed", "error", err)
	}
	x.bytes -= x.kept[i].size
	x.kept = slices.Delete(x.kept, i, i+1)
}
