package qwen

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/lockfile"
)

// A place is the lock file of one companion.
type place struct{ *lockfile.File }

func newPlace(home string, port int) *place { return &place{lockfile.New(lockfile.Path(home, port))} }

func (p *place) Put(l *lockfile.Lock) error { return Locks().Put(p.File, l) }

// SPEC: the file is the user's alone, at its place, and not touched again while its content stays the same.
func TestPlace(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "home", ".qwen")
	p, l := newPlace(home, 4711), lock(t)
	if want := filepath.Join(home, "ide", "4711.lock"); p.Path() != want {
		t.Errorf("the path is %s, want %s", p.Path(), want)
	}
	if err := p.Put(l); err != nil {
		t.Fatal(err)
	}
	private(t, p.Path())
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(p.Path(), old, old); err != nil {
		t.Fatal(err)
	}
	for _, again := range []*place{p, newPlace(home, 4711)} { // also a companion that takes over
		if err := again.Put(l); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(p.Path()); err != nil || !info.ModTime().Equal(old) {
			t.Errorf("it was touched: %v, %v", info.ModTime(), err)
		}
	}
	l.Roots = append(l.Roots, t.TempDir())
	if err := p.Put(l); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(p.Path()); err != nil || info.ModTime().Equal(old) {
		t.Errorf("another folder was not written: %v", err)
	}
	for range 2 {
		if err := p.Remove(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(p.Path()); err == nil {
		t.Error("the file is left")
	}
}

func private(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%s: %v, %v", path, info.Mode(), err)
	}
}

// A file that somebody else has put there since stays.
func TestRemoveOthers(t *testing.T) {
	t.Parallel()
	p := newPlace(t.TempDir(), 4711)
	if err := p.Put(lock(t)); err != nil {
		t.Fatal(err)
	}
	write(t, p.Path(), `{"port":4711}`)
	if err := p.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.Path()); err != nil {
		t.Error("another program's lock was removed")
	}
	if err := newPlace(t.TempDir(), 1).Remove(); err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// SPEC Q-3: locks of our own dead companions go, and nothing else, whatever it looks like.
func TestSweep(t *testing.T) {
	t.Parallel()
	const port = 4711
	const gone = 1 << 22 // beyond any process
	for name, tt := range map[string]struct {
		file  string
		lock  lockfile.Lock
		text  string // instead of the lock
		swept bool
	}{
		"its process is gone":           {lock: lockfile.Lock{Port: port, PID: gone}, swept: true},
		"it lives":                      {lock: lockfile.Lock{Port: port, PID: os.Getpid()}},
		"no process is named":           {lock: lockfile.Lock{Port: port}},
		"the relay's":                   {file: "0.lock", lock: lockfile.Lock{Stdio: &lockfile.Stdio{Command: "pollux"}, PID: gone}},
		"another program's, dead":       {text: `{"port":1,"ppid":4194304}`},
		"another program's, our number": {text: `{"port":1,"ppid":4194304,"pollux":false}`},
		"another program's, our word":   {text: `{"port":1,"ppid":4194304,"pollux":"yes"}`},
		"another file's name":           {file: "notes.json", lock: lockfile.Lock{Port: port, PID: gone}},
		"broken":                        {text: `{"port":`},
	} {
		home := t.TempDir()
		if tt.file == "" {
			tt.file = "4711.lock"
		}
		path := filepath.Join(lockfile.Dir(home), tt.file)
		if tt.text == "" {
			data, err := encode(&tt.lock)
			if err != nil {
				t.Fatal(err)
			}
			tt.text = string(data)
		}
		write(t, path, tt.text)
		removed := Locks().Sweep(home)
		if _, err := os.Stat(path); (err != nil) != tt.swept || slices.Contains(removed, path) != tt.swept {
			t.Errorf("%s: removed %v, %v", name, removed, err)
		}
	}
	if removed := Locks().Sweep(filepath.Join(t.TempDir(), "missing")); removed != nil {
		t.Errorf("no folder: %v", removed)
	}
}

// SPEC Q-8: the relay's lock is written once, never over another program's, and only ours is removed.
func TestRelay(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	l := &lockfile.Lock{Roots: []string{t.TempDir()}, Name: "pollux", DisplayName: "Pollux", Stdio: &lockfile.Stdio{Command: "/bin/pollux", Args: []string{"relay"}}}
	if changed, path, err := putRelay(home, l, true); !changed || err != nil || exists(path) {
		t.Errorf("a dry run: %v, %v", changed, err)
	}
	for _, want := range []bool{true, false} {
		if changed, path, err := putRelay(home, l, false); changed != want || err != nil || !exists(path) {
			t.Errorf("%v, %v", changed, err)
		}
	}
	data, err := os.ReadFile(filepath.Join(home, "ide", "0.lock"))
	if want := `"workspacePath":"` + filepath.ToSlash(l.Roots[0]) + `"`; !strings.Contains(string(data), want) {
		t.Errorf("%s: no %s: without a process Qwen Code wants a folder's name there, and deletes the file", data, want)
	}
	if err != nil || strings.Contains(string(data), "ppid") || strings.Contains(string(data), `"port"`) {
		t.Errorf("%s, %v", data, err)
	}
	if removed, path, err := removeRelay(home, true); !removed || err != nil || !exists(path) {
		t.Errorf("a dry run: %v, %v", removed, err)
	}
	for _, want := range []bool{true, false} {
		if removed, path, err := removeRelay(home, false); removed != want || err != nil || exists(path) {
			t.Errorf("%v, %v", removed, err)
		}
	}
	for _, text := range []string{`{"workspacePath":"/","stdio":{"command":"other"}}`, `{"port":1,"pollux":true}`, "{", ""} {
		write(t, newPlace(home, 0).Path(), text)
		if changed, path, err := putRelay(home, l, false); changed || err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: put: %v, %v", text, changed, err)
		}
		if removed, path, err := removeRelay(home, false); removed || err != nil || !exists(path) {
			t.Errorf("%q: remove: %v, %v", text, removed, err)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
