package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestReadErrors(t *testing.T) {
	b := newBox(t, nil)
	big := b.put("big", "")
	if err := os.Truncate(big, maxFile+1); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		b.path("none"): fs.ErrNotExist, b.path("none/deeper"): fs.ErrNotExist, b.root: ErrNotFile, big: ErrTooBig,
		b.put("nul", "a\x00"): ErrBinary, b.put("latin", "\xff"): ErrBinary, b.put(filepath.Join(b.outside, "o"), ""): ErrOutside,
	} {
		_, err := b.Read(path)
		wantErr(t, path, err, want)
		if err != nil && !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("the message does not name the file: %v", err)
		}
	}
	if s, err := b.Read(b.put(".git/x", "x")); err != nil || !s.ReadOnly {
		t.Errorf("protected: %+v %v", s, err)
	}
	if err := os.Truncate(big, maxFile); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Read(big); errors.Is(err, ErrTooBig) {
		t.Error("16 MiB are too big")
	}
}

// SPEC F-6: saving restores what the editor did not see, through a symlink too.
func TestSaveShape(t *testing.T) {
	b := newBox(t, nil)
	path := b.put("d/f", "\ufeffa\r\nb")
	link := b.link("d/f", "link")
	s, err := b.Read(link)
	if err != nil || s.Content != "a\nb" || !s.Shape.BOM || s.Path != path {
		t.Fatalf("%+v %v", s, err)
	}
	v, err := b.Save(link, "a\nc", s.Version, false)
	if err != nil || v == s.Version || b.disk(path) != "\ufeffa\r\nc" {
		t.Errorf("%v: %q", err, b.disk(path))
	}
	if fi, _ := os.Lstat(link); fi.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	// Nothing changed: nothing is written.
	before, _ := os.Stat(path)
	if again, err := b.Save(path, "a\nc", v, false); err != nil || again != v {
		t.Error(again, err)
	}
	if after, _ := os.Stat(path); !os.SameFile(before, after) {
		t.Error("an unchanged file was replaced")
	}
	var conflict *ConflictError
	if _, err = b.Save(path, "x", s.Version, false); !errors.As(err, &conflict) || conflict.Version != v {
		t.Errorf("an old base: %v", err)
	}
	if _, err = b.Save(b.path("new"), "x\n", "", false); err != nil || b.disk(b.path("new")) != "x\n" {
		t.Error(err)
	}
	if _, err = b.Save(b.path("gone"), "x", v, false); !errors.As(err, &conflict) || conflict.Version != "" {
		t.Errorf("a file that is gone: %v", err)
	}
	_, err = b.Save(path, strings.Repeat("x", maxFile), v, false)
	wantErr(t, "too big", err, ErrTooBig)
	if entries, _ := os.ReadDir(b.path("d")); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// Of many saves from one version exactly one succeeds.
func TestSaveRace(t *testing.T) {
	b := newBox(t, nil)
	path := b.put("f", "base")
	base := b.Version(path)
	var mu sync.Mutex
	var wg sync.WaitGroup
	won := 0
	for i := range 8 {
		wg.Go(func() {
			if _, err := b.Save(path, fmt.Sprint("by ", i), base, false); err == nil {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d saves from one version succeeded", won)
	}
}

func TestRestore(t *testing.T) { // SPEC F-12
	b := newBox(t, nil)
	path := b.put("f", "new\r\n")
	var conflict *ConflictError
	if err := b.Restore(path, "other\n", "old", false); !errors.As(err, &conflict) || conflict.Version == "" {
		t.Errorf("another text: %v", err)
	}
	if err := b.Restore(path, "new\n", "old\r\n\x00", false); err != nil || b.disk(path) != "old\r\n\x00" {
		t.Error(err)
	}
	b.put("f", "new\n")
	if err := b.Restore(path, "new\n", "", true); err != nil {
		t.Error(err)
	}
	if err := b.Restore(path, "new\n", "", true); !errors.As(err, &conflict) || conflict.Version != "" {
		t.Errorf("a file that is gone: %v", err)
	}
	wantErr(t, "outside", b.Restore(b.put(filepath.Join(b.outside, "o"), "x"), "x", "y", false), ErrOutside)
}

func TestRenameDelete(t *testing.T) {
	b := newBox(t, nil)
	target := b.put("d/f", "x")
	link := b.link("d/f", "link")
	b.link(b.outside, "out")
	b.put(filepath.Join(b.outside, "o"), "o")
	if err := b.Rename(link, b.path("d/link2")); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Lstat(b.path("d/link2")); err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link itself must move: %v %v", fi, err)
	}
	if err := b.Delete(b.path("d/link2"), false); err != nil || b.disk(target) != "x" {
		t.Errorf("the link itself must go: %v", err)
	}
	wantErr(t, "overwriting", b.Rename(target, b.put("g", "")), fs.ErrExist)
	wantErr(t, "into a link out", b.Rename(target, b.path("out/f")), ErrOutside)
	wantErr(t, "out", b.Rename(target, filepath.Join(b.outside, "f")), ErrOutside)
	wantErr(t, "from outside", b.Rename(filepath.Join(b.outside, "o"), b.path("o")), ErrOutside)
	wantErr(t, "through a link", b.Delete(b.path("out/o"), true), ErrOutside)
	wantErr(t, "to a protected name", b.Rename(target, b.path(".git/x")), ErrProtected)
	wantErr(t, "full folder", b.Delete(b.path("d"), false), ErrNotEmpty)
	wantErr(t, "a root", b.Delete(b.root, true), fs.ErrPermission)
	wantErr(t, "nothing", b.Delete(b.path("none"), false), fs.ErrNotExist)
	wantErr(t, "from nothing", b.Rename(b.path("none"), b.path("x")), fs.ErrNotExist)
	if err := b.Delete(b.path("out"), true); err != nil || b.disk(filepath.Join(b.outside, "o")) != "o" {
		t.Errorf("removing a link removed what it leads to: %v", err)
	}
	if err := b.Rename(b.path("d"), b.path("e/deep")); err != nil || b.disk(b.path("e/deep/f")) != "x" {
		t.Error(err)
	}
	if err := b.Delete(b.path("e"), true); err != nil {
		t.Error(err)
	}
	wantErr(t, "again", b.Create(b.path("g"), true), fs.ErrExist)
}

func TestList(t *testing.T) {
	b := newBox(t, nil)
	for _, f := range []string{"a10", "a9", "A9b", "b/x", "Z/x", "a09", "é", ".pollux-tmp-x"} {
		b.put(f, "")
	}
	b.link("b", "folder")
	b.link("a9", "file")
	b.link(b.outside, "out")
	b.link("none", "dangling")
	entries, truncated, err := b.List(b.root, false)
	if err != nil || truncated {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name+":"+string(e.Kind))
	}
	want := "b:dir folder:dir Z:dir a09:file a9:file A9b:file a10:file dangling:link file:file out:link é:file"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	if entries, _, err = b.List(b.path("folder"), false); err != nil || len(entries) != 1 || entries[0].Path != b.path("folder/x") {
		t.Errorf("%+v %v", entries, err)
	}
	_, _, err = b.List(b.path("out"), false)
	wantErr(t, "out", err, ErrOutside)
	_, _, err = b.List(b.path("a9"), false)
	wantErr(t, "a file", err, ErrNotFile)
}

func TestListIsBounded(t *testing.T) { // SPEC A-4
	b := newBox(t, nil)
	for i := range maxEntries + 10 {
		if err := os.WriteFile(b.path(fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entries, truncated, err := b.List(b.root, false)
	if err != nil || !truncated || len(entries) != maxEntries {
		t.Errorf("%d entries, truncated %v, %v", len(entries), truncated, err)
	}
}

func TestNatural(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		sign int
	}{{"a2", "a10", -1}, {"a", "B", -1}, {"a", "a", 0}, {"a", "A", 1}, {"a01", "a1", -1}, {"1.10", "1.9", 1}, {"", "a", -1}, {"a", "ab", -1}, {strings.Repeat("9", 50), strings.Repeat("9", 51), -1}} {
		if got := natural(tc.a, tc.b); (got < 0) != (tc.sign < 0) || (got > 0) != (tc.sign > 0) {
			t.Errorf("natural(%q, %q) = %d", tc.a, tc.b, got)
		}
		if got := natural(tc.b, tc.a); (got < 0) != (tc.sign > 0) {
			t.Errorf("natural(%q, %q) = %d", tc.b, tc.a, got)
		}
	}
}

func TestFind(t *testing.T) {
	b := newBox(t, nil)
	b.put(".gitignore", "node_modules/\n*.log\n")
	for _, f := range []string{"cmd/main.go", "internal/manager/a.go", "docs/main.md", "node_modules/main.js", "x.log", ".git/main", "README.md"} {
		b.put(f, "")
	}
	b.link(b.root, "loop")
	find := func(query string, limit int) (names []string, truncated bool) {
		t.Helper()
		found, err := b.Find(t.Context(), query, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found.Files {
			rel, _ := filepath.Rel(b.root, f)
			names = append(names, filepath.ToSlash(rel))
		}
		return names, found.Truncated
	}
	if got, _ := find("main", 10); !slices.Equal(got, []string{"cmd/main.go", "docs/main.md"}) {
		t.Errorf("main: %q", got)
	}
	if got, _ := find("Man A", 10); len(got) == 0 || got[0] != "internal/manager/a.go" {
		t.Errorf("man a: %q", got)
	}
	if got, truncated := find("", 2); len(got) != 2 || !truncated {
		t.Errorf("nothing: %q", got)
	}
	if got, truncated := find("", 100); len(got) != 5 || truncated {
		t.Errorf("all: %q %v", got, truncated)
	}
	if got, _ := find(strings.Repeat("x", 1000), 10); len(got) != 0 {
		t.Errorf("%q", got)
	}
	if err := b.Create(b.path("zebra"), false); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; {
		if got, _ := find("zebra", 1); len(got) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a new file is not found")
		}
		time.Sleep(5 * time.Millisecond)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	other := newBox(t, nil)
	other.index.building = make(chan struct{}) // one that never ends
	if _, err := other.Find(ctx, "x", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
