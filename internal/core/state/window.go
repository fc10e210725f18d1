package state

import (
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/core/text"
)

// maxSelection bounds the text of a stored selection, in UTF-16 units. It is twice
// what any agent is told (SPEC C-5), so that an agent's adapter still sees that there is more.
const maxSelection = 32 << 10

// maxSelections bounds how many selections are stored. Nobody means anything by more
// cursors than that.
const maxSelections = 64

// A Report is everything that one window of an editor shows: a browser tab, or an
// editor process with all its windows. The same report twice changes nothing.
type Report struct {
	// Active is the absolute path of the user's focused document. It is "" when something
	// else has focus: a terminal, a settings page, a diff view.
	Active string
	// Cursor and Selections belong to Active. The first selection is the primary one.
	// At most 64 selections of at most 32,768 UTF-16 units are kept.
	Cursor     *Position
	Selections []Selection
	// Open lists the absolute paths of every open document; Active may be missing in it.
	// nil when this report does not say: then Active joins the documents that were open.
	Open []string
	// Dirty lists the open documents with unsaved changes; nil when this report does not say.
	Dirty []string
	// Front says that the user is in this window now. A report that changes Active,
	// Cursor or Selections brings its window to the front without it too.
	Front bool
}

type paths map[string]struct{}

func pathSet(list []string) paths {
	set := make(paths, len(list))
	for _, p := range list {
		if p != "" {
			set[p] = struct{}{}
		}
	}
	return set
}

// is reports whether the set holds exactly the paths of list. For a list with
// repetitions it may wrongly say no, which only costs a comparison later.
func (s paths) is(list []string) bool {
	return len(s) == len(list) && !slices.ContainsFunc(list, func(p string) bool { _, ok := s[p]; return !ok })
}

// move renames paths in place, and reports whether it renamed any.
func (s paths) move(rename func(string) (string, bool)) bool {
	var gone, come []string
	for p := range s {
		if to, ok := rename(p); ok {
			gone, come = append(gone, p), append(come, to)
		}
	}
	for i := range gone {
		delete(s, gone[i])
	}
	for i := range come {
		s[come[i]] = struct{}{}
	}
	return len(gone) > 0
}

// A window is what the store knows of one window, from its first report until it
// leaves. The values behind its pointers and slices are never changed, only replaced:
// snapshots share them.
type window struct {
	open, dirty paths // never nil; active is in open
	active      string
	cursor      *Position
	selections  []Selection
	fronted     int // when it last came to the front, as a value of Store.fronts; 0 for never
}

// look takes what the user looks at from r, and reports whether that changed.
func (w *window) look(r Report) bool {
	if r.Active == "" {
		r.Cursor, r.Selections = nil, nil
	}
	selections := bounded(r.Selections)
	if w.active == r.Active && equalValues(w.cursor, r.Cursor) && slices.Equal(w.selections, selections) {
		return false
	}
	w.active, w.selections, w.cursor = r.Active, selections, nil
	if r.Cursor != nil {
		cursor := *r.Cursor
		w.cursor = &cursor
	}
	return true
}

// list takes the open and the dirty documents from r, as far as r has them, and
// reports whether they changed.
func (w *window) list(r Report) (changed bool) {
	if r.Open != nil && !w.open.is(r.Open) {
		w.open, changed = pathSet(r.Open), true
	}
	if _, ok := w.open[r.Active]; !ok && r.Active != "" {
		w.open[r.Active], changed = struct{}{}, true
	}
	if r.Dirty != nil && !w.dirty.is(r.Dirty) {
		w.dirty, changed = pathSet(r.Dirty), true
	}
	return changed
}

// bounded copies a report's selections, within the bounds.
func bounded(in []Selection) []Selection {
	if len(in) == 0 {
		return nil
	}
	out := slices.Clone(in[:min(len(in), maxSelections)])
	for i, s := range out {
		if cut := text.CutUTF16(s.Text, maxSelection); len(cut) < len(s.Text) {
			out[i].Text = strings.Clone(cut) // a clone, or the whole text would stay in memory
		}
	}
	return out
}
