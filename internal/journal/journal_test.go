package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/safefile"
)

type view struct{}

func (view) Show(context.Context, *review.Diff) error                  { return nil }
func (view) Close(*review.Diff, review.Outcome)                        {}
func (view) Content(context.Context, *review.Diff) (review.Edit, bool) { return review.Edit{}, false }

type owner struct {
	t  *testing.T
	j  *Journal
	n  uint64
	id string
}

func (*owner) Label() string { return "somebody" }
func (o *owner) Settled(d *review.Diff, out review.Outcome) {
	if o.j == nil {
		return
	}
	o.n++
	if out.Kind == review.Accepted {
		o.j.Decided(d.ID(), &out.Content, "accepted", "LIFE", o.n)
	} else {
		o.j.Decided(d.ID(), nil, "rejected", "LIFE", o.n)
	}
}

// open opens a diff as a session does.
func (o *owner) open(r *review.Registry, p review.Proposal) *review.Diff {
	o.t.Helper()
	d, err := r.Open(o.t.Context(), o, p, func(d *review.Diff) { o.j.Opened(o.id, d) })
	if err != nil {
		o.t.Fatal(err)
	}
	return d
}

func open(t *testing.T, dir string) *Journal {
	return Open(dir, nil, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
}

// book is what a journal knows, with texts: by id, in words that tests compare.
func book(t *testing.T, j *Journal) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, d := range j.Diffs() {
		texts, err := j.Texts(d.ID)
		if err != nil {
			t.Errorf("%s: %v", d.Key, err)
		}
		all[d.ID] = fmt.Sprintf("%s %s %v %q %q %q %+v", d.Session, d.Key, d.Outcomes, texts.Old, texts.New, texts.Text, texts.Agreed)
	}
	return all
}

// same compares what a journal knows with what one that reads its folder finds.
func same(t *testing.T, j *Journal, dir string) {
	t.Helper()
	if diff := cmp.Diff(book(t, j), book(t, open(t, dir))); diff != "" {
		t.Error(diff)
	}
}

type setup struct {
	dir string
	j   *Journal
	r   *review.Registry
}

func newSetup(t *testing.T) *setup {
	s := &setup{dir: filepath.Join(t.TempDir(), "j")}
	s.j = open(t, s.dir)
	s.r = review.New(review.Options{View: view{}})
	t.Cleanup(s.j.Follow(s.r))
	return s
}

func (s *setup) session(t *testing.T, id string) *owner { return &owner{t: t, j: s.j, id: id} }

// texts that a format might trip over.
var odd = []string{
	"", "a", "\n", "\r\n{\"kind\":\"ended\"}\n", "\ufeffä\u2028\x00\x7f", "\xff\xfe half a character",
	strings.Repeat("x", inlineText), strings.Repeat("y", inlineText+1), strings.Repeat("long line\r\n", 40_000),
}

