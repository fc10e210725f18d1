package review_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
)

// A disk is the files of a test.
type disk struct {
	mu    sync.Mutex
	files map[string]review.File
}

func (d *disk) Read(path string) review.File {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files[path]
}

func (d *disk) write(path, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files == nil {
		d.files = map[string]review.File{}
	}
	d.files[path] = review.File{Text: text, Exists: true}
}

func (d *disk) set(path string, f review.File) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[path] = f
}

const (
	oldText = "one\ntwo\nthree\nfour\nfive\n"
	newText = "one\ntwo\nthree\nfour\nFIVE\n"
)

// onDisk is a scene with a file and a proposal for it.
func onDisk(t *testing.T) (*scene, *disk, *review.Diff) {
	t.Helper()
	files := &disk{}
	files.write("/a", oldText)
	s := newScene(review.Options{Files: files})
	return s, files, s.one.Propose(t, s.Registry, "/a", oldText, newText)
}

// SPEC F-13: nothing is accepted over a change that the view has not shown,
// also when nobody has told of it; what fits together is merged, and counts as an edit.
func TestAcceptOverChangeF13(t *testing.T) {
	s, files, d := onDisk(t)
	var kinds []review.EventKind
	s.Watch(func(e review.Event) { kinds = append(kinds, e.Kind) })
	seen := d.Now().Seen
	files.write("/a", strings.Replace(oldText, "one", "ONE", 1))
	wantErr(t, s.Accept(d.ID(), seen, nil), review.ErrFileChanged)
	wantErr(t, s.Accept(d.ID(), seen, ptr(newText)), review.ErrStale)
	now := d.Now()
	want := strings.Replace(newText, "one", "ONE", 1)
	if now.Text != want || now.Base.Text != strings.Replace(oldText, "one", "ONE", 1) || now.Seen.Base != 1 || now.Seen.Text == seen.Text || now.Conflict != nil {
		t.Errorf("the newest is %+v", now)
	}
	if len(kinds) != 2 || kinds[0] != review.Edited || kinds[1] != review.Rebased {
		t.Errorf("told %v", kinds)
	}
	if err := s.Accept(d.ID(), now.Seen, nil); err != nil {
		t.Fatal(err)
	}
	s.expect(t, review.Accepted)
	if o := s.one.Told()[0].Outcome; o.Content != want || !o.Edited {
		t.Errorf("the outcome is %+v", o)
	}
}

// SPEC F-13: what does not fit together waits for the user, who says which stands.
func TestConflictF13(t *testing.T) {
	mine := strings.Replace(oldText, "five", "5", 1)
	for name, tt := range map[string]struct {
		resolve func(*scene, *review.Diff) error
		want    string
		err     error
	}{
		"kept":                         {func(s *scene, d *review.Diff) error { return s.Resolve(d.ID(), d.Now().Seen, false) }, newText, nil},
		"taken":                        {func(s *scene, d *review.Diff) error { return s.Resolve(d.ID(), d.Now().Seen, true) }, mine, nil},
		"edited":                       {func(s *scene, d *review.Diff) error { return s.edit(d, mine) }, mine, nil}, // to what the file has
		"edited elsewhere in the text": {func(s *scene, d *review.Diff) error { return s.edit(d, "0\n"+newText) }, "", review.ErrConflict},
		"nothing said":                 {func(*scene, *review.Diff) error { return nil }, "", review.ErrConflict},
		"a view that is behind":        {func(s *scene, d *review.Diff) error { s.Resolve(d.ID(), review.Seen{}, false); return nil }, "", review.ErrConflict},
		"by a rule":                    {func(s *scene, d *review.Diff) error { s.SetRule(review.Rule{Mode: review.AcceptAll}); return nil }, "", review.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			s, files, d := onDisk(t)
			files.write("/a", mine)
			s.Look("/a")
			c := d.Now().Conflict
			if c == nil || len(c.Places) != 1 || c.Places[0].Start != 4 || c.Places[0].Theirs != "5\n" || d.Now().Text != newText {
				t.Fatalf("the conflict is %+v in %q", c, d.Now().Text)
			}
			if err := tt.resolve(s, d); err != nil {
				t.Fatal(err)
			}
			err := s.Accept(d.ID(), d.Now().Seen, nil)
			wantErr(t, err, tt.err)
			if tt.err == nil && s.one.Told()[0].Outcome.Content != tt.want {
				t.Errorf("accepted %q", s.one.Told()[0].Outcome.Content)
			}
			s.Shut()
		})
	}
}

