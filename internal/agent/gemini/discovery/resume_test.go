package discovery

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/internal/proc"
)

func record() Record {
	return Record{Port: 5, Door: Door{Token: strings.Repeat("t", 43), SessionKey: make([]byte, 32)}, PagePort: 6, PageKeys: [][]byte{make([]byte, 32)}}
}

// SPEC A-1: the record of the same editor and workspace, in whatever order its roots stand.
func TestResumeA1(t *testing.T) {
	state := t.TempDir() + "/state"
	r := NewResume(state, "pollux", []string{"/a", "/b"}, 0)
	if got, err := r.Load(time.Now()); got != nil || err != nil {
		t.Errorf("before the first: %v, %v", got, err)
	}
	if err := r.Save(record()); err != nil {
		t.Fatal(err)
	}
	got, err := NewResume(state, "pollux", []string{"/b", "/a"}, 0).Load(time.Now())
	want := record()
	want.Editor, want.Roots, want.PID, want.Start = "pollux", []string{"/a", "/b"}, os.Getpid(), proc.Self()
	if diff := cmp.Diff(&want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, other := range []*Resume{
		NewResume(state, "vim", []string{"/a", "/b"}, 0),
		NewResume(state, "pollux", []string{"/a"}, 0),
		NewResume(state, "pollux", []string{"/a\x00/b"}, 0),
	} {
		if got, err := other.Load(time.Now()); got != nil || err != nil {
			t.Errorf("another's: %v, %v", got, err)
		}
	}
	if info, _ := os.Stat(r.path); info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read the token: %v", info.Mode())
	}
}

func TestResumeTooOldA1(t *testing.T) {
	r := NewResume(t.TempDir(), "pollux", nil, 0)
	if err := r.Save(record()); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for age, want := range map[time.Duration]bool{0: true, 9*time.Minute + 59*time.Second: true, 10 * time.Minute: false, 11 * time.Minute: false, -2 * time.Minute: true, -9 * time.Minute: true, -10 * time.Minute: false} {
		if err := r.Touch(now.Add(-age)); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Load(now); (got != nil) != want || err != nil {
			t.Errorf("after %v: %v, %v", age, got, err)
		}
	}
}

// A record is one companion's at a time, until it gives it up or ends (SPEC A-1).
func TestClaimA1(t *testing.T) {
	state := t.TempDir()
	first, second := NewResume(state, "pollux", []string{"/a"}, 0), NewResume(state, "pollux", []string{"/a"}, 0)
	if err := first.Claim(); err != nil {
		t.Fatal(err)
	}
	if err := NewResume(state, "pollux", []string{"/b"}, 0).Claim(); err != nil {
		t.Errorf("another workspace's: %v", err)
	}
	if err := second.Claim(); !errors.Is(err, ErrLive) {
		t.Errorf("a living one's: %v", err)
	}
	first.Release()
	first.Release()
	if err := second.Claim(); err != nil {
		t.Errorf("after the first gave it up: %v", err)
	}
}

// Prune keeps the records of living companions, however old they are. Of the other old
// records it removes everything.
func TestPrune(t *testing.T) {
	state := t.TempDir()
	records := map[string]*Resume{}
	for _, root := range []string{"/living", "/dead", "/fresh", "/own"} {
		r := NewResume(state, "pollux", []string{root}, 0)
		if err := errors.Join(r.Claim(), r.Save(record()), os.Mkdir(r.Journal(), 0o700)); err != nil {
			t.Fatal(err)
		}
		records[root] = r
		if root == "/dead" || root == "/fresh" {
			r.Release()
		}
	}
	now := time.Now()
	records["/fresh"].Touch(now.Add(50 * time.Minute))
	records["/own"].Prune(now.Add(time.Hour))
	for root, r := range records {
		for _, path := range []string{r.path, r.Journal(), lockOf(r.path)} {
			if _, err := os.Stat(path); (err == nil) == (root == "/dead") {
				t.Errorf("%s: %s: %v", root, path, err)
			}
		}
	}
	if err := NewResume(state, "pollux", []string{"/dead"}, 0).Claim(); err != nil {
		t.Error(err)
	}
}

func TestResumeDamaged(t *testing.T) {
	r := NewResume(t.TempDir(), "pollux", nil, 0)
	r.Save(record())
	good, _ := os.ReadFile(r.path)
	for name, text := range map[string]string{
		"empty":       "",
		"null":        "null",
		"a list":      "[]",
		"short token": strings.Replace(string(good), strings.Repeat("t", 43), "t", 1),
		"no port":     strings.Replace(string(good), `"port":5`, `"port":0`, 1),
		"no key":      strings.Replace(string(good), `"sessionKey":"A`, `"sessionKex":"A`, 1),
		"cut":         string(good[:len(good)/2]),
	} {
		os.WriteFile(r.path, []byte(text), 0o600)
		if got, err := r.Load(time.Now()); got != nil || !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), r.path) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if got, err := r.Load(time.Now().Add(time.Hour)); got != nil || err != nil {
			t.Errorf("%s, too old: %v, %v", name, got, err)
		}
	}
	os.Remove(r.path)
	os.Symlink("/etc/passwd", r.path)
	if got, err := r.Load(time.Now()); err == nil {
		t.Errorf("through a link: %v", got)
	}
}