// SPEC L-3, F-6: whatever was opened, edited, decided, heard and taken back, a companion that reads the folder at any moment, as after
// a kill, finds exactly that, to the byte.
func TestEveryStepIsThereL3(t *testing.T) {
	s := newSetup(t)
	one, two := s.session(t, "one"), s.session(t, "two")
	var diffs []*review.Diff
	for i, text := range odd {
		for _, o := range []*owner{one, two} {
			diffs = append(diffs, o.open(s.r, review.Proposal{Key: fmt.Sprint("/k", i), Path: "/k", Title: "t\n", Old: odd[len(odd)-1-i], New: text, IsNew: i == 0}))
			same(t, s.j, s.dir)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		d := diffs[random.IntN(len(diffs))]
		text, _ := d.Text()
		at := random.IntN(len(text) + 1)
		cut := random.IntN(len(text) - at + 1)
		switch random.IntN(12) {
		case 0:
			_ = s.r.Accept(d.ID(), d.Now().Seen, nil)
		case 1:
			text := text + "and accepted"
			_ = s.r.Accept(d.ID(), d.Now().Seen, &text)
		case 2:
			_ = s.r.Reject(d.ID())
		case 3:
			s.j.Heard("one", uint64(random.IntN(10)))
		case 4:
			s.j.Dropped("two", fmt.Sprint("/k", random.IntN(len(odd))))
		case 5:
			s.j.Forget(d.ID())
		default:
			_, _ = s.r.Edit(d.ID(), review.Edit{Text: text[:at] + odd[n%5] + text[at+cut:]})
		}
		if n%10 == 0 {
			same(t, s.j, s.dir)
		}
	}
	same(t, s.j, s.dir)
	s.j.Ended("one", true)
	s.j.Ended("two", false)
	same(t, s.j, s.dir)
	again := open(t, s.dir)
	if len(again.Diffs()) != 0 || !slices.Equal(again.Deleted(), []string{"two"}) {
		t.Errorf("left: %+v, %v", again.Diffs(), again.Deleted())
	}
	if names := list(t, s.dir); !slices.Equal(names, []string{logName}) {
		t.Errorf("files left: %v", names)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A file that ends anywhere, or has a byte changed, is read up to the last record before, and goes on from there.
func TestTornAnywhere(t *testing.T) {
	s := newSetup(t)
	o := s.session(t, "one")
	d := o.open(s.r, review.Proposal{Key: "/a", Path: "/a", New: "new"})
	_, _ = s.r.Edit(d.ID(), review.Edit{Text: "newer"})
	_ = s.r.Accept(d.ID(), d.Now().Seen, nil)
	o.open(s.r, review.Proposal{Key: "/b", Path: "/b", New: "second"})
	whole, err := os.ReadFile(s.j.path())
	if err != nil {
		t.Fatal(err)
	}
	seen, last := map[string]bool{}, len(whole)-len(lastRecord(whole))
	for at := range whole {
		for i, data := range [][]byte{whole[:at], append(append(slices.Clone(whole[:at]), whole[at]^0x20), whole[at+1:]...)} {
			dir := filepath.Join(t.TempDir(), "j")
			if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, logName), data, 0o600)); err != nil {
				t.Fatal(err)
			}
			j := open(t, dir)
			switch known := book(t, j); {
			case i == 0:
				seen[fmt.Sprint(known)] = true
				if first := at < len(magic); (j.Lost() != nil) != first { // no tear leaves a part of the first line
					t.Errorf("cut at %d: %v", at, j.Lost())
				}
			case at < last && (len(j.Diffs()) == 0 || j.Diffs()[len(j.Diffs())-1].Key != "/b") && at < len(magic)-2:
				t.Errorf("byte %d: %v", at, known) // a damaged record costs no other
			case at < last && j.Lost() == nil:
				t.Errorf("byte %d is damaged, and nobody is told", at)
			}
			third := &owner{t: t, j: j, id: "one"}
			third.open(s.r, review.Proposal{Key: "/c", Path: "/c", New: "third"})
			same(t, j, dir)
			if n := len(j.Diffs()); n == 0 || j.Diffs()[n-1].Key != "/c" {
				t.Fatalf("cut at %d: %v", at, book(t, j))
			}
			j.Close()
		}
	}
	if len(seen) != 4 { // nothing, and what is known after each record but the last
		t.Errorf("%d states were seen: %v", len(seen), seen)
	}
}

// SPEC L-3: a file of records that somebody has emptied, cut, filled with zeros or removed is said, whether texts are left beside it or
// not; what a kill leaves is not.
func TestEmptied(t *testing.T) {
	long := strings.Repeat("x", inlineText+1)
	for name, c := range map[string]struct {
		text string
		do   func(log string, whole []byte) error
		lost bool
	}{
		"emptied beside a text":      {long, func(log string, _ []byte) error { return os.Truncate(log, 0) }, true},
		"emptied":                    {"x", func(log string, _ []byte) error { return os.Truncate(log, 0) }, true},
		"zeros":                      {"x", func(log string, whole []byte) error { return os.WriteFile(log, make([]byte, len(whole)), 0) }, true},
		"without its first line":     {"x", func(log string, whole []byte) error { return os.WriteFile(log, whole[len(magic):], 0) }, true},
		"of the next version":        {"x", func(log string, whole []byte) error { whole[len(magic)-2]++; return os.WriteFile(log, whole, 0) }, true},
		"removed beside a text":      {long, func(log string, _ []byte) error { return os.Remove(log) }, true},
		"killed before the record":   {long, func(log string, _ []byte) error { return os.Truncate(log, int64(len(magic))) }, false},
		"killed in the first record": {long, func(log string, _ []byte) error { return os.Truncate(log, int64(len(magic))+20) }, false},
		"killed before the text":     {"x", func(log string, _ []byte) error { return os.Truncate(log, int64(len(magic))) }, false},
		"killed before the file":     {"x", func(log string, _ []byte) error { return os.Rename(log, log+"-"+safefile.TempName()) }, false},
	} {
		s := newSetup(t)
		o := s.session(t, "one")
		o.open(s.r, review.Proposal{Key: "/a", Path: "/a", New: c.text})
		whole, err := os.ReadFile(s.j.path())
		if err := errors.Join(err, c.do(s.j.path(), whole)); err != nil {
			t.Fatal(err)
		}
		j := open(t, s.dir)
		if (j.Lost() != nil) != c.lost {
			t.Errorf("%s: said: %v", name, j.Lost())
		}
		(&owner{t: t, j: j, id: "two"}).open(s.r, review.Proposal{Key: "/b", Path: "/b", New: long})
		same(t, j, s.dir)
		if again := open(t, s.dir); again.Lost() != nil {
			t.Errorf("%s, at the start after that: %v", name, again.Lost())
		}
	}
}

