// Package journal keeps open diffs, and outcomes that an agent has not heard, so that they outlive a killed process
// (SPEC L-3, T-6). Every method writes its step before it returns: callers tell the agent only afterwards.
package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/safefile"
)

const (
	// logName is the file of records, in the journal's folder.
	logName = "log"
	// maxLog bounds that file when it is read, in bytes. It holds no large texts.
	maxLog = 1 << 30
	// maxText bounds a text when it is read, in bytes.
	maxText = 16 << 20
	// spare is how many unneeded bytes the file may have before it is rewritten.
	spare = 1 << 20
	// retryEvery is how often a journal that could not be written is tried again.
	retryEvery = 2 * time.Second
	// maxRework bounds, in bytes, how much work it may be at a start to apply a diff's edits to its text.
	maxRework = 256 << 20
	// maxDeleted is how many ids of deleted sessions are remembered. It is more than an agent's server remembers, which covers older ones by a number.
	maxDeleted = 4096
)

// A Diff is one that the journal holds from an earlier companion.
type Diff struct {
	Session, ID, Key, Path, Title string
	Opened                        time.Time
	IsNew                         bool
	// Outcomes are the notifications that its session waits for, in order; none while the diff is open.
	Outcomes []Outcome
}

// An Outcome is one notification that its session may not have heard.
type Outcome struct {
	As   string // what the agent calls it
	Life string // with Seq, the id of its event
	Seq  uint64
}

// Texts are the texts of one diff. Text is the proposal as the user edited it; for an accepted diff, the final text.
type Texts struct {
	Old, New, Text string
	// Agreed is the file that Text was made for (review.Diff.Agreed); nil where that is Old.
	Agreed *review.File
}

// A Journal belongs to one companion. When a method returns, its step is with the system (write(2)): it outlives this
// process, but not a failure of the machine. When the file cannot be written, the trouble function is called, nothing else
// fails, and the journal tries again until everything is written. Its methods may be called from any goroutine; mu is
// held during writes, so that the file has the steps in their order. Goroutine: a timer while there is trouble,
// stopped by Close.
type Journal struct {
	dir     string
	trouble func(error)
	secret  func(path string) bool // see Open
	files   atomic.Uint64          // numbers of text files
	lost    error                  // see Lost; never changed after Open

	mu      sync.Mutex // guards the below
	f       *os.File   // nil before the first record, and after a failure
	size    int64      // of the file
	looked  time.Time  // when the file was last checked
	n       uint64     // of the newest record
	live    int64      // of the records that are still needed, about
	entries []*entry   // in order of opening
	byID    map[string]*entry
	deleted []string           // ids of sessions, newest last
	counts  map[string]Outcome // the newest outcome of each session that has entries
	failing error              // why the file lacks something; nil when it lacks nothing
	retry   *time.Timer
	gone    []*stored // texts of dropped entries; their files are removed once the record that drops them is written
	buf     []byte
	closed  bool
}

// An entry is one diff of the journal's.
type entry struct {
	Diff
	old, new *stored
	base     *stored     // new, or the edited text that edits begin from
	edits    []edit      // since base
	now      string      // the text after edits, when known
	agreed   *stored     // the file that the text was made for; nil for old
	noFile   bool        // that file does not exist
	file     review.File // agreed, when known
	known    bool
	decided  bool
	secret   bool  // its texts have files of their own, which go when it goes
	unsure   bool  // edits may be missing, so that the next ones do not fit; the text stays as it was before
	bytes    int64 // of its records, about
}

// An edit is a splice whose text is stored.
type edit struct {
	from, cut int
	ins       *stored
}

