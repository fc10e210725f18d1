// Package audit keeps a log of what became of extensions' tools: each run, each
// refusal and each contact that was denied, as lines of JSON in files that only
// grow and are rotated by size (SPEC S-3). It holds names, numbers and hashes;
// never an argument's value, an output or a secret.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/words"
)

// An Event is what an Entry tells of.
type Event string

// The events.
const (
	Started Event = "started" // a tool was started; Ended has the same Run
	Ended   Event = "ended"   // a tool ended, however that was
	Host    Event = "host"    // a tool asked for a host that its policy does not allow
	File    Event = "file"    // a tool spoke of a file that its policy keeps from it
	Refused Event = "refused" // a tool was not run: Why says who or what refused it
	Consent Event = "consent" // the user allowed, forbade or revoked something
)

// An Entry is one line of the log. Which fields are set depends on Event.
type Entry struct {
	Time      time.Time `json:"time"` // UTC; set by Append
	Event     Event     `json:"event"`
	Run       string    `json:"run,omitempty"` // the same for all that belongs to one run
	PID       int       `json:"pid"`           // pollux's own; set by Append
	By        string    `json:"by,omitempty"`  // what asked for it, such as "terminal" or "gemini-cli"
	Extension string    `json:"extension"`
	Version   string    `json:"version,omitempty"`
	Content   string    `json:"content,omitempty"` // hash of what was run, or "link" for one under development
	Tool      string    `json:"tool,omitempty"`
	Args      []string  `json:"args,omitempty"` // names only
	Workspace string    `json:"workspace,omitempty"`
	Policy    string    `json:"policy,omitempty"`    // hash of the permissions that it ran under
	Assurance string    `json:"assurance,omitempty"` // full, reduced, or none for --unsafe-no-sandbox

	Milliseconds int64  `json:"milliseconds,omitempty"`
	Exit         *int   `json:"exit,omitempty"`
	Signal       int    `json:"signal,omitempty"`
	Limit        string `json:"limit,omitempty"`  // time, memory or output, when that ended it
	Stdout       int64  `json:"stdout,omitempty"` // bytes
	Stderr       int64  `json:"stderr,omitempty"` // bytes

	Target string `json:"target,omitempty"` // the host and port that was refused
	Count  int    `json:"count,omitempty"`  // how often
	Why    string `json:"why,omitempty"`
}

// The size at which a file of the log is set aside, and how many such files are kept.
const (
	maxFile = 4 << 20
	maxOld  = 4
)

// maxLine bounds an entry; names come from manifests and hosts from tools.
const maxLine = 16 << 10

// A Log is the log in one folder. It has no state beside paths: any number of
// processes and goroutines may append and read at once.
type Log struct {
	dir string
	max int64 // bytes of a file
	now func() time.Time
}

// Open names the log in the state folder dir; it creates nothing yet.
func Open(dir string) *Log { return &Log{dir: dir, max: maxFile, now: time.Now} }

// Path is the current file of the log.
func (l *Log) Path() string { return filepath.Join(l.dir, "audit.jsonl") }

// old is the nth file that was set aside, 1 being the newest.
func (l *Log) old(n int) string { return filepath.Join(l.dir, "audit-"+strconv.Itoa(n)+".jsonl") }

// Append writes one entry, whole or not at all as far as the system can. Its
// error says what to do; who asked for the run must not be left unaware of it.
func (l *Log) Append(e Entry) error {
	e.Time, e.PID = l.now().UTC().Truncate(time.Millisecond), os.Getpid()
	line, err := encode(e)
	if err == nil {
		err = l.write(line)
	}
	if err != nil {
		return fmt.Errorf("the audit log %q cannot be written: %w; make room, or correct its permissions", l.Path(), words.Cause(err))
	}
	return nil
}

// encode makes an entry a line of at most maxLine bytes.
func encode(e Entry) ([]byte, error) {
	for _, text := range []*string{&e.Extension, &e.Version, &e.Tool, &e.Workspace, &e.Target, &e.Why, &e.By} {
		*text = words.Clip(*text, 1024)
	}
	e.Args = e.Args[:min(len(e.Args), 64)]
	line, err := json.Marshal(e)
	if err == nil && len(line) >= maxLine {
		e.Args = nil
		line, err = json.Marshal(e)
	}
	return append(line, '\n'), err
}

// write appends a line in one call, which O_APPEND makes one piece among
// those of other processes. Who opened the file just before it was set aside
// writes there; readers look there, too.
func (l *Log) write(line []byte) error {
	if err := safefile.PrivateDir(l.dir); err != nil {
		return err
	}
	f, err := openLog(l.Path(), os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file; remove it")
	}
	// A line that was cut short, by a full disk, must not take this one with it.
	if size := info.Size(); size > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, size-1); err == nil && last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	if _, err := f.Write(line); err != nil {
		return err
	}
	if info.Size()+int64(len(line)) > l.max {
		l.rotate()
	}
	return nil
}

// rotate sets the current file aside. Only one process does it, and only while
// the file is still too large; a failure leaves a larger file, nothing worse.
func (l *Log) rotate() {
	lock, err := os.OpenFile(filepath.Join(l.dir, "audit.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer lock.Close()
	if ok, err := safefile.TryLock(lock); err != nil || !ok {
		return
	}
	if info, err := os.Lstat(l.Path()); err != nil || info.Size() <= l.max {
		return // done by another
	}
	for n := maxOld - 1; n >= 1; n-- {
		if err := os.Rename(l.old(n), l.old(n+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	_ = os.Rename(l.Path(), l.old(1)) // the next writer tries again
}
