package workspace

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A listener gathers what a Watcher tells.
type listener struct {
	t     *testing.T
	mu    sync.Mutex
	files []string
	dirs  []string
	calls int
}

func (l *listener) take(c Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files, l.dirs, l.calls = append(l.files, c.Files...), append(l.dirs, c.Dirs...), l.calls+1
}

// expect waits for a change of file or dir ("" for either: not asked) and forgets the rest.
func (l *listener) expect(what, file, dir string) {
	l.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		l.mu.Lock()
		ok := (file == "" || slices.Contains(l.files, file)) && (dir == "" || slices.Contains(l.dirs, dir))
		if ok {
			l.files, l.dirs = nil, nil
		}
		l.mu.Unlock()
		if ok {
			return
		}
	}
	l.t.Fatalf("not noticed: %s", what)
}

func TestWatch(t *testing.T) {
	b := newBox(t, nil)
	path, dir := b.put("d/f", "one"), b.path("d")
	l := &listener{t: t}
	w := b.Watch(l.take, nil)
	defer w.Close()
	w.Set([]string{path}, []string{dir})

	b.put("d/f", "two")
	l.expect("writing", path, "")
	if err := os.Rename(b.put("tmp", "three"), path); err != nil {
		t.Fatal(err)
	}
	l.expect("replacing", path, dir)
	if err := b.WriteFile(path, []byte("four")); err != nil {
		t.Fatal(err)
	}
	l.expect("replacing by pollux", path, "")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l.expect("removing", path, dir)
	b.put("d/f", "five")
	l.expect("coming back", path, dir)

	// The folder goes and comes back: it is looked for until it can be watched again.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	l.expect("the folder's removal", path, "")
	b.put("d/f", "six")
	l.expect("the folder's return", path, "")
	time.Sleep(100 * time.Millisecond) // what is left of that batch
	b.put("d/f", "seven, watched again")
	l.expect("writing in it", path, "")
	w.Set(nil, nil)
	w.Close()
	w.Close() // twice is harmless
}

// A link's target lies in another folder.
func TestWatchLink(t *testing.T) {
	b := newBox(t, nil)
	target := b.put("deep/f", "one")
	link := b.link(target, "link")
	l := &listener{t: t}
	w := b.Watch(l.take, nil)
	defer w.Close()
	w.Set([]string{link}, nil)
	if err := os.Rename(b.put("tmp", "two, of another size"), target); err != nil {
		t.Fatal(err)
	}
	l.expect("the target's replacement", link, "")
}

// Many events are one batch, and nothing is told of what nobody looks at.
func TestWatchCoalesces(t *testing.T) {
	b := newBox(t, nil)
	b.put("seen/f", "")
	b.put("unseen/f", "")
	l := &listener{t: t}
	w := b.Watch(l.take, nil)
	defer w.Close()
	w.Set(nil, []string{b.path("seen")})
	for i := range 200 {
		b.put(filepath.Join("seen", "n"+string(rune('a'+i%26))), "x")
		b.put(filepath.Join("unseen", "n"+string(rune('a'+i%26))), "x")
	}
	l.expect("new files", "", b.path("seen"))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls > 20 {
		t.Errorf("%d calls for one burst", l.calls)
	}
	if slices.Contains(l.dirs, b.path("unseen")) {
		t.Error("told of a folder that nobody looks at")
	}
}

// What the system cannot watch is polled.
func TestWatchPolls(t *testing.T) {
	b := newBox(t, nil)
	path := b.put("d/f", "one")
	l := &listener{t: t}
	w := b.startWatcher(l.take, slog.New(slog.DiscardHandler), nil, 20*time.Millisecond) // a system that watches nothing
	defer w.Close()
	w.Set([]string{path}, []string{b.path("d")})
	b.put("d/f", "two, longer")
	l.expect("a polled file", path, "")
	b.put("d/g", "")
	l.expect("a polled folder", "", b.path("d"))
}

// Folders that are moved away and deleted at once are errors of the library's, for which it holds its lock: who watches must
// not wait for that lock before the errors are taken, or nothing is noticed any more.
func TestWatchMovedAndDeleted(t *testing.T) {
	b := newBox(t, nil)
	keep := b.put("keep/f", "one")
	root, out := b.path("d"), t.TempDir()
	var dirs []string
	for i := range 60 {
		dir := filepath.Join(root, strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	l := &listener{t: t}
	busy, begun := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(begun); <-busy })
	w := b.Watch(func(c Change) { first(); l.take(c) }, nil)
	defer w.Close()
	w.Set([]string{keep}, append(dirs, root))
	b.put("keep/f", "two")
	<-begun
	for _, dir := range dirs {
		away := filepath.Join(out, filepath.Base(dir))
		if err := os.Rename(dir, away); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(away); err != nil {
			t.Fatal(err)
		}
	}
	close(busy) // all of that waits to be told
	l.expect("the first change", keep, "")
	done := make(chan struct{})
	go func() { defer close(done); w.Set([]string{keep}, []string{root}) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("watching other folders hangs")
	}
	b.put("keep/f", "three")
	l.expect("a later change", keep, "")
}
