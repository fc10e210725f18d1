package history

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// An entry's file is named <settled, Unix ms>-<id>.entry, so that sorted names are the
// history in order. It holds a line of JSON, the head, and then the texts byte for byte,
// because JSON cannot hold every byte. Names are unique and files are replaced in one
// step, so several companions need no lock.
const (
	suffix = ".entry"
	format = 1
	// maxHead bounds the first line, in bytes; a path and a title are shorter.
	maxHead = 1 << 20
	// oneWrite is the size, in bytes, up to which a copy costs less than further writes.
	oneWrite = 64 << 10
	// tempAge is the age at which a half-written file counts as abandoned.
	tempAge = time.Hour
)

// errDamaged: the file does not match its checksum or its form.
var errDamaged = errors.New("damaged entry")

// A head is the first line of an entry's file.
type head struct {
	Format int `json:"format"`
	Info
	// OldSize, NewSize and FinalSize are the lengths of the texts in bytes. FinalSize is -1
	// when the final text is the same as New; it is not stored twice then.
	OldSize   int64  `json:"oldSize"`
	NewSize   int64  `json:"newSize"`
	FinalSize int64  `json:"finalSize"`
	Check     string `json:"check"` // SHA-256 of the texts
}

// size is about what an entry takes on the disk, in bytes.
func (e Entry) size() int64 {
	n := len(e.Old) + len(e.New)
	if e.Final != e.New {
		n += len(e.Final)
	}
	return int64(n + len(e.Path) + len(e.Title) + 500)
}

// encode returns an entry's file in pieces: the texts are not copied.
func encode(e Entry) ([]string, error) {
	h := head{Format: format, OldSize: int64(len(e.Old)), NewSize: int64(len(e.New)), FinalSize: -1}
	texts := []string{e.Old, e.New}
	if e.Final != e.New {
		h.FinalSize = int64(len(e.Final))
		texts = append(texts, e.Final)
	}
	h.Check = hash(texts...)
	if lf := text.ToLF(e.Final); e.Old == "" && len(texts) == 2 && lf == e.New {
		e.Sum = h.Check // of a new file with line feeds, both are of the same bytes
	} else {
		e.Sum = hash(lf)
	}
	h.Info = e.Info
	line, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	pieces := append([]string{string(line) + "\n"}, texts...)
	if e.size() <= oneWrite {
		pieces = []string{strings.Join(pieces, "")}
	}
	return pieces, nil
}

// hash returns the SHA-256 of texts, one after the other, as hexadecimal digits. It does not copy them.
func hash(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		h.Write(unsafe.Slice(unsafe.StringData(t), len(t)))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// decodeHead reads the head of a file of that size, and returns the length of its line.
func decodeHead(r io.Reader, size int64) (head, int, error) {
	line, err := bufio.NewReader(io.LimitReader(r, maxHead)).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return head{}, 0, err
	}
	var h head
	if err != nil || json.Unmarshal(line, &h) != nil {
		return head{}, 0, errDamaged
	}
	if h.Format > format {
		return head{}, 0, fmt.Errorf("written by a newer pollux")
	}
	left := size - int64(len(line))
	for _, n := range []int64{h.OldSize, h.NewSize, max(h.FinalSize, 0)} {
		if n < 0 || n > left {
			return head{}, 0, errDamaged
		}
		left -= n
	}
	if left != 0 || h.Format < 1 || h.FinalSize < -1 {
		return head{}, 0, errDamaged
	}
	return h, len(line), nil
}

func decode(data []byte) (Entry, error) {
	h, n, err := decodeHead(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Entry{}, err
	}
	texts := data[n:]
	check := sha256.Sum256(texts)
	if hex.EncodeToString(check[:]) != h.Check {
		return Entry{}, errDamaged
	}
	e := Entry{Info: h.Info, Old: string(texts[:h.OldSize]), New: string(texts[h.OldSize : h.OldSize+h.NewSize])}
	if e.Final = e.New; h.FinalSize >= 0 {
		e.Final = string(texts[h.OldSize+h.NewSize:])
	}
	return e, nil
}

// readHead reads what List needs, without the texts.
func readHead(path string) (head, error) {
	f, info, err := openEntry(path)
	if err != nil {
		return head{}, err
	}
	defer f.Close()
	h, _, err := decodeHead(f, info.Size())
	return h, err
}

func readEntry(path string) (Entry, error) {
	f, info, err := openEntry(path)
	if err != nil {
		return Entry{}, err
	}
	defer f.Close()
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return Entry{}, err
	}
	return decode(data)
}

