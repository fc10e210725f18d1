package tui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// look lets the reviewer look at the disk, as it does each second.
func (b *bench) look() { b.perform(b.m.look(false)) }

// SPEC F-8: a file that has changed on disk while its proposal waits is pointed out before accepting, and can be
// compared with first; nothing of what has come since is lost unseen.
func TestChangedOnDisk(t *testing.T) {
	const path = "/w/proj/a.txt"
	scene := func() *bench {
		b := newBench(t, 80, 24)
		b.propose("1", path, "one\ntwo\nthree\nfour\nfive\nsix\n", "one\ntwo\nthree\nfour\nfive\nSIX\n")
		b.sync()
		b.look()
		if s := b.screen(); strings.Contains(s, "disk") {
			t.Errorf("nothing has changed:\n%s", s)
		}
		b.disk[path] = diskFile{stamp: "2", exists: true, text: "ONE\ntwo\nthree\nfour\nfive\nsix\n"}
		b.look()
		b.wants("changed on disk")
		b.wants("c compares with it as it is now")
		return b
	}
	b := scene()
	b.press("a") // asks
	b.wants("a.txt has changed on disk since this was proposed. Accept all the same?")
	b.press("n")
	b.press("a", "c")
	b.wants("hunk 1/2")
	b.wants("- ONE")
	if strings.Contains(b.screen(), "changed on disk") {
		t.Error("it has been compared, and counts as changed")
	}
	b.press("x", "a") // what has come since stays
	if d := b.decision(); *d.Content != "ONE\ntwo\nthree\nfour\nfive\nSIX\n" {
		t.Errorf("%q", *d.Content)
	}
	b = scene()
	b.press("a", "y")
	if d := b.decision(); *d.Content != "one\ntwo\nthree\nfour\nfive\nSIX\n" {
		t.Errorf("%q", *d.Content)
	}
	b = scene()
	b.press("r") // loses nothing on disk
	if b.decision().Accept {
		t.Error("rejected means accepted")
	}
	b = scene() // as it was
	b.disk[path] = diskFile{stamp: "3", exists: true, text: "one\ntwo\nthree\nfour\nfive\nsix\n"}
	b.press("a")
	b.decision()
}

// The change is seen when it comes between the last look and the key.
func TestChangedJustBeforeAccepting(t *testing.T) {
	b := newBench(t, 80, 24)
	example(b)
	b.look()
	b.disk["/w/proj/src/main.go"] = diskFile{stamp: "2", exists: true, text: "another"}
	b.press("a")
	b.wants("Accept all the same?")
	if len(b.f.decided) > 0 {
		t.Error("accepted")
	}
}

// What the file may have become.
func TestDiskHas(t *testing.T) {
	for name, tt := range map[string]struct {
		old  string
		now  diskFile
		says string
	}{
		"gone":     {"old\n", diskFile{stamp: "none"}, "is gone from the disk"},
		"come":     {"", diskFile{stamp: "1", exists: true, text: "mine\n"}, "has come into being"},
		"binary":   {"old\n", diskFile{stamp: "1", exists: true, problem: "it is not text any more"}, "it is not text any more"},
		"the same": {"old\n", diskFile{stamp: "1", exists: true, text: "old\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 80, 24)
			b.propose("1", "/w/proj/a.txt", tt.old, "new\n")
			b.sync()
			b.disk["/w/proj/a.txt"] = tt.now
			b.look()
			if tt.says == "" {
				if s := b.screen(); strings.Contains(s, "disk") {
					t.Error(s)
				}
				return
			}
			b.wants(tt.says)
			b.press("a")
			if len(b.f.decided) > 0 {
				t.Fatal("accepted without a question")
			}
			b.press("c", "a", "y") // with nothing to compare with, the question stays
			b.decision()
		})
	}
	// What pollux diff asks about may be shown beside the file's own text.
	b := newBench(t, 80, 24)
	b.propose("1", "/w/proj/a.txt", "old\n", "new\n").Owner = "pollux diff #1"
	b.sync()
	b.disk["/w/proj/a.txt"] = diskFile{stamp: "1", exists: true, text: "another\n"}
	b.look()
	b.press("a")
	b.decision()
}

func TestReadDisk(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	read := func(known string, want diskFile, wantSame bool) string {
		t.Helper()
		got, same := readDisk(file, known)
		stamp := got.stamp
		got.stamp = ""
		if same != wantSame || got != want {
			t.Errorf("%+v %v, want %+v %v", got, same, want, wantSame)
		}
		return stamp
	}
	none := read("", diskFile{}, false)
	read(none, diskFile{}, true)
	put := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("one\r\n")
	stamp := read(none, diskFile{exists: true, text: "one\r\n"}, false)
	read(stamp, diskFile{}, true)
	put("\xff\xfe\x00")
	read(stamp, diskFile{exists: true, problem: "it is not text any more"}, false)
	if err := os.Truncate(file, maxEdited+1); err != nil {
		t.Fatal(err)
	}
	read(stamp, diskFile{exists: true, problem: "it is too big to be shown"}, false)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	read(stamp, diskFile{exists: true, problem: "it is no file any more"}, false)
}