// Open reads the journal in a folder, which need not exist, and goes on with it. A record that the end of the earlier process has
// torn is cut off. trouble is called with an error when a write fails, and with nil when everything is written again. It is called
// with the journal's lock held, so it must call no method of the journal. secret says whether the texts of a file must not stay on
// the disk when its diff is not needed any more; nil for no file.
func Open(dir string, secret func(path string) bool, trouble func(error)) *Journal {
	if secret == nil {
		secret = func(string) bool { return false }
	}
	j := &Journal{dir: dir, secret: secret, trouble: trouble, byID: map[string]*entry{}, counts: map[string]Outcome{}}
	j.files.Store(uint64(time.Now().UnixNano())) // no name of an earlier life is used again
	data, err := safefile.ReadPrivate(j.path(), maxLog)
	if errors.Is(err, fs.ErrNotExist) {
		if j.sweep() {
			j.lost = fmt.Errorf("the journal of the companion before this one, in %s, has lost its file of records", j.dir)
		}
		return j
	}
	if err != nil {
		j.lost = fmt.Errorf("the journal of the companion before this one cannot be read: %w", safefile.Cause(err))
		j.fail(err)
		return j
	}
	good, damaged := decode(data, j.replay)
	j.size, j.gone = int64(good), nil
	j.sweep()
	switch {
	case !bytes.HasPrefix(data, []byte(magic)): // no crash leaves that: the file was made with this line
		j.lost = fmt.Errorf("the journal of the companion before this one, in %s, does not begin as this version writes it", j.dir)
		err = j.rewrite()
	case damaged > 0:
		j.lost = fmt.Errorf("%d of %d bytes of the journal of the companion before this one, in %s, are damaged", damaged, len(data), j.dir)
		err = j.rewrite()
	case good < len(data):
		err = os.Truncate(j.path(), int64(good))
	}
	if err != nil {
		j.fail(err)
	}
	return j
}

// Lost says why open proposals of the companion before this one may be missing here; nil when none is.
func (j *Journal) Lost() error { return j.lost }

func (j *Journal) path() string { return filepath.Join(j.dir, logName) }

// replay applies a record to the model. A record that does not fit is passed over, and so is one that has
// been read before. gap says that records before this one are missing.
func (j *Journal) replay(r *record, size int, gap bool) {
	for _, e := range j.entries {
		e.unsure = e.unsure || gap
	}
	if r.N != 0 && r.N <= j.n {
		return
	}
	j.n = max(j.n, r.N)
	for _, t := range r.texts() {
		if !t.valid() {
			return
		}
	}
	switch r.Kind {
	case opened:
		if r.Old != nil && r.New != nil && j.byID[r.ID] == nil {
			j.dropKey(r.Session, r.Key)
			d := Diff{Session: r.Session, ID: r.ID, Key: r.Key, Path: r.Path, Title: r.Title, Opened: r.Opened, IsNew: r.IsNew}
			j.enter(&entry{Diff: d, old: r.Old, new: r.New, base: r.New, secret: j.secret(r.Path), bytes: int64(size)})
		}
	case edited, based, decided:
		if e := j.byID[r.ID]; e != nil {
			j.amend(e, r, int64(size))
		}
	case counted:
		j.counts[r.Session] = Outcome{Life: r.Life, Seq: r.Seq}
	case heard:
		j.heard(r.Session, r.Seqs)
	case forgotten:
		j.dropID(r.ID)
	case dropped:
		j.dropKey(r.Session, r.Key)
	case deleted:
		j.forgetID(r.Session)
		j.dropSession(r.Session)
	case ended:
		j.dropSession(r.Session)
	}
}

// amend applies a record of an edit or an outcome to its entry.
func (j *Journal) amend(e *entry, r *record, size int64) {
	switch {
	case r.Kind == decided:
		j.decide(e, Outcome{As: r.As, Life: r.Life, Seq: r.Seq})
	case r.Kind == based && r.Old != nil:
		e.agreed, e.noFile = r.Old, r.IsNew
	case r.Text != nil:
		e.base, e.edits, e.unsure = r.Text, nil, false
	case r.Ins != nil && !e.unsure:
		e.edits = append(e.edits, edit{r.From, r.Cut, r.Ins})
	}
	e.bytes += size
	j.live += size
}

func (j *Journal) enter(e *entry) {
	j.entries = append(j.entries, e)
	j.byID[e.ID] = e
	j.live += e.bytes
}

// Diffs returns the diffs that the journal knows, in the order of their opening.
func (j *Journal) Diffs() []Diff {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []Diff
	for _, e := range j.entries {
		d := e.Diff
		d.Outcomes = slices.Clone(d.Outcomes)
		all = append(all, d)
	}
	return all
}

// Deleted returns the ids of deleted sessions, newest last.
func (j *Journal) Deleted() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.deleted)
}