// openEntry opens an entry's file. A folder or a FIFO in its place counts as damaged, and is not waited for.
func openEntry(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|safefile.NoWait, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errDamaged
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// save writes an entry's file. It does not flush it to the disk: after a power cut, a half-written entry is left out as damaged.
func (h *History) save(e Entry) error {
	if e.size() > h.opt.MaxBytes {
		return fmt.Errorf("it is larger than the whole history may be")
	}
	pieces, err := encode(e)
	if err != nil {
		return err
	}
	size := int64(0)
	for _, p := range pieces {
		size += int64(len(p))
	}
	name := fmt.Sprintf("%013d-%s%s", e.Settled.UnixMilli(), e.ID, suffix)
	k := keptFile{entryFile: entryFile{name, e.ID, e.Settled}, size: size, ranked: true, person: e.byPerson(), owner: e.Owner}
	if err := h.put(name, pieces); err != nil {
		return err
	}
	h.index.add(k)
	return nil
}

// put writes a file into the folder, and makes the folder where it is missing.
func (h *History) put(name string, pieces []string) (err error) {
	for range 3 { // a Prune, also of another companion, may remove the empty folder
		if err = safefile.PrivateDir(h.dir); err == nil {
			err = safefile.WritePieces(filepath.Join(h.dir, name), pieces, &safefile.Options{Volatile: true})
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return err
}

// An entryFile is what the name of a file says.
type entryFile struct {
	name    string
	id      string
	settled time.Time
}

// entryFiles lists the entries in a workspace's folder, oldest first; none when there is no folder.
func entryFiles(dir string) ([]entryFile, error) {
	names, err := os.ReadDir(dir) // sorted by name
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var files []entryFile
	for _, n := range names {
		stamp, id, ok := strings.Cut(strings.TrimSuffix(n.Name(), suffix), "-")
		ms, err := strconv.ParseInt(stamp, 10, 64)
		if ok && err == nil && strings.HasSuffix(n.Name(), suffix) {
			files = append(files, entryFile{n.Name(), id, time.UnixMilli(ms)})
		}
	}
	return files, nil
}

// prune removes entries until the history is within its bounds.
func (h *History) prune() {
	h.index.prune(h.opt.MaxEntries, h.opt.MaxBytes, h.opt.MaxAge)
}

// leastWanted chooses the entry to remove first. An entry that a person decided or edited outlives the others. Among equals, the session
// with the most bytes loses its oldest entry, so that no session can push another's entries out. The newest entry of all goes last.
func leastWanted[T any](kept []T, weigh func(T) (size int64, person bool, owner string)) int {
	if len(kept) == 1 {
		return 0
	}
	rest := kept[:len(kept)-1]
	sizes := map[bool]map[string]int64{false: {}, true: {}}
	for _, k := range rest {
		size, person, owner := weigh(k)
		sizes[person][owner] += size
	}
	class := len(sizes[false]) == 0
	largest := int64(-1)
	for _, size := range sizes[class] {
		largest = max(largest, size)
	}
	return slices.IndexFunc(rest, func(k T) bool {
		_, person, owner := weigh(k)
		return person == class && sizes[class][owner] == largest
	})
}

// pruneWorkspaces removes, in every workspace's folder, entries that are too old, files
// that a crash left half-written, and then empty folders.
func pruneWorkspaces(dir string, age time.Duration) {
	folders, err := os.ReadDir(dir)
	if err != nil {
		slog.Warn("the history could not be pruned", "error", err)
		return
	}
	for _, folder := range folders {
		path := filepath.Join(dir, folder.Name())
		if !folder.IsDir() {
			continue
		}
		(&index{dir: path}).prune(1<<30, 1<<62, age)
		left, _ := os.ReadDir(path)
		for _, f := range left {
			info, err := f.Info()
			if err == nil && safefile.IsTemp(f.Name()) && time.Since(info.ModTime()) > tempAge {
				_ = remove(filepath.Join(path, f.Name())) // the next start tries again
			}
		}
		_ = os.Remove(path) // only when it is empty
	}
}

// discard removes an entry that is damaged. It keeps an entry that cannot be read for
// another reason.
func (h *History) discard(name string, why error) {
	if errors.Is(why, fs.ErrNotExist) {
		return // another companion pruned it meanwhile
	}
	slog.Warn("an entry of the history is left out", "name", name, "error", why)
	if errors.Is(why, errDamaged) {
		if err := remove(filepath.Join(h.dir, name)); err != nil {
			slog.Warn("a damaged entry of the history could not be removed", "error", err)
		}
	}
}

// remove is os.Remove, but a file that is gone already is no error.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