// SPEC L-3: a file that another program cuts or writes to meanwhile is written anew, with everything in it.
func TestChangedMeanwhile(t *testing.T) {
	for name, change := range map[string]func(log string) error{
		"emptied": func(log string) error { return os.Truncate(log, 0) },
		"cut":     func(log string) error { return os.Truncate(log, int64(len(magic))+30) },
		"added to": func(log string) error {
			data, err := os.ReadFile(log)
			return errors.Join(err, os.WriteFile(log, append(data, "and more"...), 0))
		},
	} {
		s := newSetup(t)
		s.j.trouble = func(error) {}
		o := s.session(t, "one")
		o.open(s.r, review.Proposal{Key: "/a", Path: "/a", New: "a"})
		if err := change(s.j.path()); err != nil {
			t.Fatal(err)
		}
		s.j.looked = s.j.looked.Add(-lookEvery)
		o.open(s.r, review.Proposal{Key: "/b", Path: "/b", New: "b"})
		if s.j.Trouble() == nil {
			t.Errorf("%s: nobody is told", name)
		}
		s.j.again()
		if s.j.Trouble() != nil || len(s.j.Diffs()) != 2 {
			t.Errorf("%s: %v", name, s.j.Trouble())
		}
		same(t, s.j, s.dir)
	}
}

// lastRecord returns the last record of a file.
func lastRecord(file []byte) []byte {
	last := file
	for rest := file[len(magic):]; len(rest) > 0; {
		_, size := decodeAt(rest)
		last, rest = rest[:size], rest[size:]
	}
	return last
}

// SPEC L-3: one damaged record costs what it says, no other, and nobody sees a text that missing edits have made wrong.
func TestDamageCostsOneRecord(t *testing.T) {
	long := strings.Repeat("0123456789\n", 1000)
	s := newSetup(t)
	o := s.session(t, "one")
	a := o.open(s.r, review.Proposal{Key: "/a", Path: "/a", New: long})
	mark := s.j.size
	_, _ = s.r.Edit(a.ID(), review.Edit{Text: "first " + long})
	at := mark + headerSize + 20
	_, _ = s.r.Edit(a.ID(), review.Edit{Text: "first second " + long})
	forged, _ := encode([]byte(magic), &record{Kind: deleted, Session: "one"})
	o.open(s.r, review.Proposal{Key: "/b", Path: "/b", New: string(forged)})
	o.open(s.r, review.Proposal{Key: "/c", Path: "/c", New: "c"})
	data, err := os.ReadFile(s.j.path())
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= 1
	if err := os.WriteFile(s.j.path(), data, 0o600); err != nil {
		t.Fatal(err)
	}
	j := open(t, s.dir)
	if len(j.Diffs()) != 3 || j.Lost() == nil || !strings.Contains(j.Lost().Error(), s.dir) {
		t.Errorf("%v; said: %v", j.Diffs(), j.Lost())
	}
	if texts, err := j.Texts(a.ID()); err != nil || texts.Text != long {
		t.Errorf("not the text before the damage: %.30q, %v", texts.Text, err)
	}
	for _, d := range j.Diffs()[1:] {
		if _, err := j.Texts(d.ID); err != nil {
			t.Errorf("%s: %v", d.Key, err)
		}
	}
	if again := open(t, s.dir); len(again.Diffs()) != 3 || again.Lost() != nil {
		t.Errorf("the next start: %v; said: %v", again.Diffs(), again.Lost())
	}
}

// SPEC A-4: what is written can be read again, however long the names in it.
func TestLongNames(t *testing.T) {
	s := newSetup(t)
	s.j.trouble = func(error) {}
	o := s.session(t, "one")
	o.open(s.r, review.Proposal{Key: strings.Repeat("k", maxRecord), Path: "/a", New: "a"})
	if s.j.Trouble() == nil {
		t.Error("nobody is told")
	}
	o.open(s.r, review.Proposal{Key: "/b", Path: "/b", New: "b"})
	s.j.Dropped("one", strings.Repeat("k", maxRecord))
	s.j.again()
	same(t, s.j, s.dir)
}

