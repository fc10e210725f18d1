package consent

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/permission"
)

func permissions(t testing.TB, read, write permission.Access, hosts ...string) permission.Permissions {
	t.Helper()
	p := permission.Permissions{Read: read, Write: write}
	for _, text := range hosts {
		h, err := permission.ParseHost(text)
		if err != nil {
			t.Fatal(err)
		}
		p.Hosts = append(p.Hosts, h)
	}
	return p
}

func newStore(t *testing.T) *Store {
	t.Helper()
	s := Open(filepath.Join(t.TempDir(), "state"))
	s.now = func() time.Time { return time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC) }
	return s
}

// TestRule is SPEC S-2: what asks again, and what does not.
func TestRule(t *testing.T) {
	agreed := Subject{Extension: "x", Source: "git a", Version: "1", Content: "sha256:1", Permissions: permissions(t, permission.Workspace, permission.None, "example.com")}
	with := func(change func(*Subject)) Subject {
		s := agreed
		change(&s)
		return s
	}
	for name, test := range map[string]struct {
		now  Subject
		want Status
	}{
		"the same":             {agreed, Allowed},
		"another version word": {with(func(s *Subject) { s.Version = "2" }), Allowed}, // of the same content
		"another content":      {with(func(s *Subject) { s.Content = "sha256:2" }), Changed},
		"another source":       {with(func(s *Subject) { s.Source = "git b" }), NotAsked},
		"another extension":    {with(func(s *Subject) { s.Extension = "y" }), NotAsked},
		"linked now":           {with(func(s *Subject) { s.Source, s.Content = "link /a", "" }), NotAsked},
		"reads more":           {with(func(s *Subject) { s.Permissions.Read = permission.Home }), Wider},
		"writes":               {with(func(s *Subject) { s.Permissions.Write = permission.Workspace }), Wider},
		"another host": {with(func(s *Subject) {
			s.Permissions = permissions(t, permission.Workspace, 0, "example.com", "a.example.com")
		}), Wider},
		"more of a host": {with(func(s *Subject) {
			s.Permissions = permissions(t, permission.Workspace, 0, "example.com", "http://example.com:81")
		}), Wider},
		"reads less":     {with(func(s *Subject) { s.Permissions.Read = permission.None }), Allowed},
		"no host":        {with(func(s *Subject) { s.Permissions.Hosts = nil }), Allowed},
		"less of a host": {with(func(s *Subject) { s.Permissions = permissions(t, permission.Workspace, 0, "https://example.com") }), Allowed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			if err := s.Grant(t.Context(), agreed, Always, Answered()); err != nil {
				t.Fatal(err)
			}
			v, err := s.Lookup(test.now)
			if err != nil || v.Status != test.want {
				t.Errorf("%q, %v; want %q", v.Status, err, test.want)
			}
			if test.want == Wider && len(v.Change.Wider) == 0 {
				t.Error("what is wider is not said")
			}
			// A refusal holds for whatever comes from this source.
			if err := s.Grant(t.Context(), agreed, Never, Answered()); err != nil {
				t.Fatal(err)
			}
			if v, err = s.Lookup(test.now); err != nil || v.Status != Denied && test.want != NotAsked || v.Status == Allowed {
				t.Errorf("after never: %q, %v", v.Status, err)
			}
			// And a new yes replaces it.
			if err := s.Grant(t.Context(), test.now, Always, Answered()); err != nil {
				t.Fatal(err)
			}
			if v, err = s.Lookup(test.now); err != nil || v.Status != Allowed {
				t.Errorf("after a new yes: %q, %v", v.Status, err)
			}
		})
	}
}

// TestLink: one yes for a link, whatever its content; wider rights ask again.
func TestLink(t *testing.T) {
	s := newStore(t)
	link := Subject{Extension: "x", Source: "link /src/x", Version: "1"}
	if err := s.Grant(t.Context(), link, Always, Answered()); err != nil {
		t.Fatal(err)
	}
	link.Version = "2"
	if v, err := s.Lookup(link); err != nil || v.Status != Allowed {
		t.Error(v, err)
	}
	link.Permissions.Read = permission.Workspace
	if v, err := s.Lookup(link); err != nil || v.Status != Wider {
		t.Error(v, err)
	}
	link.Source = "link /src/other"
	if v, err := s.Lookup(link); err != nil || v.Status != NotAsked {
		t.Error(v, err)
	}
}

// TestNarrowedThenWidened: what was agreed to stays agreed to when an update
// took it away for a while, as long as the content is the very same.
func TestNarrowedThenWidened(t *testing.T) {
	s := newStore(t)
	wide := Subject{Extension: "x", Source: "git a", Content: "sha256:1", Permissions: permissions(t, permission.Home, 0)}
	narrow := wide
	narrow.Permissions.Read = permission.None
	if err := s.Grant(t.Context(), wide, Always, Answered()); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []Subject{narrow, wide} {
		if v, err := s.Lookup(subject); err != nil || v.Status != Allowed {
			t.Error(v, err)
		}
	}
	// Agreed to less in so many words: then more asks.
	if err := s.Grant(t.Context(), narrow, Always, Answered()); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Lookup(wide); err != nil || v.Status != Wider {
		t.Error(v, err)
	}
}

