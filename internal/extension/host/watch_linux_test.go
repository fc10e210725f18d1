package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/extension/capability"
)

// A panic of pollux outside a call is logged and survived: the server continues and keeps noticing changes.
func TestWatchSurvivesPanics(t *testing.T) {
	w := newWorld(t, nil)
	w.extension("one", map[string]string{"echo": echo})
	w.allow("one")
	var looks atomic.Int32
	watch := w.options.Watch
	w.options.Watch = func(set *capability.Set) []string {
		if looks.Add(1) <= 2 {
			panic("the watcher")
		}
		return watch(set)
	}
	ready := make(chan struct{})
	w.options.Ready = func() { close(ready); panic("ready") }
	c := w.serve()
	c.hello()
	if got := c.tools(1); got != "describe_extension echo read_doc" {
		t.Fatal(got)
	}
	<-ready
	w.extension("late", map[string]string{"second": echo})
	w.allow("late")
	id := 1
	c.await("the extension that came later", func() bool { id++; return strings.Contains(c.tools(id), "second") })
	id++
	c.call(id, "second", `{"a":"x"}`)
	if got := text(t, c.answer(id)); got != "got --a x" {
		t.Error(got)
	}
	if looks.Load() <= 2 {
		t.Error("nothing has panicked")
	}
}

// A folder that is moved and deleted at once, as in an update, causes an error in the library, which holds its lock
// until somebody receives the error. So nobody may wait for that lock before.
func TestWatchMovedAndDeleted(t *testing.T) {
	root := t.TempDir()
	var paths []string
	for i := range 20 {
		path := filepath.Join(root, fmt.Sprint("x", i))
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	out := t.TempDir()
	w := newWatcher(quiet())
	defer w.close()
	w.follow(paths)
	for _, path := range paths {
		away := filepath.Join(out, filepath.Base(path))
		if err := os.Rename(path, away); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(away); err != nil {
			t.Fatal(err)
		}
	}
	for late := time.After(patience); ; {
		select {
		case e := <-w.events:
			if e.Name != paths[len(paths)-1] {
				continue
			}
		case <-late:
			t.Fatal("the system's events have stopped")
		}
		break
	}
	done := make(chan struct{})
	go func() { defer close(done); w.follow([]string{root}) }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("following other paths hangs")
	}
}

// An idle server wakes twice a minute where the system reports every change, and more often where it may not.
func TestWatchEvery(t *testing.T) {
	root := t.TempDir()
	file, link := filepath.Join(root, "file"), filepath.Join(root, "link")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	w := newWatcher(quiet())
	defer w.close()
	for name, tt := range map[string]struct {
		path string
		want time.Duration
	}{
		"a folder":                           {root, watchSure},
		"a file":                             {file, watchSure},
		"a file that is not there yet":       {filepath.Join(root, "later"), watchSure},
		"a link, behind which nobody sees":   {link, watchPoll},
		"one in a folder that is not either": {filepath.Join(root, "no", "such", "file"), watchSure},
	} {
		w.follow([]string{root, tt.path})
		if got := w.every(); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	w.follow([]string{file})
	if w.seen = "?"; w.every() != watchPoll { // a look that failed
		t.Error("a look that failed is not repeated soon")
	}
	late := filepath.Join(root, "no", "such", "file")
	w.follow([]string{late})
	if err := os.Mkdir(filepath.Join(root, "no"), 0o700); err != nil {
		t.Fatal(err)
	}
	heard(t, w, late)
	w.follow([]string{file}) // by its folder
	if err := os.Rename(root, root+"-away"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Rename(root+"-away", root) })
	heard(t, w, file)
}

// heard waits for an event that concerns a path.
func heard(t *testing.T, w *watcher, path string) {
	t.Helper()
	for late := time.After(patience); ; {
		select {
		case e := <-w.events:
			if w.concerns(e.Name, []string{path}) {
				return
			}
		case <-late:
			t.Fatalf("no event concerns %s", path)
		}
	}
}
