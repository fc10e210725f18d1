package discovery

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// resumeWithin is how long after its end a companion can be resumed (SPEC A-1).
const resumeWithin = 10 * time.Minute

// TouchEvery is how often a living companion touches its record (Resume.Touch). The time
// of a crash is known to this precision.
const TouchEvery = time.Minute

// A Record is what the next companion of the same editor and workspace needs
// so that running CLIs and pages do not notice the change (SPEC A-1, L-3).
type Record struct {
	Editor string   `json:"editor"` // IDE.Name
	Roots  []string `json:"roots"`  // absolute and canonical
	// PID and Start tell which process wrote it.
	PID   int        `json:"pid"`
	Start proc.Stamp `json:"start"`
	// Port is the agents' port.
	Port int `json:"port"`
	// Door is Gemini CLI's: it was the only agent once. Others are the other agents', by their names. DoorOf knows both.
	Door
	Others map[string]Door `json:"others,omitempty"`
	// Life counts the starts that took over. Floor tells which sessions were deleted long ago.
	Life  uint32 `json:"life,omitempty"`
	Floor uint64 `json:"floor,omitempty"`
	// Sessions are the processes of each session, by the session's id: an older token serves nobody else.
	Sessions map[string][]proc.Info `json:"sessions,omitempty"`
	// Met are the processes of all agents that have connected, also of those whose session has ended.
	Met []proc.Info `json:"met,omitempty"`
	// Namespaces are the process and user namespaces that it ran in (proc.Namespaces).
	Namespaces string `json:"namespaces,omitempty"`
	// PagePort and PageKeys are the editor page's; 0 and nil without a page. The newest key comes first.
	PagePort int      `json:"pagePort,omitempty"`
	PageKeys [][]byte `json:"pageKeys,omitempty"`
}

// A Door is how one agent connects.
type Door struct {
	Token string `json:"token"`
	// Older are the tokens of earlier starts, newest first. Sessions of that time still use them.
	Older []string `json:"older,omitempty"`
	// SessionKey verifies that a session id is the companion's own.
	SessionKey []byte `json:"sessionKey"`
}

// maxRecord bounds a record, in bytes. 4,096 sessions behind relays fit.
const maxRecord = 8 << 20

// maxOlder bounds the older tokens. A CLI that has lived through more starts must connect anew.
const maxOlder = 1024

// NewRecord returns the record of a first start.
func NewRecord() Record { return Record{Door: newDoor(), Others: map[string]Door{}} }

// DoorOf returns an agent's door.
func (r *Record) DoorOf(agent string) Door {
	if agent == Agent {
		return r.Door
	}
	return r.Others[agent]
}

// Furnish makes a door for an agent that has none.
func (r *Record) Furnish(agent string) {
	if r.DoorOf(agent).Token == "" {
		r.Others[agent] = newDoor()
	}
}

func newDoor() Door {
	key := make([]byte, 32)
	rand.Read(key) // it never fails
	return Door{Token: newToken(), SessionKey: key}
}

