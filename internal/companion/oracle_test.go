package companion

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/editor/lsp/lsptest"
	"github.com/pollux-companion/pollux/internal/history"
	"github.com/pollux-companion/pollux/internal/journal"
)

var interleavings = flag.Int("interleavings", 150, "how many random interleavings TestNothingIsLost plays")

// A world is one file, the agents that propose changes of it, the views of one user, and all that
// anybody has ever written: each write has a word of its own.
type world struct {
	t      *testing.T
	r      *rand.Rand
	dir    string
	log    []string
	file   review.File
	files  sync.Mutex // guards file against the registry's own looks; only the test writes it
	reg    *review.Registry
	book   *journal.Journal
	past   *history.History
	agents []*writer
	words  int
	saved  []string // words that were saved to the disk or edited into a proposal
	editor *lsptest.Plugin
	left   []string // texts that the editor keeps, as it may be the only one that has them
}

// Read implements review.Files.
func (w *world) Read(string) review.File {
	w.files.Lock()
	defer w.files.Unlock()
	return w.file
}

func (w *world) put(f review.File) {
	w.files.Lock()
	defer w.files.Unlock()
	w.file = f
}

// A writer is the session of one agent, and writes what was accepted a while later.
type writer struct {
	w     *world
	name  string
	diff  *review.Diff
	views [2]seen
	write *string // what it is to write
}

// A seen is what one view of the user's shows of a diff; it may lag behind.
type seen struct {
	text string
	base review.File
	at   review.Seen
}

func (a *writer) Label() string { return a.name }

func (a *writer) Settled(d *review.Diff, o review.Outcome) {
	if o.Kind == review.Accepted {
		a.w.book.Decided(d.ID(), &o.Content, "accepted", "L", 1)
		a.write = &o.Content
	} else {
		a.w.book.Decided(d.ID(), nil, "rejected", "L", 1)
	}
	a.w.book.Forget(d.ID()) // it has heard
}

