package state

import (
	"maps"
	"slices"
	"time"
)

// A Position is a place in a document: 0-based line and 0-based character in
// UTF-16 code units, as in LSP.
type Position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// A Selection is a non-empty range of a document with the text in it.
type Selection struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
	Text  string   `json:"text"`
}

// A Diagnostic is one finding of an editor's tools about a document.
type Diagnostic struct {
	Start, End Position
	Severity   int // as in LSP: 1 error … 4 hint
	Source     string
	Message    string
}

// A File is one open document.
type File struct {
	Path string // absolute
	// Focused is the time of its last focus, distinct for every file of a
	// snapshot to the millisecond; the zero time for one never focused.
	Focused time.Time
	Dirty   bool // some window has unsaved changes of it
}

// A Snapshot is immutable once published: neither the store nor a subscriber
// changes anything in it, as snapshots share what did not change.
type Snapshot struct {
	Roots   []string // absolute, in the editor's order
	Trusted *bool    // nil: the editor has no notion of workspace trust (SPEC C-7)
	Files   []File   // newest focus first; those never focused last, by path
	// Active is the path of the focused document, then always Files[0].Path; "" when none is.
	Active     string
	Cursor     *Position   // in Active; nil when not known
	Selections []Selection // in Active, the primary one first
	// Diagnostics are by absolute path. A document has an entry, maybe an empty one, when a tool of the editor's looks at it.
	Diagnostics map[string][]Diagnostic
	// Withheld are the agents that must not be told, sorted; see For.
	Withheld []string
	// Denied are the paths in it that one agent must not be told, sorted, by the agent.
	Denied map[string][]string
	// Lent is what the user of another companion looks at, who was active last; nil when this store's own user was. See Store.Lend.
	Lent *Snapshot `json:"-"`
	// LentTo are the agents that are told Lent.
	LentTo []string `json:"-"`
}

// For returns the part of the snapshot that an agent may be told: everything, or the roots and trust alone. For the agents of
// Options.LentTo it is the lent one, if there is one.
func (s *Snapshot) For(agent string) *Snapshot {
	switch {
	case slices.Contains(s.Withheld, agent):
		return s.Bare()
	case s.Lent == nil || !slices.Contains(s.LentTo, agent):
		return s.without(s.Denied[agent])
	}
	out := *s.Lent.For(agent)
	out.Roots, out.Trusted = s.Roots, s.Trusted
	return &out
}

// ForAll returns the part that every agent of Denied may be told. It says nothing about Withheld.
func (s *Snapshot) ForAll() *Snapshot {
	out := s
	for _, paths := range s.Denied {
		out = out.without(paths)
	}
	return out
}

// without returns s without what it says of some files.
func (s *Snapshot) without(paths []string) *Snapshot {
	if len(paths) == 0 {
		return s
	}
	has := func(path string) bool {
		_, ok := slices.BinarySearch(paths, path)
		return ok
	}
	out := *s
	out.Denied = nil
	out.Files = slices.DeleteFunc(slices.Clone(s.Files), func(f File) bool { return has(f.Path) })
	out.Diagnostics = maps.Clone(s.Diagnostics)
	maps.DeleteFunc(out.Diagnostics, func(path string, _ []Diagnostic) bool { return has(path) })
	if has(out.Active) {
		out.Active, out.Cursor, out.Selections = "", nil, nil
	}
	return &out
}

// SameLook reports whether the user looks at the same place in both.
func (s *Snapshot) SameLook(o *Snapshot) bool {
	return s.Active == o.Active && equalValues(s.Cursor, o.Cursor) && slices.Equal(s.Selections, o.Selections)
}

// Bare returns the roots and trust alone.
func (s *Snapshot) Bare() *Snapshot { return &Snapshot{Roots: s.Roots, Trusted: s.Trusted} }

// equal says whether a subscriber could tell the two apart.
func equal(a, b *Snapshot) bool {
	if a.Lent != b.Lent && (a.Lent == nil || b.Lent == nil || !equal(a.Lent, b.Lent)) {
		return false
	}
	return a.SameLook(b) &&
		slices.Equal(a.Files, b.Files) && slices.Equal(a.Roots, b.Roots) && equalValues(a.Trusted, b.Trusted) && slices.Equal(a.Withheld, b.Withheld) &&
		maps.EqualFunc(a.Denied, b.Denied, slices.Equal[[]string]) &&
		maps.EqualFunc(a.Diagnostics, b.Diagnostics, slices.Equal[[]Diagnostic])
}

func equalValues[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// denied adds to a snapshot what agents must not be told. It asks once for each agent and path.
func denied(snap *Snapshot, agents []string, judge func() func(agent, path string) bool) *Snapshot {
	if judge == nil || len(agents) == 0 {
		return snap
	}
	named := map[string]bool{}
	for _, f := range snap.Files {
		named[f.Path] = true
	}
	for path := range snap.Diagnostics {
		named[path] = true
	}
	if snap.Active != "" {
		named[snap.Active] = true
	}
	out := *snap
	if snap.Lent != nil {
		out.Lent = denied(snap.Lent, agents, judge)
	}
	if len(named) == 0 {
		return &out
	}
	paths := slices.Sorted(maps.Keys(named))
	out.Denied = maps.Clone(snap.Denied) // of the companion that lent it
	denies := judge()
	for _, agent := range agents {
		for _, path := range paths {
			if denies(agent, path) && !slices.Contains(out.Denied[agent], path) {
				if out.Denied == nil {
					out.Denied = map[string][]string{}
				}
				out.Denied[agent] = append(slices.Clone(out.Denied[agent]), path)
			}
		}
		slices.Sort(out.Denied[agent])
	}
	return &out
}

// kept returns snap without the paths that judge's function refuses. It asks once for each path, and
// copies nothing when everything stays.
func kept(snap *Snapshot, judge func() func(string) bool) *Snapshot {
	if judge == nil {
		return snap
	}
	keep := judge()
	answers := make(map[string]bool, len(snap.Files)+len(snap.Diagnostics))
	refused := func(path string) bool {
		answer, known := answers[path]
		if !known {
			answer = keep(path)
			answers[path] = answer
		}
		return !answer
	}
	out := *snap
	if snap.Lent != nil {
		out.Lent = kept(snap.Lent, judge)
	}
	if slices.ContainsFunc(snap.Files, func(f File) bool { return refused(f.Path) }) {
		out.Files = slices.DeleteFunc(slices.Clone(snap.Files), func(f File) bool { return refused(f.Path) })
	}
	for path := range snap.Diagnostics {
		if refused(path) {
			out.Diagnostics = maps.Clone(snap.Diagnostics)
			maps.DeleteFunc(out.Diagnostics, func(path string, _ []Diagnostic) bool { return refused(path) })
			break
		}
	}
	if out.Active != "" && refused(out.Active) {
		out.Active, out.Cursor, out.Selections = "", nil, nil
	}
	return &out
}