// Texts reads a diff's texts. Large ones may take a while; the lock is not held meanwhile.
func (j *Journal) Texts(id string) (t Texts, err error) {
	j.mu.Lock()
	e := j.byID[id]
	if e == nil {
		j.mu.Unlock()
		return t, os.ErrNotExist
	}
	old, proposal, base, edits := e.old, e.new, e.base, slices.Clone(e.edits)
	agreed, noFile := e.agreed, e.noFile
	j.mu.Unlock()
	if agreed != nil {
		file := review.File{Exists: !noFile}
		if file.Text, err = j.get(agreed); err != nil {
			return t, err
		}
		t.Agreed = &file
	}
	if t.Old, err = j.get(old); err != nil {
		return t, err
	}
	if t.New, err = j.get(proposal); err != nil {
		return t, err
	}
	t.Text = t.New
	if base != proposal {
		if t.Text, err = j.get(base); err != nil {
			return t, err
		}
	}
	for _, edit := range edits {
		ins, err := j.get(edit.ins)
		if err != nil {
			return t, err
		}
		var fits bool
		if t.Text, fits = (splice{edit.from, edit.cut, ins}).apply(t.Text); !fits {
			return t, errDamaged
		}
	}
	return t, nil
}

// Opened writes down a diff before its session is told that it is open. A crash before that forgets the diff, which the
// agent then has not heard of either.
func (j *Journal) Opened(session string, d *review.Diff) {
	p := d.Proposal()
	j.begin()
	secret := j.secret(p.Path)
	old, err := j.put(d.ID(), p.Old, secret)
	proposal, err2 := j.put(d.ID(), p.New, secret)
	j.mu.Lock()
	defer j.mu.Unlock()
	if o, over := d.Outcome(); over && o.Kind == review.Withdrawn {
		j.remove(old, proposal)
		return // its owner may have dropped it already
	}
	j.dropKey(session, p.Key) // replay of the record does the same
	e := &entry{
		Diff: Diff{Session: session, ID: d.ID(), Key: p.Key, Path: p.Path, Title: p.Title, Opened: d.Opened(), IsNew: p.IsNew},
		old:  old, new: proposal, base: proposal, now: p.New, known: true, secret: secret,
		file: review.File{Text: p.Old, Exists: !p.IsNew},
	}
	j.enter(e)
	if err = errors.Join(err, err2); err != nil {
		j.fail(err)
		return
	}
	j.grew(e, j.append(e.record()))
	j.editTo(e, current(d)) // the user may have edited it meanwhile
	j.baseTo(e, d.Agreed())
}

// begin makes the file of records before the first text.
func (j *Journal) begin() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed || j.failing != nil {
		return
	}
	if err := j.open(); err != nil {
		j.fail(err)
	}
}

func current(d *review.Diff) string { text, _ := d.Text(); return text }

func (e *entry) record() *record {
	return &record{
		Kind: opened, Session: e.Session, ID: e.ID, Key: e.Key, Path: e.Path, Title: e.Title,
		Opened: e.Opened, IsNew: e.IsNew, Old: e.old, New: e.new,
	}
}

// Restored notes that a diff of an earlier companion is open again, with its texts.
func (j *Journal) Restored(d *review.Diff, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e := j.byID[d.ID()]; e != nil {
		e.now, e.known = text, true
		j.editTo(e, current(d))
		j.baseTo(e, d.Agreed())
	}
}

