package consent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// ErrDamaged: the file of answers cannot be understood. Nothing is allowed while that
// lasts.
var ErrDamaged = errors.New("the answers that were kept cannot be read")

// Bounds of the file: nobody answers so often.
const (
	maxFile    = 8 << 20
	maxRecords = 2000
)

// lockWait is how long a change waits for another process's.
const lockWait = 10 * time.Second

// A Store keeps answers in one file of the state folder. It holds only paths: any number
// of processes and goroutines may use it at once, since each change locks and replaces
// the whole file.
type Store struct {
	dir string
	now func() time.Time
}

// Open names the store in the state folder dir. It creates nothing yet.
func Open(dir string) *Store { return &Store{dir: dir, now: time.Now} }

// Path returns the file of the answers.
func (s *Store) Path() string { return filepath.Join(s.dir, "consent.json") }

// content is the file.
type content struct {
	Version int      `json:"version"`
	Records []Record `json:"records"` // oldest first
}

// version is the version of the file's form.
const version = 1

// List returns every record, oldest first. It fails with ErrDamaged for a file that
// cannot be understood; such a file allows nothing.
func (s *Store) List() ([]Record, error) {
	if _, err := os.Lstat(s.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err := safefile.PrivateDir(s.dir); err != nil {
		return nil, s.damaged(err)
	}
	data, err := safefile.ReadPrivate(s.Path(), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, s.damaged(err)
	}
	records, err := parse(data)
	if err != nil {
		return nil, s.damaged(err)
	}
	return records, nil
}

// parse reads the file, completely or not at all.
func parse(data []byte) ([]Record, error) {
	var c content
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields() // a field that is not understood might narrow an answer
	if err := dec.Decode(&c); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) || c.Version != version {
		return nil, errors.New("it is not of a form that this version of pollux knows")
	}
	for _, r := range c.Records {
		if r.Extension == "" || r.Source == "" || r.Answer != Always && r.Answer != Never {
			return nil, errors.New("it holds a record that pollux did not write")
		}
	}
	return c.Records, nil
}

func (s *Store) damaged(err error) error {
	return fmt.Errorf("%w, so that nothing is allowed: %q: %w; look at the file, or forget all answers with: pollux extensions consent revoke --all", ErrDamaged, s.Path(), err)
}

// Lookup returns the verdict about a subject.
func (s *Store) Lookup(subject Subject) (Verdict, error) {
	records, err := s.List()
	if err != nil {
		return Verdict{}, err
	}
	return judge(subject, records), nil
}

// Reader reads the answers once, for verdicts about many subjects.
func (s *Store) Reader() (func(Subject) Verdict, error) {
	records, err := s.List()
	if err != nil {
		return nil, err
	}
	return func(subject Subject) Verdict { return judge(subject, records) }, nil
}

// State is Lookup for an extension with this name. It calls subject, which may read the extension's whole content, only if there is a
// record about the extension.
func (s *Store) State(name string, subject func() (Subject, error)) (Verdict, error) {
	records, err := s.List()
	if err != nil {
		return Verdict{}, err
	}
	if !slices.ContainsFunc(records, func(r Record) bool { return strings.EqualFold(r.Extension, name) }) {
		return Verdict{Status: NotAsked}, nil
	}
	about, err := subject()
	if err != nil {
		return Verdict{}, err
	}
	return judge(about, records), nil
}

// judge applies SPEC S-2. A refusal outweighs everything; then the newest record of the
// same content decides.
func judge(subject Subject, records []Record) Verdict {
	var latest, same *Record
	for i := range records {
		r := &records[i]
		switch {
		case !strings.EqualFold(r.Extension, subject.Extension) || r.Source != subject.Source:
		case r.Answer == Never:
			return Verdict{Status: Denied, Record: r}
		default:
			latest = r
			if r.Content == subject.Content {
				same = r
			}
		}
	}
	switch {
	case latest == nil:
		return Verdict{Status: NotAsked}
	case same == nil:
		return Verdict{Status: Changed, Record: latest, Change: subject.Permissions.Compare(latest.Permissions)}
	case !same.Permissions.Covers(subject.Permissions):
		return Verdict{Status: Wider, Record: same, Change: subject.Permissions.Compare(same.Permissions)}
	}
	return Verdict{Status: Allowed, Record: same}
}