// newToken returns a token of 256 random bits (SPEC A-1).
func newToken() string {
	b := make([]byte, 32)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// Next returns the record of the start that takes over. It keeps the old tokens for existing sessions, and makes new ones
// for everything else (SPEC A-1).
func (r *Record) Next() Record {
	next := *r
	next.Door = r.Door.next(newToken())
	next.Others = map[string]Door{}
	for name, d := range r.Others {
		next.Others[name] = d.next(newToken())
	}
	next.Life++
	return next
}

func (d Door) next(token string) Door {
	older := append([]string{d.Token}, d.Older...)
	return Door{Token: token, Older: older[:min(len(older), maxOlder)], SessionKey: d.SessionKey}
}

// whole says whether tokens and keys have the sizes that companions make.
func (d Door) whole() bool {
	return len(d.Token) >= 43 && // 256 bits in base64
		len(d.SessionKey) >= 32
}

// Slots is how many companions of one editor and workspace can have a record at one time.
const Slots = 8

// A Resume is the place of one record: an editor's and workspace's, in one of Slots. Its methods are for one goroutine at a time.
// Only the process that has claimed it may load and replace the record: of two companions that start at
// once, only one takes over.
type Resume struct {
	path   string
	editor string
	roots  []string
	claim  *os.File // nil when not claimed
}

// NewResume names the record in the folder state (settings.Dirs.State).
// Roots are compared as a set. The first slot is 0.
func NewResume(state, editor string, roots []string, slot int) *Resume {
	roots = slices.Sorted(slices.Values(roots))
	key := editor + "\x00" + strings.Join(roots, "\x00")
	if slot > 0 {
		key += "\x00\x00" + strconv.Itoa(slot)
	}
	sum := sha256.Sum256([]byte(key))
	return &Resume{
		path:   filepath.Join(state, "resume", hex.EncodeToString(sum[:16])+".json"),
		editor: editor,
		roots:  roots,
	}
}

// ErrLive: the record belongs to a running companion.
var ErrLive = errors.New("a companion of this workspace is running")

// Claim makes the record this companion's, until Release or the end of the process, even by a kill. It does not wait:
// it fails with ErrLive when another companion has the record.
func (r *Resume) Claim() error {
	if err := r.makeFolders(); err != nil {
		return err
	}
	for {
		f, err := os.OpenFile(lockOf(r.path), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return fmt.Errorf("no claim on the record of the last start: %w", err)
		}
		ok, err := safefile.TryLock(f)
		if err == nil && !ok {
			err = ErrLive
		}
		if err != nil {
			f.Close()
			return err
		}
		// Prune may have removed the file between the two steps.
		mine, err := f.Stat()
		there, err2 := os.Lstat(f.Name())
		if err == nil && err2 == nil && os.SameFile(mine, there) {
			r.claim = f
			return nil
		}
		f.Close()
	}
}

// Renew claims the record again if somebody has removed the file that the claim locks. It fails with ErrLive when another companion has
// claimed it since.
func (r *Resume) Renew() error {
	before := r.claim
	if before != nil {
		mine, err := before.Stat()
		there, err2 := os.Lstat(before.Name())
		if err == nil && err2 == nil && os.SameFile(mine, there) {
			return nil
		}
	}
	if err := r.Claim(); err != nil {
		return err
	}
	if before != nil {
		before.Close()
	}
	return nil
}

// Release gives the claim up, for the next start. It may be called at any time, and again.
func (r *Resume) Release() {
	if r.claim != nil {
		r.claim.Close()
		r.claim = nil
	}
}

// lockOf returns the file that a claim on a record locks.
func lockOf(record string) string { return strings.TrimSuffix(record, ".json") + ".lock" }

// ErrDamaged: the record is not one that this version has written whole. Its tokens and port are not known any more.
var ErrDamaged = errors.New("is damaged, or another version's")

// Load returns the record when it may be used: its companion ended less than ten minutes ago. A nil record without an
// error means that there is none to use. With ErrDamaged the record may be replaced, but its sessions are lost. The record must be claimed.
func (r *Resume) Load(now time.Time) (*Record, error) {
	data, err := safefile.ReadPrivate(r.path, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(r.path)
	if err != nil {
		return nil, err
	}
	// When the clock was set back, the last companion seems to have ended in the future.
	if age := now.Sub(info.ModTime()).Abs(); age >= resumeWithin {
		return nil, nil
	}
	var rec Record
	if !decodes(data, &rec) {
		return nil, fmt.Errorf("the record of the companion before this one, %q, %w", r.path, ErrDamaged)
	}
	if !r.fits(&rec) {
		return nil, nil
	}
	return &rec, nil
}

// decodes reads a record, and says whether it is whole.
func decodes(data []byte, rec *Record) bool {
	return json.Unmarshal(data, rec) == nil &&
		rec.Port > 0 && rec.Port < 65536 && rec.PagePort >= 0 && rec.PagePort < 65536 &&
		rec.Door.whole() && !slices.ContainsFunc(slices.Collect(maps.Values(rec.Others)), func(d Door) bool { return !d.whole() })
}

// fits says whether rec is of this workspace: the file's name is only a hash.
func (r *Resume) fits(rec *Record) bool {
	return rec.Editor == r.editor && slices.Equal(slices.Sorted(slices.Values(rec.Roots)), r.roots)
}

// Save writes the record of this process, 0600 and atomically.
func (r *Resume) Save(rec Record) error {
	rec.Editor, rec.Roots = r.editor, r.roots
	rec.PID, rec.Start = os.Getpid(), proc.Self()
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if err := r.makeFolders(); err != nil {
		return err
	}
	return safefile.Write(r.path, data, &safefile.Options{Volatile: true})
}

func (r *Resume) makeFolders() error {
	for _, dir := range []string{filepath.Dir(filepath.Dir(r.path)), filepath.Dir(r.path)} {
		if err := safefile.PrivateDir(dir); err != nil {
			return fmt.Errorf("no record for the next start: %w", err)
		}
	}
	return nil
}

// Inherit moves another record, with its journal, into this place. from is the record of a companion of another editor or
// other folders. Both must be claimed; from is empty afterwards. This place must have no journal.
func (r *Resume) Inherit(from *Resume, rec Record) error {
	if err := r.Save(rec); err != nil {
		return err
	}
	if err := os.Rename(from.Journal(), r.Journal()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Remove(from.path)
}

// HasJournal says whether an earlier companion has left a journal here.
func (r *Resume) HasJournal() bool {
	_, err := os.Lstat(r.Journal())
	return err == nil
}

// Port returns the port in the record, claimed or not; 0 without one.
func (r *Resume) Port() int {
	data, err := safefile.ReadPrivate(r.path, maxRecord)
	var rec Record
	if err != nil || !decodes(data, &rec) || !r.fits(&rec) {
		return 0
	}
	return rec.Port
}

// Touch notes that the writer still lives.
func (r *Resume) Touch(now time.Time) error { return os.Chtimes(r.path, now, now) }

// Prune removes records of other workspaces that are too old to use.
func (r *Resume) Prune(now time.Time) {
	dir := filepath.Dir(r.path)
	names, _ := readNames(dir)
	for _, name := range names {
		path := filepath.Join(dir, name)
		if filepath.Ext(name) != ".json" || path == r.path {
			continue
		}
		info, err := os.Lstat(path)
		// Twice the time: a living companion touches its record every minute, but the machine may have slept.
		if err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > 2*resumeWithin {
			(&Resume{path: path}).remove()
		}
	}
}

// remove removes a record and everything that belongs to it, unless its companion lives.
func (r *Resume) remove() {
	if r.Claim() != nil {
		return
	}
	defer r.Release()
	_ = os.Remove(r.path)
	_ = os.RemoveAll(r.Journal())
	_ = os.Remove(lockOf(r.path)) // while it is held: see Claim
}

// Journal returns the folder, beside the record, for what else the next companion needs. It need not exist.
func (r *Resume) Journal() string { return strings.TrimSuffix(r.path, ".json") + ".diffs" }