// SPEC L-3, T-6: records that stand in the file twice, one by one, from somewhere on, or all, count once: nothing is open again, decided
// twice, edited twice or lost.
func TestRepeatedRecords(t *testing.T) {
	s := newSetup(t)
	one, two := s.session(t, "one"), s.session(t, "two")
	long := strings.Repeat("0123456789abcdef\n", 1000)
	d := one.open(s.r, review.Proposal{Key: "/a", Path: "/a", Old: "old", New: long})
	for cut := 1; cut < 4; cut++ { // each time the first character
		_, _ = s.r.Edit(d.ID(), review.Edit{Text: long[cut:]})
	}
	_ = s.r.Reject(one.open(s.r, review.Proposal{Key: "/b", Path: "/b", New: "not heard"}).ID())
	_ = s.r.Reject(one.open(s.r, review.Proposal{Key: "/c", Path: "/c", New: "heard"}).ID())
	s.j.Heard("one", one.n)
	two.open(s.r, review.Proposal{Key: "/d", Path: "/d", New: "of a session that is deleted"})
	s.j.Ended("two", false)
	one.open(s.r, review.Proposal{Key: "/e", Path: "/e", New: "taken back"})
	s.j.Dropped("one", "/e")
	whole, err := os.ReadFile(s.j.path())
	if err != nil {
		t.Fatal(err)
	}
	var records [][]byte
	for rest := whole[len(magic):]; len(rest) > 0; {
		size := headerSize + int(binary.BigEndian.Uint32(rest))
		records, rest = append(records, rest[:size]), rest[size:]
	}
	check := func(name string, data []byte) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "j")
		if err := os.CopyFS(dir, os.DirFS(s.dir)); err != nil { // with the files of its texts
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, logName), data, 0o600); err != nil {
			t.Fatal(err)
		}
		j := open(t, dir)
		if diff := cmp.Diff(book(t, s.j), book(t, j)); diff != "" || !slices.Equal(s.j.Deleted(), j.Deleted()) {
			t.Errorf("%s: %v\n%s", name, j.Deleted(), diff)
		}
		(&owner{t: t, j: j, id: "three"}).open(s.r, review.Proposal{Key: "/z", Path: "/z", New: "next"})
		same(t, j, dir) // what is written from then on counts
	}
	each := []byte(magic)
	for i, r := range records {
		each = append(append(each, r...), r...)
		check(fmt.Sprintf("from record %d on", i), append(slices.Clone(whole), bytes.Join(records[i:], nil)...))
	}
	check("each", each)
}