// SPEC F-13: what else a file may become.
func TestFileBecomesF13(t *testing.T) {
	for name, tt := range map[string]struct {
		was, now review.File
		conflict bool
		stale    bool
		want     string
	}{
		"gone":               {review.File{Text: oldText, Exists: true}, review.File{}, true, true, newText},
		"come":               {review.File{}, review.File{Text: "other\n", Exists: true}, true, true, newText},
		"come as proposed":   {review.File{}, review.File{Text: newText, Exists: true}, false, true, newText},
		"as proposed":        {review.File{Text: oldText, Exists: true}, review.File{Text: newText, Exists: true}, false, true, newText},
		"binary":             {review.File{Text: oldText, Exists: true}, review.File{Exists: true, Problem: "not text"}, true, true, newText},
		"other line endings": {review.File{Text: oldText, Exists: true}, review.File{Text: strings.ReplaceAll(oldText, "\n", "\r\n"), Exists: true}, false, false, newText},
		"a byte order mark":  {review.File{Text: oldText, Exists: true}, review.File{Text: "\ufeff" + oldText, Exists: true}, false, false, newText},
		"no final newline":   {review.File{Text: oldText, Exists: true}, review.File{Text: strings.TrimSuffix("0\n"+oldText, "\n"), Exists: true}, true, true, "0\n" + newText},
		"CR LF and a change": {review.File{Text: strings.ReplaceAll(oldText, "\n", "\r\n"), Exists: true}, review.File{Text: "0\r\n" + strings.ReplaceAll(oldText, "\n", "\r\n"), Exists: true}, false, true, "0\n" + newText},
	} {
		t.Run(name, func(t *testing.T) {
			files := &disk{files: map[string]review.File{"/a": tt.was}}
			s := newScene(review.Options{Files: files})
			d := s.one.Propose(t, s.Registry, "/a", tt.was.Text, newText)
			before := d.Now().Seen
			files.set("/a", tt.now)
			s.Look("/a")
			now := d.Now()
			if now.Base != tt.now || (now.Conflict != nil) != tt.conflict || (now.Seen.Base != before.Base) != tt.stale || now.Text != tt.want {
				t.Errorf("%+v", now)
			}
			files.set("/a", tt.was) // and back
			s.Look("/a")
			if now := d.Now(); (now.Conflict != nil) != (name == "come as proposed") || name != "as proposed" && now.Text != newText {
				t.Errorf("and back: %+v", now)
			}
			s.Shut()
		})
	}
}

// SPEC F-13: rules decide nothing over a change that the user has not seen.
func TestRulesWaitF13(t *testing.T) {
	files := &disk{}
	files.write("/a", "mine\n"+oldText) // between the agent's reading and its proposal's arrival
	files.write("/b", "1\n")
	s := newScene(review.Options{Files: files})
	s.SetRule(review.Rule{Mode: review.AcceptAll})
	d := s.one.Propose(t, s.Registry, "/a", oldText, newText)
	s.view.ExpectVisible(t, 1)
	s.one.Propose(t, s.Registry, "/b", "1\n", "2\n")
	s.SetRule(review.Rule{Mode: review.AcceptAll, Pattern: "/*"})
	s.one.ExpectTold(t, review.Accepted) // /b alone
	if err := s.Accept(d.ID(), d.Now().Seen, nil); err != nil {
		t.Fatal(err)
	}
	if o := s.one.ExpectTold(t, review.Accepted, review.Accepted)[1].Outcome; o.Content != "mine\n"+newText || o.Policy {
		t.Errorf("%+v", o)
	}
}

