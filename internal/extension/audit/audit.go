// Package audit keeps a log of extensions' tools: each run, each refusal and each denied
// contact, as lines of JSON in files that only grow and are rotated by size (SPEC S-3).
// It holds names, numbers and hashes; never the value of an argument, an output or a secret.
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

// An Event is what an Entry records.
type Event string

// The events.
const (
	Started Event = "started" // a tool was started; Ended has the same Run
	Ended   Event = "ended"   // a tool ended, however that was
	Host    Event = "host"    // a tool asked for a host that its permissions do not allow
	File    Event = "file"    // a tool named a file that its permissions withhold
	Refused Event = "refused" // a tool was not run: Why says who or what refused it
	Consent Event = "consent" // the user allowed, forbade or revoked something
)

// An Entry is one line of the log. Which fields are set depends on Event.
type Entry struct {
	Time      time.Time `json:"time"` // UTC; set by Append
	Event     Event     `json:"event"`
	Run       string    `json:"run,omitempty"` // the same for all entries of one run
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

// A Log is the log in one folder. It holds only paths: any number of processes and
// goroutines may append and read at once.
type Log struct {
	dir string
	max int64 // bytes of a file
	now func() time.Time
}

// Open names the log in the state folder dir. It creates nothing yet.
func Open(dir string) *Log { return &Log{dir: dir, max: maxFile, now: time.Now} }

// Path returns the current file of the log.
func (l *Log) Path() string { return filepath.Join(l.dir, "audit.jsonl") }

// old returns the nth rotated file; 1 is the newest.
func (l *Log) old(n int) string { return filepath.Join(l.dir, "audit-"+strconv.Itoa(n)+".jsonl") }

// Append writes one entry, as far as the system can completely or not at all. Its error
// says what to do; show it to whoever asked for the run.
func (l *Log) Append(e Entry) error {
	e.Time, e.PID = l.now().UTC().Truncate(time.Millisecond), os.Getpid()
	line, err := encode(e)
	if err == nil {
		err = l.write(line)
	}
	if err != nil {
		return fmt.Errorf("the audit log %q cannot be written: %w; make room, or correct its permissions", l.Path(), safefile.Cause(err))
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

// write appends a line in one call, which O_APPEND keeps in one piece. A process that
// opened the file just before its rotation still writes there; readers look there too.
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
	// A line that a full disk cut short must not damage this one.
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

// rotate sets the current file aside. Only one process does it, and only while the file
// is still too large. After a failure the file is larger, and nothing else is wrong.
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
