package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// append writes a record at the end of the file and returns its size. A failure becomes the journal's trouble, and the size is 0.
// Files of dropped texts are removed only after the record that drops them is written: a crash in between leaves files that
// the next Open sweeps, never a record without its text. The caller holds mu.
func (j *Journal) append(r *record) (size int64) {
	if j.closed || j.failing != nil {
		return 0 // a rewrite brings everything that is missing
	}
	var err error
	if j.buf, err = j.encode(j.buf[:0], r); err == nil {
		err = j.write(j.buf)
	}
	if err != nil {
		j.fail(err)
		return 0
	}
	size = int64(len(j.buf))
	j.remove(j.gone...)
	j.gone = nil
	if unused := j.size - j.live; unused > j.live+spare || len(j.entries) == 0 && unused > spare/4 {
		if err := j.rewrite(); err != nil {
			j.fail(err)
		}
	}
	return size
}

// encode numbers a record and appends it, framed, to b. Numbers are never used again, also not in a file that replaces this one.
// The caller holds mu.
func (j *Journal) encode(b []byte, r *record) ([]byte, error) {
	j.n++
	r.N = j.n
	return encode(b, r)
}

// grew adds a record's size to its entry. The caller holds mu.
func (j *Journal) grew(e *entry, size int64) {
	e.bytes += size
	j.live += size
}

// write adds all of b to the file, or nothing: it cuts off a half-written record. The caller holds mu.
func (j *Journal) write(b []byte) error {
	if err := j.look(); err != nil {
		return err
	}
	if err := j.open(); err != nil {
		return err
	}
	n, err := j.f.Write(b)
	if err != nil {
		if n > 0 && j.f.Truncate(j.size) != nil {
			j.shut()
		}
		return err
	}
	j.size += int64(n)
	return nil
}

// lookEvery is how often it is checked that the file is still in its folder. A check costs two microseconds.
const lookEvery = time.Second

// errGone: somebody has removed or replaced the file, so that what was written to it would not be found.
var errGone = errors.New("its file was removed by another program")

// errCut: somebody else has written to the file, or cut it.
var errCut = errors.New("its file was changed by another program")

// look fails when the open file is not the one in the folder any more, or not as this process wrote it. The caller holds mu.
func (j *Journal) look() error {
	if j.f == nil || time.Since(j.looked) < lookEvery {
		return nil
	}
	j.looked = time.Now()
	mine, err := j.f.Stat()
	there, err2 := os.Lstat(j.path())
	switch {
	case err != nil || err2 != nil || !os.SameFile(mine, there):
		err = errGone
	case mine.Size() != j.size:
		err = errCut
	default:
		return nil
	}
	j.shut()
	return err
}

// open opens the file to add to it. A missing one is made whole, and before any text: so an empty or missing file beside texts is
// somebody else's work, and no trace of a crash. The caller holds mu.
func (j *Journal) open() error {
	if j.f != nil {
		return nil
	}
	if err := j.makeFolder(); err != nil {
		return err
	}
	if _, err := os.Lstat(j.path()); errors.Is(err, fs.ErrNotExist) {
		if err := safefile.Write(j.path(), []byte(magic), &safefile.Options{Volatile: true}); err != nil {
			return err
		}
		j.size = int64(len(magic))
	}
	f, err := os.OpenFile(j.path(), os.O_WRONLY|os.O_APPEND|safefile.NoWait, 0o600)
	if err != nil {
		return err
	}
	j.f = f
	return nil
}

func (j *Journal) shut() {
	if j.f != nil {
		j.f.Close()
		j.f = nil
	}
}

func (j *Journal) makeFolder() error { return safefile.PrivateDir(j.dir) }