// TestDamaged: a file that is not understood allows nothing, cannot be
// written over by an answer, and can be thrown away.
func TestDamaged(t *testing.T) {
	subject := Subject{Extension: "x", Source: "git a", Content: "sha256:1"}
	good := func() string {
		s := newStore(t)
		if err := s.Grant(t.Context(), subject, Always, Answered()); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(s.Path())
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}()
	for name, text := range map[string]string{
		"empty":          "",
		"half":           good[:len(good)/2],
		"followed":       good + "{}",
		"other version":  strings.Replace(good, `"version": 1`, `"version": 2`, 1),
		"unknown field":  strings.Replace(good, `"records"`, `"only": "mondays", "records"`, 1),
		"unknown answer": strings.Replace(good, `"always"`, `"perhaps"`, 1),
		"odd level":      strings.Replace(good, `"read": "none"`, `"read": "everything"`, 1),
		"no extension":   strings.Replace(good, `"extension": "x"`, `"extension": ""`, 1),
		"list":           "[]",
	} {
		t.Run(name, func(t *testing.T) {
			if text == good {
				t.Fatal("nothing was damaged")
			}
			s := newStore(t)
			if err := errors.Join(os.Mkdir(filepath.Dir(s.Path()), 0o700), os.WriteFile(s.Path(), []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
			if v, err := s.Lookup(subject); !errors.Is(err, ErrDamaged) || v.Status == Allowed {
				t.Errorf("%q, %v", v.Status, err)
			}
			if err := s.Grant(t.Context(), subject, Always, Answered()); !errors.Is(err, ErrDamaged) {
				t.Errorf("an answer wrote over it: %v", err)
			}
			if err := s.RevokeAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			if v, err := s.Lookup(subject); err != nil || v.Status != NotAsked {
				t.Errorf("%q, %v", v.Status, err)
			}
		})
	}
	t.Run("link", func(t *testing.T) {
		s := newStore(t)
		other := filepath.Join(t.TempDir(), "c")
		if err := errors.Join(os.Mkdir(filepath.Dir(s.Path()), 0o700), os.WriteFile(other, []byte(good), 0o600), os.Symlink(other, s.Path())); err != nil {
			t.Fatal(err)
		}
		if v, err := s.Lookup(subject); !errors.Is(err, ErrDamaged) || v.Status == Allowed {
			t.Errorf("a link was followed: %q, %v", v.Status, err)
		}
	})
}

// TestPrivate: the file is the user's alone.
func TestPrivate(t *testing.T) {
	s := newStore(t)
	if err := s.Grant(t.Context(), Subject{Extension: "x", Source: "git a"}, Always, Answered()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{s.Path(): 0o600, filepath.Dir(s.Path()): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Error(path, info.Mode(), err)
		}
	}
	if err := s.Grant(t.Context(), Subject{Extension: "x"}, Once, Answered()); err == nil {
		t.Error("an answer for one run was kept")
	}
}

// TestConcurrentWriters: many at once lose no answer.
func TestConcurrentWriters(t *testing.T) {
	s := newStore(t)
	var wait sync.WaitGroup
	const n = 24
	for i := range n {
		wait.Go(func() {
			mine := Open(filepath.Dir(s.Path())) // as another process
			name := string(rune('a' + i))
			if err := mine.Grant(context.Background(), Subject{Extension: name, Source: "git " + name, Content: "sha256:" + name}, Always, Answered()); err != nil {
				t.Error(err)
			}
			if _, err := mine.Lookup(Subject{Extension: name}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	records, err := s.List()
	if err != nil || len(records) != n {
		t.Errorf("%d records, %v", len(records), err)
	}
	if removed, err := s.Revoke(t.Context(), "A"); err != nil || removed != 1 {
		t.Error(removed, err)
	}
	if records, err = s.List(); err != nil || len(records) != n-1 {
		t.Error(len(records), err)
	}
}

// TestBounded: too many answers cost the oldest yes, and no never.
func TestBounded(t *testing.T) {
	var records []Record
	for i := range maxRecords + 2 {
		records = append(records, Record{Subject: Subject{Version: strconv.Itoa(i)}, Answer: Always})
	}
	records[0].Answer = Never
	records = bounded(records)
	if len(records) != maxRecords || records[0].Answer != Never || records[1].Version != "3" {
		t.Errorf("%d, %+v", len(records), records[:2])
	}
}

// FuzzAnswers: what is understood of a file is what pollux could have written;
// everything else allows nothing.
func FuzzAnswers(f *testing.F) {
	subject := Subject{Extension: "x", Source: "git a", Content: "sha256:1"}
	good, err := json.Marshal(content{version, []Record{{Subject: subject, Answer: Always}}})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{string(good), "{}", "[]", "", string(good) + "]", strings.Replace(string(good), "always", "Always", 1)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := parse(data)
		if err != nil {
			if records != nil {
				t.Fatal("records with an error")
			}
			return
		}
		again, err := json.Marshal(content{version, records})
		if err != nil {
			t.Fatal(err)
		}
		back, err := parse(again)
		if err != nil || len(back) != len(records) {
			t.Fatal(err)
		}
		for _, s := range []Subject{subject, {Extension: "x", Source: "git a"}} {
			if a, b := judge(s, records), judge(s, back); a.Status != b.Status {
				t.Fatalf("%q, and %q when written again", a.Status, b.Status)
			}
		}
	})
}
