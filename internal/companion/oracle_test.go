package companion

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
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

// A world is two files, the agents that propose changes of them, the views of one user, and all that
// anybody has ever written: each write has a word of its own.
type world struct {
	t      *testing.T
	r      *rand.Rand
	dir    string
	log    []string
	disk   map[string]review.File
	files  sync.Mutex // guards disk against the registry's own looks; only the test writes it
	reg    *review.Registry
	book   *journal.Journal
	past   *history.History
	agents []*writer
	words  int
	saved  []string // words that were saved to the disk or edited into a proposal
	editor *lsptest.Plugin
	left   []string // texts that the editor keeps, as it may be the only one that has them
	keep   bool     // a keeper goes on when the editor leaves

	conflicts int // how many were decided
}

// Read implements review.Files.
func (w *world) Read(path string) review.File {
	w.files.Lock()
	defer w.files.Unlock()
	return w.disk[path]
}

func (w *world) put(path, text string) {
	w.files.Lock()
	defer w.files.Unlock()
	w.disk[path] = review.File{Text: text, Exists: true}
}

// A party is the session of one agent, with a writer for each file.
type party struct {
	name    string
	writers map[string]*writer
}

// A writer is an agent at one file, and writes what was accepted a while later.
type writer struct {
	w     *world
	by    *party
	path  string
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

// newWorld has two agents and two files.
func newWorld(t *testing.T, seed int) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(uint64(seed), 7)), dir: t.TempDir(), disk: map[string]review.File{}}
	for _, path := range []string{"/f", "/g"} {
		w.put(path, "a\nb\nc\nd\ne\nf\n")
	}
	for _, name := range []string{"one", "two"} {
		by := &party{name, map[string]*writer{}}
		for _, path := range []string{"/f", "/g"} {
			a := &writer{w: w, by: by, path: path, name: name + path}
			by.writers[path] = a
			w.agents = append(w.agents, a)
		}
	}
	return w
}

func (p *party) Label() string { return p.name }

func (p *party) Settled(d *review.Diff, o review.Outcome) {
	a := p.writers[d.Proposal().Path]
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
		Left: func() {
			if w.keep {
				w.reg.Retire()
			} else {
				w.reg.Shut()
			}
		},
		Keep: func(e history.Entry) { w.past.Keep(e) },
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
			if a.by.name != left.Session || a.path != left.Path {
				continue
			}
			d, err := w.reg.Restore(a.by, left.ID, t.Text, t.Agreed, left.Opened, review.Proposal{Key: left.Key, Path: left.Path, Old: t.Old, IsNew: left.IsNew, New: t.New, Title: left.Title})
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
		w.save(a)
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
		if a.diff.Now().Conflict != nil {
			w.conflicts++
		}
		_ = w.reg.Resolve(a.diff.ID(), a.views[i].at, w.r.IntN(2) == 0)
	case k == 12 && open && w.r.IntN(3) == 0:
		w.note("%s: reject or withdraw", a.name)
		if w.r.IntN(2) == 0 {
			_ = w.reg.Reject(a.diff.ID())
		} else if _, err := w.reg.Withdraw(context.Background(), a.by, a.path); err == nil {
			w.book.Dropped(a.by.name, a.path)
		}
	case k == 13:
		w.ends()
	}
	time.Sleep(time.Duration(w.r.IntN(3000)) * time.Millisecond)
	synctest.Wait()
}

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// awaited says whether an agent is about to write a file: no program could know of that.
func (w *world) awaited(path string) bool {
	return slices.ContainsFunc(w.agents, func(a *writer) bool { return a.path == path && a.write != nil })
}

// save writes a's file as a program that has read it before. It does nothing while an agent is about to write.
func (w *world) save(a *writer) {
	if w.awaited(a.path) {
		return
	}
	word := w.word("disk")
	text, ok := a.clash(word)
	if !ok || w.r.IntN(2) == 0 {
		text = w.change(w.disk[a.path].Text, word)
	}
	w.put(a.path, text)
	w.saved = append(w.saved, word)
	w.note("disk %s: %q", a.path, text)
	if w.r.IntN(4) > 0 { // else the watcher has not seen it
		w.reg.Look(a.path)
	}
}

// clash puts a word in the place of a line that the proposal has changed as well, and that is nobody's word; false where there is none.
func (a *writer) clash(word string) (text string, ok bool) {
	if a.diff == nil {
		return "", false
	}
	proposed := strings.SplitAfter(a.diff.Now().Text, "\n")
	lines := strings.SplitAfter(a.w.disk[a.path].Text, "\n")
	for i, line := range lines {
		if line != "" && !strings.Contains(line, "-") && !slices.Contains(proposed, line) {
			lines[i] = word
			return strings.Join(lines, ""), true
		}
	}
	return "", false
}

func (w *world) writes(a *writer) {
	w.put(a.path, *a.write)
	w.note("%s writes %q", a.name, *a.write)
	a.write = nil
	w.reg.Look(a.path)
}

func (a *writer) propose() {
	w := a.w
	text := w.disk[a.path].Text
	p := review.Proposal{Key: a.path, Path: a.path, Old: text, New: w.change(text, w.word(a.by.name)), Title: a.path}
	d, err := w.reg.Open(context.Background(), a.by, p, func(d *review.Diff) { w.book.Opened(a.by.name, d) })
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
	file, expected := w.disk[a.path], w.awaited(a.path)
	err := w.reg.Accept(a.diff.ID(), v.at, &v.text)
	w.note("%s: view %d accepts %q: %v", a.name, i, v.text, err)
	if err == nil && !expected && text.ToLF(v.base.Text) != text.ToLF(file.Text) {
		w.t.Errorf("accepted over %q, which the view had not shown: it had %q", file.Text, v.base.Text)
	}
	if errors.Is(err, review.ErrStale) || errors.Is(err, review.ErrConflict) {
		a.look(i)
	}
}

// ends ends a life: the companion is killed, or the editor leaves, or both. What the history was told is on its way to the disk.
func (w *world) ends() {
	how := w.r.IntN(4)
	if how > 0 {
		w.note("crash")
		w.live(w.end(w.editor.Close()))
	}
	if how < 2 {
		w.keep = w.r.IntN(2) == 0
		w.note("the editor leaves, keep %v", w.keep)
		open := map[string]bool{}
		for _, a := range w.agents {
			if a.diff != nil {
				_, over := a.diff.Outcome()
				open[a.diff.ID()] = !over
			}
		}
		for _, v := range w.end(w.editor.Leave()) {
			if !open[v.ID] {
				w.left = append(w.left, v.Text) // it was decided when this was typed, and the editor had not heard of that
			}
		}
		w.live(nil)
	}
}

// end ends a life with what the editor still shows.
func (w *world) end(shown []lsptest.View) []lsptest.View {
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
	for _, f := range w.disk {
		all.WriteString(f.Text)
	}
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
	conflicts := 0
	for n := range *interleavings {
		ok := t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, n)
				w.live(nil)
				for range 60 {
					w.step()
				}
				w.arrives()
				w.end(w.editor.Close())
				w.check()
				conflicts += w.conflicts
				w.reg.Shut()
				if t.Failed() {
					t.Logf("seed %d:\n%s", n, strings.Join(w.log, "\n"))
				}
				time.Sleep(time.Minute) // what waits for agents to write
			})
		})
		if !ok {
			return
		}
	}
	if conflicts < *interleavings/10 {
		t.Errorf("%d conflicts in %d interleavings: that tries nothing", conflicts, *interleavings)
	}
}