// SPEC F-13: two agents' proposals for one file know of each other: the second
// is shown on the first as soon as that is accepted, before its agent has written it.
func TestTwoProposalsF13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, files, first := onDisk(t)
		theirs := strings.Replace(oldText, "one", "ONE", 1)
		second := s.two.Propose(t, s.Registry, "/a", oldText, theirs)
		if first.Now().Others != 1 || second.Now().Others != 1 {
			t.Errorf("%d and %d others wait", first.Now().Others, second.Now().Others)
		}
		seen := second.Now().Seen
		if err := s.Accept(first.ID(), first.Now().Seen, nil); err != nil {
			t.Fatal(err)
		}
		wantErr(t, s.Accept(second.ID(), seen, nil), review.ErrFileChanged)
		both := strings.Replace(newText, "one", "ONE", 1)
		if now := second.Now(); now.Base.Text != newText || now.Text != both || now.Others != 0 {
			t.Errorf("%+v", now)
		}
		third := (&reviewtest.Owner{Name: "CLI 3"}).Propose(t, s.Registry, "/a", oldText, strings.Replace(oldText, "four", "3b\nfour", 1))
		if now := third.Now(); now.Text != strings.Replace(newText, "four", "3b\nfour", 1) || now.Base.Text != newText {
			t.Errorf("one that came before the write: %+v", now)
		}
		files.write("/a", newText)
		s.Look("/a")
		if err := s.Accept(second.ID(), second.Now().Seen, nil); err != nil {
			t.Fatal(err)
		}
		if o := s.two.Told()[0].Outcome; o.Content != both {
			t.Errorf("%q", o.Content)
		}
		files.write("/a", both)
		s.Look("/a")
		if now := third.Now(); now.Text != strings.Replace(both, "four", "3b\nfour", 1) || now.Conflict != nil {
			t.Errorf("%+v", now)
		}
		s.Shut()
	})
}

// An agent that never writes what was accepted leaves the file as it was, and the others on that.
func TestNeverWrittenF13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, first := onDisk(t)
		second := s.two.Propose(t, s.Registry, "/a", oldText, strings.Replace(oldText, "one", "ONE", 1))
		if err := s.Accept(first.ID(), first.Now().Seen, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		s.Look("/a") // for whatever reason
		if now := second.Now(); now.Base.Text != newText {
			t.Errorf("%+v", now)
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if now := second.Now(); now.Base.Text != oldText || now.Text != strings.Replace(oldText, "one", "ONE", 1) || now.Conflict != nil {
			t.Errorf("%+v", now)
		}
		s.Shut()
	})
}

// SPEC F-10: of two views that edit at once neither loses its text unseen.
func TestEditsTravel(t *testing.T) {
	s, _, d := onDisk(t)
	page, editor := new(int), new(int)
	var lost []string
	s.Watch(func(e review.Event) { lost = append(lost, e.Lost) })
	edit := func(by any, from int, text string) int {
		t.Helper()
		version, err := s.Edit(d.ID(), review.Edit{Text: text, From: &from, By: by})
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	at := edit(page, 0, "0\n"+newText)
	at = edit(page, at, "00\n"+newText)
	mine := edit(editor, 0, newText+"six\n") // which has not heard of the page's
	if got := d.Now().Text; got != "00\n"+newText+"six\n" {
		t.Errorf("merged: %q", got)
	}
	for _, by := range []any{page, editor} {
		wantErr(t, s.Accept(d.ID(), review.Seen{Text: at, By: by}, nil), review.ErrTextChanged)
	}
	wantErr(t, s.Accept(d.ID(), review.Seen{Text: at, By: page}, ptr("000\n"+newText)), review.ErrTextChanged)
	if got := d.Now().Text; got != "000\n"+newText+"six\n" {
		t.Errorf("the text of the refused acceptance: %q", got)
	}
	before := d.Now().Text
	edit(editor, mine, "X\n"+newText+"six\n") // the same line: the later one stands
	if got := d.Now().Text; got != "X\n"+newText+"six\n" || lost[len(lost)-1] != before {
		t.Errorf("%q, lost %q", got, lost[len(lost)-1])
	}
	at = edit(editor, d.Now().Seen.Text, "Y\n"+newText) // it has been told
	if err := s.Accept(d.ID(), review.Seen{Text: at}, ptr("Z\n"+newText)); err != nil {
		t.Fatal(err)
	}
	if got := s.one.Told()[0].Outcome.Content; got != "Z\n"+newText {
		t.Errorf("accepted %q", got)
	}
}

// SPEC F-4, F-13: a diff that is taken back is answered with what the file has become merged.
func TestWithdrawMergesF13(t *testing.T) {
	s, files, d := onDisk(t)
	s.view.OnContent = nil
	files.write("/a", "0\n"+oldText)
	o, err := s.Withdraw(t.Context(), s.one, "/a")
	if err != nil || o.Content != "0\n"+newText || !o.Edited {
		t.Errorf("%+v, %v", o, err)
	}
	if d.Now().Base.Text != "0\n"+oldText {
		t.Error("the history would keep another text than what is written over")
	}
}

// What is shown beside another text than the file's own does not follow the file.
func TestApart(t *testing.T) {
	s, files, _ := onDisk(t)
	d, err := s.Open(t.Context(), s.two, review.Proposal{Key: "/a", Path: "/a", Old: "x", New: "y", Apart: true, Unwritten: true}, s.two.Deliver)
	if err != nil {
		t.Fatal(err)
	}
	files.write("/a", "0\n")
	s.Look("/a")
	if now := d.Now(); now.Seen != (review.Seen{}) || now.Base.Text != "x" {
		t.Errorf("%+v", now)
	}
	if err := s.Accept(d.ID(), d.Now().Seen, nil); err != nil {
		t.Fatal(err)
	}
	if first := s.Pending()[0]; first.Now().Base.Text != "0\n" {
		t.Errorf("nobody writes that: %+v", first.Now())
	}
}

// Restored diffs are shown on what the file holds now.
func TestRestoredF13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := &disk{}
		files.write("/a", "0\n"+oldText)
		s := newScene(review.Options{Files: files})
		d, err := s.Restore(s.one, "ID", newText+"six\n", nil, time.Now(), review.Proposal{Key: "/a", Path: "/a", Old: oldText, New: newText})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if now := d.Now(); now.Text != "0\n"+newText+"six\n" || now.Base.Text != "0\n"+oldText {
			t.Errorf("%+v", now)
		}
		if err := s.Accept("ID", review.Seen{}, nil); !errors.Is(err, review.ErrStale) {
			t.Error(err)
		}
		s.one.Deliver(d)
		s.Shut()
	})
}

