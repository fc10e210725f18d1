package kakoune

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// Kakoune counts bytes and selects the character under the cursor; agents count UTF-16 units (SPEC C-2, C-4).
func TestPlace(t *testing.T) {
	for name, tt := range map[string]struct {
		event Event
		want  place
	}{
		"a cursor":  {Event{Desc: "3.2,3.2", Prefix: "ab", Chosen: "b"}, place{cursor: position{2, 1}, start: position{2, 1}, end: position{2, 1}, lines: [2]int{3, 3}}},
		"forwards":  {Event{Desc: "1.5,1.6", Prefix: "😀x", Chosen: "xy"}, place{position{0, 3}, position{0, 2}, position{0, 4}, "xy", [2]int{1, 1}}},
		"backwards": {Event{Desc: "1.6,1.5", Prefix: "😀x", Chosen: "xy"}, place{position{0, 2}, position{0, 2}, position{0, 4}, "xy", [2]int{1, 1}}},
		"two lines": {Event{Desc: "1.1,2.4", Prefix: "a", Chosen: "a\n😀"}, place{position{1, 0}, position{0, 0}, position{1, 2}, "a\n😀", [2]int{1, 2}}},
		"a line":    {Event{Desc: "1.1,1.2", Prefix: "a", Chosen: "a\n"}, place{position{0, 1}, position{0, 0}, position{1, 0}, "a\n", [2]int{1, 1}}},
		"too long":  {Event{Desc: "1.90000,1.90000"}, place{cursor: position{0, 89999}, start: position{0, 89999}, end: position{0, 89999}, lines: [2]int{1, 1}}},
	} {
		if got, ok := tt.event.place(); !ok || got != tt.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, ok, tt.want)
		}
	}
	if _, ok := (Event{Desc: "none"}).place(); ok {
		t.Error("a place without a selection")
	}
}

// What Kakoune was given and has not changed comes back byte for byte; each text of its ends with a line's end (SPEC F-6).
func TestText(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "a", "a\n", "a\n\n", "a\r\nb", "\ufeffa"} {
		p := &proposal{ID: "x", New: text}
		if err := p.write(dir); err != nil {
			t.Fatal(err)
		}
		if got := p.text(dir); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	p := &proposal{ID: "x", New: "a"}
	if err := os.WriteFile(filepath.Join(dir, "x.text"), []byte("b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.text(dir); got != "b" {
		t.Errorf("an edit gave the text %q", got)
	}
	if err := (&proposal{ID: "../x"}).write(dir); err == nil {
		t.Error("an id that leads out of the folder")
	}
}

// A rejection that no pollux heard is what the next one announces (SPEC L-3).
func TestLeft(t *testing.T) {
	dir := t.TempDir()
	for _, id := range []string{"", "a/b", "..", "a.b", "é", "a b", "a\n", strings.Repeat("a", 101)} {
		if (&proposal{ID: id}).write(dir) == nil {
			t.Errorf("the id %q is a file's name", id)
		}
	}
	if err := (&proposal{ID: "x", Path: "/a", Old: "o", New: "n"}).write(dir); err != nil {
		t.Fatal(err)
	}
	if err := Reject(dir, "x"); err != nil {
		t.Fatal(err)
	}
	all := left(dir)
	if len(all) != 1 || all[0].announce(dir)["outcome"] != "rejected" || all[0].announce(dir)["content"] != "n" {
		t.Errorf("%+v", all)
	}
	if Reject(dir, "y") == nil {
		t.Error("a rejection of what there is not")
	}
}

// What a Kakoune has left is removed when that has ended. In another container it has another number, and may run.
func TestSweep(t *testing.T) {
	dirs, now := t.TempDir(), time.Now()
	for name, stays := range map[string]bool{
		folder(os.Getpid()):                true,
		"999999999-1-" + here():            false,
		"999999999-1-elsewhere":            true,
		fmt.Sprintf("%d-1-x", os.Getpid()): true,
		"999999998-1-" + here():            true, // used
	} {
		if err := os.Mkdir(filepath.Join(dirs, name), 0o700); err != nil {
			t.Fatal(err)
		}
		lock, err := os.OpenFile(filepath.Join(dirs, name, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		if name == "999999998-1-"+here() {
			if held, err := safefile.TryLock(lock); err != nil || !held {
				t.Fatal(held, err)
			}
		}
		sweep(dirs, now)
		if _, err := os.Stat(filepath.Join(dirs, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
	sweep(dirs, now.Add(keepFor+time.Hour))
	if _, err := os.Stat(filepath.Join(dirs, "999999999-1-elsewhere")); err == nil {
		t.Error("texts of another container stay for ever")
	}
}

// A word of Kakoune's language holds any text.
func TestCommand(t *testing.T) {
	if got, want := command("a", "it's", "%{"), "a 'it''s' '%{'\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