// live begins a life of the companion with what the one before it left: its journal, and what the editor still shows.
func (w *world) live(shown []lsptest.View) {
	var err error
	w.editor, err = lsptest.Start(w.t.Context(), lsptest.Options{
		Delay: lsptest.Delays(w.r.Uint64(), 400*time.Millisecond),
		Kept:  shown,
		Start: func(view review.View) *review.Registry {
			w.reg = review.New(review.Options{View: view, Files: w})
			return w.reg
		},
		Attached: w.restore,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// restore follows the registry, and brings back what an earlier life has left.
func (w *world) restore() {
	w.book = journal.Open(filepath.Join(w.dir, "journal"), nil, func(err error) {
		if err != nil {
			w.t.Error(err)
		}
	})
	var err error
	if w.past, err = history.Open(filepath.Join(w.dir, "history"), &history.Options{MaxEntries: 1000}); err != nil {
		w.t.Fatal(err)
	}
	w.past.Follow(w.reg)
	w.book.Follow(w.reg)
	for _, left := range w.book.Diffs() {
		t, err := w.book.Texts(left.ID)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, a := range w.agents {
			if a.name != left.Session {
				continue
			}
			d, err := w.reg.Restore(a, left.ID, t.Text, t.Agreed, left.Opened, review.Proposal{Key: left.Key, Path: left.Path, Old: t.Old, IsNew: left.IsNew, New: t.New, Title: left.Title})
			if err != nil {
				w.t.Fatal(err)
			}
			w.book.Restored(d, t.Text)
			a.diff = d
			a.look(0)
			a.look(1)
		}
	}
}

func (a *writer) look(i int) {
	now := a.diff.Now()
	a.views[i] = seen{now.Text, now.Base, now.Seen}
}

// word is a line that nobody has written before.
func (w *world) word(who string) string {
	w.words++
	return fmt.Sprintf("%s-%d\n", who, w.words)
}

// change puts a word into a text: as a new line, or in the place of one that is nobody's word.
func (w *world) change(s, word string) string {
	lines := strings.SplitAfter(s, "\n")
	lines = lines[:len(lines)-1]
	i := w.r.IntN(len(lines) + 1)
	if i < len(lines) && w.r.IntN(2) == 0 && !strings.Contains(lines[i], "-") {
		lines[i] = word
		return strings.Join(lines, "")
	}
	return strings.Join(lines[:i], "") + word + strings.Join(lines[i:], "")
}

// step does one thing that may happen.
func (w *world) step() {
	a := w.agents[w.r.IntN(len(w.agents))]
	i := w.r.IntN(2)
	open := a.diff != nil
	if open {
		_, over := a.diff.Outcome()
		open = !over
	}
	switch k := w.r.IntN(20); {
	case k > 13 && open:
		a.inEditor(k)
	case k < 3: // the user in another window, or any process
		w.save()
	case k == 3 && a.write != nil:
		w.writes(a)
	case k < 6 && !open && a.write == nil:
		a.propose()
	case k < 9 && open:
		a.edit(i)
	case k == 9 && open:
		w.note("%s: view %d looks", a.name, i)
		a.look(i)
	case k == 10 && open:
		a.accept(i)
	case k == 11 && open:
		w.note("%s: resolve", a.name)
		a.look(i)
		_ = w.reg.Resolve(a.diff.ID(), a.views[i].at, w.r.IntN(2) == 0)
	case k == 12 && open && w.r.IntN(3) == 0:
		w.note("%s: reject or withdraw", a.name)
		if w.r.IntN(2) == 0 {
			_ = w.reg.Reject(a.diff.ID())
		} else if _, err := w.reg.Withdraw(context.Background(), a, "k"); err == nil {
			w.book.Dropped(a.name, "k")
		}
	case k == 13 && w.r.IntN(2) == 0:
		w.crash()
	}
	time.Sleep(time.Duration(w.r.IntN(3000)) * time.Millisecond)
	synctest.Wait()
}

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// save writes the file as a program that has read it before. It does nothing while an agent is about to write:
// no program could know of that.
func (w *world) save() {
	for _, a := range w.agents {
		if a.write != nil {
			return
		}
	}
	word := w.word("disk")
	w.put(review.File{Text: w.change(w.file.Text, word), Exists: true})
	w.saved = append(w.saved, word)
	w.note("disk: %q", w.file.Text)
	if w.r.IntN(4) > 0 { // else the watcher has not seen it
		w.reg.Look("/f")
	}
}

func (w *world) writes(a *writer) {
	w.put(review.File{Text: *a.write, Exists: true})
	a.write = nil
	w.note("%s writes %q", a.name, w.file.Text)
	w.reg.Look("/f")
}

func (a *writer) propose() {
	w := a.w
	p := review.Proposal{Key: "k", Path: "/f", Old: w.file.Text, IsNew: !w.file.Exists, New: w.change(w.file.Text, w.word(a.name)), Title: "f"}
	d, err := w.reg.Open(context.Background(), a, p, func(d *review.Diff) { w.book.Opened(a.name, d) })
	if err != nil {
		w.t.Fatal(err)
	}
	w.note("%s proposes %q", a.name, p.New)
	a.diff = d
	a.look(0)
	a.look(1)
}

func (a *writer) edit(i int) {
	w, v := a.w, &a.views[i]
	word := w.word("edit")
	v.text = w.change(v.text, word)
	version, err := w.reg.Edit(a.diff.ID(), review.Edit{Text: v.text, From: &v.at.Text, By: v})
	if err != nil {
		w.t.Fatal(err)
	}
	v.at.Text = version
	w.saved = append(w.saved, word)
	w.note("%s: view %d edits %q", a.name, i, v.text)
}

// accept may succeed only with what the view has shown.
func (a *writer) accept(i int) {
	w, v := a.w, a.views[i]
	file := w.file
	expected := false
	for _, other := range w.agents {
		expected = expected || other.write != nil
	}
	err := w.reg.Accept(a.diff.ID(), v.at, &v.text)
	w.note("%s: view %d accepts %q: %v", a.name, i, v.text, err)
	if err == nil && !expected && text.ToLF(v.base.Text) != text.ToLF(file.Text) {
		w.t.Errorf("accepted over %q, which the view had not shown: it had %q", file.Text, v.base.Text)
	}
	if errors.Is(err, review.ErrStale) || errors.Is(err, review.ErrConflict) {
		a.look(i)
	}
}

// crash ends a life without a word. What the history was told is on its way to the disk.
func (w *world) crash() {
	w.note("crash")
	w.live(w.end())
}

// end ends a life, and returns what the editor still shows.
func (w *world) end() []lsptest.View {
	shown := w.editor.Close()
	w.left = append(w.left, w.editor.Unheard()...)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.past.Close(ctx); err != nil {
		w.t.Error(err)
	}
	w.book.Close()
	return shown
}

// check finds every word that was saved or edited.
func (w *world) check() {
	var all strings.Builder
	all.WriteString(w.file.Text)
	for _, a := range w.agents {
		if a.diff != nil {
			if _, over := a.diff.Outcome(); !over {
				all.WriteString(a.diff.Now().Text)
			}
		}
	}
	infos, err := w.past.List()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, info := range infos {
		e, err := w.past.Get(info.ID)
		if err != nil {
			w.t.Fatal(err)
		}
		all.WriteString(e.Old + e.New + e.Final)
	}
	all.WriteString(strings.Join(w.left, ""))
	for _, word := range w.saved {
		if !strings.Contains(all.String(), word) {
			w.t.Errorf("%q is lost", word)
		}
	}
}

// inEditor does one thing that the user may do in the editor, whose messages take their time both ways: mostly types.
func (a *writer) inEditor(k int) {
	w, id := a.w, a.diff.ID()
	switch {
	case k < 18:
		word := w.word("key")
		if w.editor.Type(id, func(s string) string { return w.change(s, word) }) {
			w.saved = append(w.saved, word)
			w.note("%s: typed %q", a.name, word)
		}
	case k == 18:
		w.note("%s: the editor accepts", a.name)
		w.editor.Decide(id, "accepted", nil)
	default:
		how := []string{"keep", "take", "rejected"}[w.r.IntN(3)]
		w.note("%s: the editor says %s", a.name, how)
		w.editor.Decide(id, how, nil)
	}
}

// arrives waits until everything has arrived, and finds the newest in the editor.
func (w *world) arrives() {
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	for _, a := range w.agents {
		if a.diff == nil {
			continue
		}
		v, shown := w.editor.See(a.diff.ID())
		now := a.diff.Now()
		if _, over := a.diff.Outcome(); over {
			if shown {
				w.t.Errorf("%s: the editor still shows what was decided", a.name)
			}
		} else if !shown || v.Text != now.Text || v.Old != now.Base.Text || v.Conflict != (now.Conflict != nil) {
			w.t.Errorf("%s: the editor shows (%v) %q on %q, conflict %v; the newest is %q on %q, conflict %v", a.name, shown, v.Text, v.Old, v.Conflict, now.Text, now.Base.Text, now.Conflict)
		}
	}
}

// SPEC F-13, F-12, L-3: whatever users, other programs, agents and crashes do to one file and the proposals for it, every
// byte that anybody saved or edited is in the file, in an open proposal or in the history, and nothing
// is accepted over what was not shown.
func TestNothingIsLost(t *testing.T) {
	for n := range *interleavings {
		ok := t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, r: rand.New(rand.NewPCG(uint64(n), 7)), dir: t.TempDir(), file: review.File{Text: "a\nb\nc\nd\ne\nf\n", Exists: true}}
				w.agents = []*writer{{w: w, name: "one"}, {w: w, name: "two"}}
				w.live(nil)
				for range 40 {
					w.step()
				}
				w.arrives()
				w.end()
				w.check()
				w.reg.Shut()
				if t.Failed() {
					t.Logf("seed %d:\n%s", n, strings.Join(w.log, "\n"))
				}
				time.Sleep(time.Minute) // what waits for agents to write
			})
		})
		if !ok {
			break
		}
	}
}
