package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/words"
)

// append writes a record at the end of the file and returns its size; 0 when that fails, which makes trouble.
// The caller holds mu.
func (j *Journal) append(r *record) (size int64) {
	if j.closed || j.failing != nil {
		return 0 // what is missing is written when the whole is
	}
	var err error
	if j.buf, err = encode(j.buf[:0], r); err == nil {
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

// grew counts a record for its entry. The caller holds mu.
func (j *Journal) grew(e *entry, size int64) {
	e.bytes += size
	j.live += size
}

// write adds to the file what is whole, or nothing. The caller holds mu.
func (j *Journal) write(b []byte) error {
	if j.f == nil {
		if err := j.open(); err != nil {
			return err
		}
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

// open opens the file to add to it. The caller holds mu.
func (j *Journal) open() error {
	if err := j.makeFolder(); err != nil {
		return err
	}
	f, err := os.OpenFile(j.path(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Size() == 0 {
		j.size = int64(len(magic))
		_, err = f.WriteString(magic)
	}
	if err != nil {
		f.Close()
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

// rewrite replaces the file by one that holds what is still of use, in one step. The caller holds mu.
func (j *Journal) rewrite() error {
	b := []byte(magic)
	live := int64(0)
	var err error
	for _, session := range j.deleted {
		if b, err = encode(b, &record{Kind: deleted, Session: session}); err != nil {
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
		} else if b, err = encode(b, &record{Kind: counted, Session: session, Life: o.Life, Seq: o.Seq}); err != nil {
			return err
		}
	}
	if err := j.makeFolder(); err != nil {
		return err
	}
	j.shut() // some systems do not replace a file that is open
	if err := safefile.Write(j.path(), b, &safefile.Options{Volatile: true}); err != nil {
		return err
	}
	j.size, j.live = int64(len(b)), live
	j.remove(j.gone...)
	j.gone = nil
	return nil
}

// encodeEntry appends all that there is of an entry, and stores what could not be stored before.
func (j *Journal) encodeEntry(b []byte, e *entry) (_ []byte, err error) {
	for _, t := range e.texts() {
		if t.File == "" && len(t.text) > inlineText {
			again, err := j.put(e.ID, t.text)
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
		if b, err = encode(b, r); err != nil {
			return b, err
		}
	}
	return b, nil
}

// fail notes that the file lacks something, says so, and tries again later. The caller holds mu.
func (j *Journal) fail(err error) {
	if j.closed || j.failing != nil {
		return
	}
	j.failing = fmt.Errorf("open proposals are not safe from a crash: the journal in %s cannot be written: %w", j.dir, words.Cause(err))
	j.trouble(j.failing)
	j.retry = time.AfterFunc(retryEvery, j.again)
}

// again writes everything, after trouble.
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

// Trouble says why a crash would lose something, nil when it would not.
func (j *Journal) Trouble() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failing
}

// Close ends the writing. What the journal still knows stays for the next companion; a journal that knows nothing leaves nothing.
func (j *Journal) Close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	if j.retry != nil {
		j.retry.Stop()
		j.failing = j.rewrite() // for the last time
	}
	j.closed = true
	j.shut()
	if len(j.entries) == 0 && len(j.deleted) == 0 {
		_ = os.RemoveAll(j.dir)
	}
}

// Clear forgets everything.
func (j *Journal) Clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.shut()
	j.entries, j.byID, j.deleted, j.gone, j.size, j.live = nil, map[string]*entry{}, nil, nil, 0, 0
	j.counts = map[string]Outcome{}
	if err := os.RemoveAll(j.dir); err != nil {
		j.fail(err)
	}
}

// sweep removes files that no record names: texts whose diff has ended or was never noted.
func (j *Journal) sweep() {
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
		}
	}
}