// rewrite replaces the file, in one step, by one that holds only what is still needed. A crash leaves the old file or the new one.
// The caller holds mu.
func (j *Journal) rewrite() error {
	b := []byte(magic)
	live := int64(0)
	var err error
	for _, session := range j.deleted {
		if b, err = j.encode(b, &record{Kind: deleted, Session: session}); err != nil {
			return err
		}
	}
	for _, e := range j.entries {
		before := len(b)
		if b, err = j.encodeEntry(b, e); err != nil {
			return err
		}
		e.bytes = int64(len(b) - before)
		live += e.bytes
	}
	for session, o := range j.counts {
		if !slices.ContainsFunc(j.entries, func(e *entry) bool { return e.Session == session }) {
			delete(j.counts, session)
		} else if b, err = j.encode(b, &record{Kind: counted, Session: session, Life: o.Life, Seq: o.Seq}); err != nil {
			return err
		}
	}
	if err := j.makeFolder(); err != nil {
		return err
	}
	j.shut() // some systems do not replace an open file
	if err := safefile.Write(j.path(), b, &safefile.Options{Volatile: true}); err != nil {
		return err
	}
	j.size, j.live = int64(len(b)), live
	j.remove(j.gone...)
	j.gone = nil
	return nil
}

// encodeEntry appends every record of an entry to b. It also stores texts that could not be stored before.
func (j *Journal) encodeEntry(b []byte, e *entry) (_ []byte, err error) {
	for _, t := range e.texts() {
		if t.File == "" && apart(t.text, e.secret) {
			again, err := j.put(e.ID, t.text, e.secret)
			if err != nil {
				return b, err
			}
			*t = *again
		}
	}
	records := []*record{e.record()}
	if e.base != e.new {
		records = append(records, &record{Kind: edited, ID: e.ID, Text: e.base})
	}
	for _, edit := range e.edits {
		records = append(records, &record{Kind: edited, ID: e.ID, From: edit.from, Cut: edit.cut, Ins: edit.ins})
	}
	if e.agreed != nil {
		records = append(records, &record{Kind: based, ID: e.ID, Old: e.agreed, IsNew: e.noFile})
	}
	for _, o := range e.Outcomes {
		records = append(records, &record{Kind: decided, ID: e.ID, As: o.As, Life: o.Life, Seq: o.Seq})
	}
	for _, r := range records {
		if b, err = j.encode(b, r); err != nil {
			return b, err
		}
	}
	return b, nil
}

// fail notes that the file lacks something, reports it, and tries again later. The caller holds mu.
func (j *Journal) fail(err error) {
	if j.closed || j.failing != nil {
		return
	}
	j.failing = fmt.Errorf("open proposals are not safe from a crash: the journal in %s cannot be written: %w", j.dir, safefile.Cause(err))
	j.trouble(j.failing)
	j.retry = time.AfterFunc(retryEvery, j.again)
}

// again writes the whole journal anew, after a failure.
func (j *Journal) again() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	if j.rewrite() != nil {
		j.retry.Reset(retryEvery)
		return
	}
	j.failing, j.retry = nil, nil
	j.trouble(nil)
}

// Trouble says why a crash would lose something; nil when it would not.
func (j *Journal) Trouble() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failing
}

// Close ends the writing. The journal's content stays on the disk for the next companion; an empty journal leaves no folder.
func (j *Journal) Close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	if j.retry != nil {
		j.retry.Stop()
		j.failing = j.rewrite() // a last try
	}
	j.closed = true
	j.shut()
	if len(j.entries) == 0 && len(j.deleted) == 0 {
		j.sweep() // texts first: left beside no file, they would look like a loss
		_ = os.RemoveAll(j.dir)
	}
}

// sweep removes files that no record names: texts of diffs that have ended or were never noted, and half-written files. It says
// whether there were texts.
func (j *Journal) sweep() (texts bool) {
	named := map[string]bool{logName: true}
	for _, e := range j.entries {
		for _, t := range e.texts() {
			named[t.File] = true
		}
	}
	names, _ := os.ReadDir(j.dir)
	for _, n := range names {
		if old := strings.HasSuffix(n.Name(), ".json") || n.Name() == "unheard"; !named[n.Name()] &&
			(old || strings.HasSuffix(n.Name(), textSuffix) || safefile.IsTemp(n.Name())) {
			_ = os.Remove(filepath.Join(j.dir, n.Name()))
			texts = texts || strings.HasSuffix(n.Name(), textSuffix)
		}
	}
	return texts
}