// ErrAgent: an agent's shell tried to give an answer; only a person may.
var ErrAgent = errors.New("consent is the user's to give, and this is an agent's shell")

// A Giver says how an answer was given. Grant refuses the zero value.
type Giver struct {
	via    string
	person func(context.Context) error // fails when it is not a person who types here
}

// Typed is a command typed into this process's shell. person must return nil when a person types there, and otherwise the
// reason against it. Without person, Grant refuses (package ask has the check for this machine).
func Typed(person func(context.Context) error) Giver { return Giver{via: typed, person: person} }

// typed is the name of this way in a record.
const typed = "command"

// Answered is an answer that an Asker brought, from this package or any other that asks a person where no agent can type.
func Answered() Giver { return Giver{via: "question"} }

// check says why an answer given like that does not count.
func (g Giver) check(ctx context.Context) error {
	switch {
	case g.via == "":
		return errors.New("nobody has given this answer")
	case g.via == typed && g.person == nil:
		return errors.New("nobody can say whether a person typed this")
	case g.via == typed && g.person(ctx) != nil:
		return ErrAgent
	}
	return nil
}

// Grant keeps an answer, Always or Never, in place of earlier answers about the same
// extension, source and content. It fails for Once, which cannot be kept, and with ErrAgent for an answer typed in an agent's shell.
func (s *Store) Grant(ctx context.Context, subject Subject, answer Answer, by Giver) error {
	if answer != Always && answer != Never {
		return fmt.Errorf("%q is no answer to be kept", answer)
	}
	if err := by.check(ctx); err != nil {
		return err
	}
	return s.change(ctx, func(records []Record) []Record {
		records = slices.DeleteFunc(records, func(r Record) bool {
			return strings.EqualFold(r.Extension, subject.Extension) && r.Source == subject.Source && (r.Content == subject.Content || r.Answer == Never)
		})
		records = append(records, Record{Subject: subject, Answer: answer, Time: s.now().UTC().Truncate(time.Second), Via: by.via})
		return bounded(records)
	})
}

// bounded drops the oldest records beyond the bound, Always before Never.
func bounded(records []Record) []Record {
	for len(records) > maxRecords {
		i := max(0, slices.IndexFunc(records, func(r Record) bool { return r.Answer == Always }))
		records = slices.Delete(records, i, i+1)
	}
	return records
}

// Revoke forgets every answer about an extension, from any source, and returns their number.
func (s *Store) Revoke(ctx context.Context, extension string) (n int, err error) {
	err = s.change(ctx, func(records []Record) []Record {
		kept := slices.DeleteFunc(slices.Clone(records), func(r Record) bool { return strings.EqualFold(r.Extension, extension) })
		n = len(records) - len(kept)
		return kept
	})
	return n, err
}

// RevokeAll forgets every answer, even when the file cannot be read.
func (s *Store) RevokeAll(ctx context.Context) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return s.write(nil)
}

// change replaces the records under the lock.
func (s *Store) change(ctx context.Context, f func([]Record) []Record) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	records, err := s.List()
	if err != nil {
		return err
	}
	return s.write(f(records))
}

func (s *Store) write(records []Record) error {
	data, err := json.MarshalIndent(content{version, append([]Record{}, records...)}, "", "  ")
	if err != nil {
		return err
	}
	return safefile.Write(s.Path(), append(data, '\n'), nil)
}

// lock waits for the store's lock. The system releases it when its process ends.
func (s *Store) lock(ctx context.Context) (func(), error) {
	if err := safefile.PrivateDir(s.dir); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.dir, "consent.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the answers cannot be changed: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for {
		ok, err := safefile.TryLock(f)
		if err == nil && ok {
			return func() { f.Close() }, nil
		}
		if err == nil {
			select {
			case <-ctx.Done():
				err = errors.New("another pollux is changing them; try again")
			case <-time.After(5 * time.Millisecond):
				continue
			}
		}
		f.Close()
		return nil, fmt.Errorf("the answers cannot be changed: %w", err)
	}
}