// SPEC F-13: the registry keeps no earlier versions of a long text; an edit of one is merged on the text that its view had.
func TestMergesOnWhatTheViewHad(t *testing.T) {
	long := strings.Repeat("a line of a long text\n", 5000)
	r := review.New(review.Options{View: &reviewtest.View{}})
	owner := &reviewtest.Owner{Name: "a"}
	d := owner.Propose(t, r, "/p/a", long, long+"end\n")
	mine, version := long+"end, t\n", 0
	version, err := r.Edit(d.ID(), review.Edit{Text: mine, From: &version, By: "me"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Edit(d.ID(), review.Edit{Text: "0\n" + mine, From: &version, By: "other"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Edit(d.ID(), review.Edit{Text: long + "end, typed\n", From: &version, Was: &mine, By: "me"}); err != nil {
		t.Fatal(err)
	}
	if now := d.Now().Text; now != "0\n"+long+"end, typed\n" {
		t.Errorf("merged into %.30q … %q", now, now[len(now)-30:])
	}
}

// SPEC F-10, F-13: where two views edit one line, what the file has become elsewhere stays in the text.
func TestConflictingEditsKeepTheFileF13(t *testing.T) {
	s, files, d := onDisk(t)
	page, editor, told := new(int), new(int), 0
	if _, err := s.Edit(d.ID(), review.Edit{Text: newText + "page\n", From: &told, By: page}); err != nil {
		t.Fatal(err)
	}
	files.write("/a", strings.Replace(oldText, "one", "ONE", 1))
	s.Look("/a")
	before := d.Now().Text
	var lost string
	s.Watch(func(e review.Event) { lost += e.Lost })
	if _, err := s.Edit(d.ID(), review.Edit{Text: newText + "editor\n", From: &told, By: editor}); err != nil {
		t.Fatal(err)
	}
	now := d.Now()
	if want := strings.Replace(newText, "one", "ONE", 1) + "editor\n"; now.Text != want || now.Conflict != nil {
		t.Errorf("%+v", now)
	}
	if lost != before {
		t.Errorf("told as lost: %q", lost)
	}
}

// SPEC F-13: an edit of a text that nobody knows any more takes nothing back that happened to the file: it conflicts.
func TestEditOfForgottenTextF13(t *testing.T) {
	s, files, d := onDisk(t)
	for i := range 40 {
		files.write("/a", strings.Replace(oldText, "one", fmt.Sprint("one ", i), 1))
		s.Look("/a")
	}
	page, third := new(int), 3 // of 40
	if _, err := s.Edit(d.ID(), review.Edit{Text: strings.Replace(newText, "one", "one 2", 1) + "typed\n", From: &third, By: page}); err != nil {
		t.Fatal(err)
	}
	now := d.Now()
	if now.Conflict == nil || len(now.Conflict.Places) != 1 || now.Conflict.Places[0].Theirs != "one 39\n" {
		t.Fatalf("%+v", now)
	}
	wantErr(t, s.Accept(d.ID(), now.Seen, nil), review.ErrConflict)
	if err := s.Resolve(d.ID(), now.Seen, true); err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(newText, "one", "one 39", 1) + "typed\n"; d.Now().Text != want {
		t.Errorf("%q", d.Now().Text)
	}
}
