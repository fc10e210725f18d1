package lockfile

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// A lock is private, is not touched while it says the same, and is removed by its writer only.
func TestFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home", "ide")
	if err := os.Mkdir(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	f := New(filepath.Join(dir, "5.lock"))
	if err := f.Remove(); err != nil {
		t.Errorf("nothing to remove: %v", err)
	}
	if err := f.put([]byte("one")); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(f.Path(), past, past); err != nil {
		t.Fatal(err)
	}
	if err := f.put([]byte("one")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(f.Path())
	if err != nil || !info.ModTime().Equal(past) {
		t.Errorf("touched at %v, %v", info.ModTime(), err)
	}
	if got := info.Mode().Perm(); got != 0o600 && filepath.Separator == '/' {
		t.Errorf("mode %v", got)
	}
	if err := f.put([]byte("two")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Path(), []byte("another's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.Path()); err != nil {
		t.Errorf("another's lock was removed: %v", err)
	}
}

// What a dead companion left goes; a living one's, another program's and what cannot be read stay.
func TestSweep(t *testing.T) {
	dead := exec.Command(os.Args[0], "-test.run=^$")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"dead.lock":    `{"pid":` + strconv.Itoa(dead.Process.Pid) + `,"pollux":true}`,
		"living.lock":  `{"pid":` + strconv.Itoa(os.Getpid()) + `,"pollux":true}`,
		"foreign.lock": `{"pid":` + strconv.Itoa(dead.Process.Pid) + `}`,
		"broken.lock":  `{`,
		"zero.lock":    `{"pid":0,"pollux":true}`,
		"dead.json":    `{"pid":` + strconv.Itoa(dead.Process.Pid) + `,"pollux":true}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ours := func(data []byte) (int, bool) {
		var l struct {
			PID    int  `json:"pid"`
			Pollux bool `json:"pollux"`
		}
		return l.PID, json.Unmarshal(data, &l) == nil && l.Pollux
	}
	want := []string{filepath.Join(dir, "dead.lock")}
	if got := sweep(dir, ours); !slices.Equal(got, want) {
		t.Errorf("removed %q, want %q", got, want)
	}
	if got := sweep(filepath.Join(dir, "none"), ours); len(got) != 0 {
		t.Errorf("a folder that is not there: %q", got)
	}
}