// Follow writes down the edits of open diffs, and the files that they are made for, until cancel.
func (j *Journal) Follow(r *review.Registry) (cancel func()) {
	return r.Watch(func(event review.Event) {
		if event.Diff == nil || event.Outcome != nil {
			return
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		if e := j.byID[event.Diff.ID()]; e != nil && e.known && !e.decided {
			j.editTo(e, current(event.Diff))
			j.baseTo(e, event.Diff.Agreed())
		}
	})
}

// baseTo writes down the file that a text was made for. The caller holds mu.
func (j *Journal) baseTo(e *entry, file review.File) {
	if file == e.file || file.Problem != "" {
		return
	}
	text, err := j.put(e.ID, file.Text, e.secret)
	if e.agreed != nil {
		j.gone = append(j.gone, e.agreed)
	}
	e.file, e.agreed, e.noFile = file, text, !file.Exists
	if err != nil {
		j.fail(err)
		return
	}
	j.grew(e, j.append(&record{Kind: based, ID: e.ID, Old: text, IsNew: e.noFile}))
}

// editTo writes down a new text: as a splice of the last one, or whole where that is cheaper or too many splices have
// gathered. The caller holds mu.
func (j *Journal) editTo(e *entry, text string) {
	if text == e.now {
		return
	}
	s := spliceOf(e.now, text)
	r := &record{Kind: edited, ID: e.ID, From: s.from, Cut: s.cut}
	var err error
	if s.whole(text) || len(text)*len(e.edits) > maxRework {
		r.From, r.Cut = 0, 0
		r.Text, err = j.put(e.ID, text, e.secret)
		j.gone = append(j.gone, slices.DeleteFunc(e.texts()[1:], func(t *stored) bool { return t == e.new || t == e.agreed })...)
		e.base, e.edits = r.Text, nil
	} else {
		r.Ins, err = j.put(e.ID, s.ins, e.secret)
		e.edits = append(e.edits, edit{s.from, s.cut, r.Ins})
	}
	e.now = text
	if err != nil {
		j.fail(err)
		return
	}
	j.grew(e, j.append(r))
}

// Decided writes an outcome down before anybody is told of it. content is the final text of an accepted diff, nil otherwise.
// as, life and seq say how the session is told. A crash after this delivers the outcome again; a crash before it leaves the diff open.
func (j *Journal) Decided(id string, content *string, as, life string, seq uint64) {
	o := Outcome{As: as, Life: life, Seq: seq}
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.byID[id]
	if e == nil {
		return
	}
	if content != nil && e.known {
		j.editTo(e, *content)
	}
	e.now, e.known, e.file = "", false, review.File{} // the text is on the disk now
	j.decide(e, o)
	j.grew(e, j.append(&record{Kind: decided, ID: id, As: o.As, Life: o.Life, Seq: o.Seq}))
}

// Heard notes that a session has heard the outcomes with these numbers.
func (j *Journal) Heard(session string, seqs ...uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.heard(session, seqs) {
		j.append(&record{Kind: heard, Session: session, Seqs: seqs})
	}
}

// Dropped notes that a session's diff of a key, open or decided, is not needed any more.
func (j *Journal) Dropped(session, key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.dropKey(session, key) {
		j.append(&record{Kind: dropped, Session: session, Key: key})
	}
}

// Forget notes that a diff is not needed any more.
func (j *Journal) Forget(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.dropID(id) {
		j.append(&record{Kind: forgotten, ID: id})
	}
}

// Ended notes the end of a session, with all its diffs. With good false, its id is invalid from now on.
func (j *Journal) Ended(session string, good bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	had := j.dropSession(session)
	switch {
	case !good:
		j.forgetID(session)
		j.append(&record{Kind: deleted, Session: session})
	case had:
		j.append(&record{Kind: ended, Session: session})
	}
}

// decide adds an outcome to an entry. The caller holds mu.
func (j *Journal) decide(e *entry, o Outcome) {
	e.decided = true
	e.Outcomes = append(e.Outcomes, o)
	j.counts[e.Session] = o
}

// Newest returns the newest outcome of a session, even when it was heard or dropped since: its number must not be used again.
func (j *Journal) Newest(session string) Outcome {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counts[session]
}

func (j *Journal) heard(session string, seqs []uint64) bool {
	return j.drop(func(e *entry) bool {
		if e.Session != session || !e.decided {
			return false
		}
		before := len(e.Outcomes)
		e.Outcomes = slices.DeleteFunc(e.Outcomes, func(o Outcome) bool { return slices.Contains(seqs, o.Seq) })
		return before > 0 && len(e.Outcomes) == 0
	})
}

func (j *Journal) dropKey(session, key string) bool {
	return j.drop(func(e *entry) bool { return e.Session == session && e.Key == key })
}

func (j *Journal) dropID(id string) bool {
	return j.drop(func(e *entry) bool { return e.ID == id })
}

func (j *Journal) dropSession(session string) bool {
	delete(j.counts, session)
	return j.drop(func(e *entry) bool { return e.Session == session })
}

func (j *Journal) forgetID(session string) {
	j.deleted = append(j.deleted, session)
	j.deleted = j.deleted[max(0, len(j.deleted)-maxDeleted):]
}

// drop removes the entries that which chooses, and says whether there were any. The caller holds mu.
func (j *Journal) drop(which func(*entry) bool) (any bool) {
	j.entries = slices.DeleteFunc(j.entries, func(e *entry) bool {
		if !which(e) {
			return false
		}
		any = true
		delete(j.byID, e.ID)
		j.live -= e.bytes
		j.gone = append(j.gone, e.texts()...)
		return true
	})
	return any
}

// texts returns every stored text of an entry, old first.
func (e *entry) texts() []*stored {
	texts := []*stored{e.old, e.new}
	if e.base != e.new {
		texts = append(texts, e.base)
	}
	if e.agreed != nil {
		texts = append(texts, e.agreed)
	}
	for _, edit := range e.edits {
		texts = append(texts, edit.ins)
	}
	return texts
}
