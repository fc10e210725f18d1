package tui

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/control"
)

// written is the message of an editor that leaves a text for the proposal "1".
func (b *bench) written(left string) editedMsg {
	b.t.Helper()
	const path = "/w/proj/a.txt"
	before := b.f.texts["1"].New
	file, err := writePrivate(path, before)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { os.RemoveAll(filepath.Dir(file)) })
	if err := os.WriteFile(file, []byte(left), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return editedMsg{id: "1", path: path, file: file, text: before}
}

// comesBack starts another companion with the same proposals.
func (b *bench) comesBack() {
	b.t.Helper()
	next := *b.f
	next.queue = control.Queue{Diffs: next.queue.Diffs}
	next.edits, next.fail = nil, nil
	b.f = &next
	b.tell(joinedMsg{b.f})
	b.sync()
}

// What the user wrote in an external editor outlives the companion: the message names its file, and the proposal
// takes the text when it returns (SPEC L-3), in whatever order the news arrive.
func TestEditOutlivesCompanion(t *testing.T) {
	gone := lostMsg{errors.New("it is gone")}
	for name, during := range map[string]func(*bench, editedMsg){
		"ended first": func(b *bench, edit editedMsg) {
			b.tell(gone)
			b.tell(edit)
			b.wants("your edit is kept in")
			b.comesBack()
		},
		"ended while the edit was sent": func(b *bench, edit editedMsg) {
			b.f.fail = control.ErrStopped
			b.tell(edit)
			b.wants("your edit is kept in")
			b.tell(gone)
			b.comesBack()
		},
		"ended before the edit was answered": func(b *bench, edit editedMsg) {
			cmd := b.m.update(edit)
			b.tell(gone)
			b.f.fail = control.ErrStopped
			b.comesBack()
			b.perform(cmd)
		},
		"back before the editor was left": func(b *bench, edit editedMsg) {
			b.tell(gone)
			b.comesBack()
			b.tell(edit)
		},
		"back, and its texts on their way": func(b *bench, edit editedMsg) {
			b.tell(gone)
			next := *b.f
			b.f = &next
			b.tell(joinedMsg{b.f})
			load := b.m.showQueue(b.f.queue)
			b.tell(edit)
			b.perform(load)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 200, 24)
			b.propose("1", "/w/proj/a.txt", "one\n", "one\ntwo\n")
			b.sync()
			edit := b.written("one\nmine\n")
			during(b, edit)
			if got := strings.Join(b.f.edits, "|"); got != "one\nmine\n" {
				t.Errorf("the companion has heard %q", got)
			}
			if _, err := os.Stat(edit.file); err == nil || len(b.m.leftovers()) > 0 {
				t.Errorf("the companion has it, and it is kept all the same: %q", b.m.leftovers())
			}
			b.press("a")
			if d := b.decision(); *d.Content != "one\nmine\n" {
				t.Errorf("accepted %q", *d.Content)
			}
		})
	}
}

// When the proposal does not return, the text stays, and on leaving the user is told where.
func TestEditOfDecided(t *testing.T) {
	b := newBench(t, 200, 24)
	b.propose("1", "/w/proj/a.txt", "one\n", "one\ntwo\n")
	b.sync()
	edit := b.written("mine\n")
	b.end("1", "rejected")
	b.tell(edit)
	b.wants("your edit is kept in " + edit.file)
	if data, err := os.ReadFile(edit.file); err != nil || string(data) != "mine\n" {
		t.Errorf("%q, %v", data, err)
	}
	if all := b.m.leftovers(); len(all) != 1 || !strings.Contains(all[0], "a.txt") || !strings.Contains(all[0], edit.file) {
		t.Errorf("%q", all)
	}
	// An unchanged text, and the output of a failing editor, are dropped.
	for _, msg := range []editedMsg{b.written("one\ntwo\n"), b.written("x")} {
		if msg.text == "one\ntwo\n" && b.m.kept["1"].file == edit.file {
			msg.err = errors.New("exit status 1")
		}
		b.tell(msg)
		if _, err := os.Stat(msg.file); err == nil {
			t.Errorf("%s stays", msg.file)
		}
	}
}
