package history

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// fill adds n entries and returns their names in the folder.
func fill(t *testing.T, h *History, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		e := entry(fmt.Sprint("E", i), time.Now().Add(time.Duration(i)*time.Millisecond))
		if err := h.save(e); err != nil {
			t.Fatal(err)
		}
		h.prune()
	}
}

func names(t *testing.T, h *History) []entryFile {
	t.Helper()
	files, err := entryFiles(h.dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// F-12: an entry costs no look into the others, and what another companion does in the folder is seen all the same.
func TestIndex(t *testing.T) {
	open := func(t *testing.T) *History {
		h := start(t, t.TempDir(), &Options{MaxEntries: 5})
		fill(t, h, 0, 8)
		if n := len(names(t, h)); n != 5 {
			t.Fatalf("%d entries, want 5", n)
		}
		return h
	}
	remove := func(t *testing.T, h *History, n int) {
		for _, f := range names(t, h)[:n] {
			if err := os.Remove(filepath.Join(h.dir, f.name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("alone", func(t *testing.T) {
		h := open(t)
		for _, f := range names(t, h) { // what is known is not read again
			if err := os.WriteFile(filepath.Join(h.dir, f.name), []byte("no entry any more"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		fill(t, h, 8, 3)
		if n := len(names(t, h)); n != 5 {
			t.Errorf("%d entries, want 5", n)
		}
		for _, k := range h.index.kept {
			if !k.ranked || !k.person {
				t.Errorf("%s is not known any more", k.name)
			}
		}
	})
	t.Run("another removes", func(t *testing.T) {
		h := open(t)
		remove(t, h, 3)
		fill(t, h, 8, 1)
		if n := len(names(t, h)); n != 3 {
			t.Errorf("%d entries, want 3: entries that are gone counted", n)
		}
	})
	t.Run("another adds", func(t *testing.T) {
		h := open(t)
		other := start(t, filepath.Dir(h.dir), &Options{MaxEntries: 50})
		fill(t, other, 100, 3)
		fill(t, h, 8, 1)
		if n := len(names(t, h)); n != 5 {
			t.Errorf("%d entries, want 5", n)
		}
	})
	t.Run("the folder goes", func(t *testing.T) {
		h := open(t)
		if err := os.RemoveAll(h.dir); err != nil {
			t.Fatal(err)
		}
		fill(t, h, 8, 2)
		if n := len(names(t, h)); n != 2 {
			t.Errorf("%d entries, want 2", n)
		}
	})
	t.Run("the same entry again", func(t *testing.T) {
		h := open(t)
		e := entry("E9", time.Now().Add(time.Hour))
		for range 3 {
			if err := h.save(e); err != nil {
				t.Fatal(err)
			}
			h.prune()
		}
		if n := len(names(t, h)); n != 5 || len(h.index.kept) != 5 {
			t.Errorf("%d entries, %d known, want 5", n, len(h.index.kept))
		}
	})
}