// SPEC A-4: the file stays small however long it is written to, and texts that are of no use are gone at once.
func TestBoundedA4(t *testing.T) {
	s := newSetup(t)
	o := s.session(t, "one")
	big := strings.Repeat("0123456789abcdef", 64<<10)
	d := o.open(s.r, review.Proposal{Key: "/big", Path: "/big", New: big})
	for n := range 600 {
		_, _ = s.r.Edit(d.ID(), review.Edit{Text: fmt.Sprint(n) + big})
		e := o.open(s.r, review.Proposal{Key: "/small", Path: "/small", Old: big[:inlineText], New: big[:n]})
		_ = s.r.Reject(e.ID())
		s.j.Heard("one", o.n)
	}
	var total int64
	for _, name := range list(t, s.dir) {
		info, err := os.Stat(filepath.Join(s.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total > 5<<20 {
		t.Errorf("%d bytes for one diff of a megabyte: %v", total, list(t, s.dir))
	}
	same(t, s.j, s.dir)
}

// What cannot be written is said once, keeps nobody from working, and is written when that works again.
func TestTrouble(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "j")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	said := make(chan error, 10)
	j := Open(dir, nil, func(err error) { said <- err })
	r := review.New(review.Options{View: view{}})
	t.Cleanup(j.Follow(r))
	o := &owner{t: t, j: j, id: "one"}
	for i, text := range odd {
		d := o.open(r, review.Proposal{Key: fmt.Sprint("/k", i), Path: "/k", New: text})
		_, _ = r.Edit(d.ID(), review.Edit{Text: text + "edited"})
		if i%3 == 0 {
			_ = r.Accept(d.ID(), d.Now().Seen, nil)
		}
	}
	if err := <-said; err == nil || !strings.Contains(err.Error(), dir) || j.Trouble() == nil {
		t.Errorf("said: %v", err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := <-said; err != nil || j.Trouble() != nil {
		t.Errorf("said then: %v", err)
	}
	same(t, j, dir)
	if len(said) > 0 {
		t.Errorf("said once more: %v", <-said)
	}
}

// Nothing in the folder is trusted: texts elsewhere, links, sizes that do not fit, files of nobody.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret.text")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := []byte(magic)
	for i, text := range []*stored{
		{Size: 6, File: "../secret.text"}, {Size: 6, File: secret}, {Size: -1}, {Size: maxText + 1, File: "a.text"},
		{Size: 6, File: "log"}, {Size: 6, File: "none.text"}, {Size: 6, File: "link.text"}, {Size: 5, File: "short.text"},
	} {
		line, _ := json.Marshal(record{Kind: opened, ID: fmt.Sprint(i), Key: fmt.Sprint(i), Old: &stored{}, New: text})
		data = frame(data, append(line, '\n'))
	}
	err := errors.Join(os.WriteFile(filepath.Join(dir, logName), data, 0o600), os.Symlink(secret, filepath.Join(dir, "link.text")),
		os.WriteFile(filepath.Join(dir, "short.text"), []byte("123456"), 0o600), os.WriteFile(filepath.Join(dir, "orphan.text"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "theirs"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	j := open(t, dir)
	for _, d := range j.Diffs() {
		if texts, err := j.Texts(d.ID); err == nil {
			t.Errorf("%s: %+v", d.ID, texts)
		}
	}
	if names := list(t, dir); slices.Contains(names, "orphan.text") || !slices.Contains(names, "theirs") {
		t.Errorf("files: %v", names)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(magic))
	f.Add(frame([]byte(magic), []byte("{\"kind\":\"opened\",\"id\":\"a\",\"old\":{},\"new\":{\"size\":1}}\nx")))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, logName), data, 0o600); err != nil {
			t.Fatal(err)
		}
		j := Open(dir, nil, func(error) {})
		for _, d := range j.Diffs() {
			_, _ = j.Texts(d.ID)
		}
		if int(j.size) > len(data) {
			t.Errorf("%d of %d bytes are good", j.size, len(data))
		}
		j.Close()
	})
}

// A splice is exact, and short for what a person types, wherever that is.
func TestSplice(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 600 {
		before := strings.Repeat("ab", random.IntN(200))
		at := random.IntN(len(before) + 1)
		cut := random.IntN(len(before) - at + 1)
		ins := strings.Repeat("ba", random.IntN(5))
		after := before[:at] + ins + before[at+cut:]
		s := spliceOf(before, after)
		if got, ok := s.apply(before); !ok || got != after || len(s.ins) > len(ins) {
			t.Fatalf("%q to %q: %+v", before, after, s)
		}
	}
	long := strings.Repeat("0123456789", 1<<20)
	if s := spliceOf(long, long[:5_000_003]+"x"+long[5_000_003:]); s != (splice{5_000_003, 0, "x"}) {
		t.Errorf("%+v", s)
	}
}

// What openDiff waits for, and the record by which the diff is taken back.
func BenchmarkOpened(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10, 5 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			j := Open(filepath.Join(b.TempDir(), "j"), nil, func(err error) { b.Error(err) })
			r := review.New(review.Options{View: view{}})
			text := strings.Repeat("x", size)
			d, err := r.Open(b.Context(), &owner{}, review.Proposal{Key: "k", New: text}, nil)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				j.Opened("s", d)
				j.Dropped("s", "k")
			}
		})
	}
}

// SPEC T-6: the number of an outcome is not given again, also when that outcome was dropped and an older one waits; a client that
// has read it would take the next for heard.
func TestNumbersGoOnT6(t *testing.T) {
	s := newSetup(t)
	o := s.session(t, "one")
	for _, key := range []string{"/a", "/b"} {
		_ = s.r.Reject(o.open(s.r, review.Proposal{Key: key, Path: key, New: "x"}).ID())
	}
	s.j.Dropped("one", "/b")
	for range 2 { // as it was written, and written anew
		if got := open(t, s.dir).Newest("one"); got.Seq != 2 || got.Life != "LIFE" {
			t.Errorf("the newest: %+v", got)
		}
		s.j.mu.Lock()
		if err := s.j.rewrite(); err != nil {
			t.Error(err)
		}
		s.j.mu.Unlock()
	}
}

// frame appends a payload, framed, to b.
func frame(b, payload []byte) []byte {
	start := len(b)
	b = append(append(b, make([]byte, headerSize)...), payload...)
	seal(b[start:])
	return b
}
