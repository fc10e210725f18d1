package companion

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/history"
)

// SPEC F-12: with an undone new file go the folders that were new with it, as long as they are empty, and no others.
func TestUndoingANewFileLeavesNoFolders(t *testing.T) {
	o, a, _ := options(t)
	c := start(t, o)
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(a, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		path    string
		newDirs int
		beside  string // another file that is there by then
		left    string // the innermost folder that stays
	}{
		"all new":         {"n1/x/y/new.go", 3, "", "."},
		"one was there":   {"n2/x/y/new.go", 2, "", "n2"},
		"all were there":  {"n3/x/new.go", 0, "", "n3/x"},
		"not empty":       {"n4/x/y/new.go", 3, "n4/x/other", "n4/x"},
		"in the root":     {"new.go", 0, "", "."},
		"more than there": {"n5/new.go", 99, "", "."},
	} {
		t.Run(name, func(t *testing.T) {
			write(tt.path, "new")
			if tt.beside != "" {
				write(tt.beside, "")
			}
			path := filepath.Join(a, tt.path)
			e := history.Entry{Info: history.Info{ID: strings.ReplaceAll(name, " ", ""), Settled: time.Now(), Path: path, Outcome: review.Accepted, IsNew: true, NewDirs: tt.newDirs}, Final: "new"}
			c.kept.Keep(e)
			var err error
			for end := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
				if err = (backend{c}).Undo(e.ID); !errors.Is(err, history.ErrNoEntry) || time.Now().After(end) {
					break
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(a, tt.left)); err != nil {
				t.Error(err)
			}
			for dir := filepath.Dir(path); dir != filepath.Join(a, tt.left); dir = filepath.Dir(dir) {
				if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s is left: %v", dir, err)
				}
			}
		})
	}
}

// The history counts the folders that a proposal's file needs.
func TestProposalsOfNewFoldersCountThem(t *testing.T) {
	o, a, _ := options(t)
	o.Settings.OpenBrowser = false
	start(t, o)
	reviewer, asker, ctx := join(t, o, a), join(t, o, a), t.Context()
	if err := reviewer.Attach(ctx); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(a, "fresh", "deep", "x.go")
	q := propose(t, asker, control.Proposal{Path: file, IsNew: true, New: "x\n"})
	q.open(t)
	d := until(t, reviewer, "the proposal", one).Diffs[0]
	if err := reviewer.Decide(ctx, control.Decision{ID: d.ID, Accept: true, Seen: control.Seen{Version: d.Version, Base: d.Base}}); err != nil {
		t.Fatal(err)
	}
	until(t, reviewer, "the history's entry", func(q control.Queue) bool { return none(q) && q.Past > 0 })
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, []byte("x\n"), 0o600)
	}
	if err == nil {
		err = reviewer.Undo(ctx, d.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(a, "fresh")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}
