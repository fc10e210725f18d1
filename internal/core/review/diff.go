package review

import (
	"fmt"
	"time"
)

// A Diff is one open proposal, from Registry.Open to its outcome. Its methods
// may be called from any goroutine, also after the outcome.
type Diff struct {
	id       string
	owner    Owner
	label    string // of the owner
	proposal Proposal
	opened   time.Time
	restored bool // version 0 was in an earlier life
	registry *Registry

	// Guarded by registry.mu:

	text    string
	version int
	earlier []earlier // some texts of before, oldest first; see Registry.Edit
	editor  any       // who made the newest text
	// base is what the file holds, baseVersion counts its changes; agreed is
	// the base that text was made for, which base still is without a conflict.
	base, agreed File
	baseVersion  int
	conflict     *Conflict
	looked       uint64        // the look that base comes from
	outcome      *Outcome      // nil until settled, then never changed
	settled      chan struct{} // closed by settle; nil until somebody waits, see end
	phase        phase
	answered     chan struct{} // closed when phase leaves answering; nil until somebody waits
	sight        sight
	announced    bool // watchers have been told of it
	ruled        bool // see Ruled
}

// A phase is how far a diff has come with its agent.
type phase int

const (
	opening   phase = iota // being shown; the agent has had no answer
	answering              // in deliver
	open                   // the agent has its answer and may hear of the outcome
	told                   // Owner.Settled has been or is being called
)

// next are the phases that follow each. An agent whose diff is withdrawn hears no more of it.
var next = map[phase]phase{opening: answering, answering: open, open: told}

// move takes the diff to its next phase. Another one is a mistake of ours. The caller holds registry.mu.
func (d *Diff) move(to phase) {
	if next[d.phase] != to {
		panic(fmt.Sprintf("a diff goes from phase %d to %d", d.phase, to))
	}
	d.phase = to
}

// A sight is whether the view shows a diff.
type sight int

const (
	hidden  sight = iota
	visible       // View.Show returned nil
	gone          // View.Close has been or is being called
)

// ID is unique, also among companions, never reused, and safe in a URL.
func (d *Diff) ID() string { return d.id }

// Proposal is as it was opened.
func (d *Diff) Proposal() Proposal { return d.proposal }

// Owner is the session that opened the diff.
func (d *Diff) Owner() Owner { return d.owner }

// Label is the owner's, as it was when the diff was opened.
func (d *Diff) Label() string { return d.label }

// Opened is when.
func (d *Diff) Opened() time.Time { return d.opened }

// Text is the latest text of the proposal as the user edited it, with a
// version that grows by at least one at each change.
func (d *Diff) Text() (content string, version int) {
	d.registry.mu.Lock()
	defer d.registry.mu.Unlock()
	return d.text, d.version
}

// Now is the diff's state. Its texts belong together.
func (d *Diff) Now() State {
	d.registry.mu.Lock()
	defer d.registry.mu.Unlock()
	return d.now()
}

// now is Now with registry.mu held.
func (d *Diff) now() State {
	s := State{Text: d.text, Base: d.base, Seen: Seen{Text: d.version, Base: d.baseVersion}, Conflict: d.conflict}
	for _, other := range d.registry.diffs {
		if other != d && other.concerns(d.proposal.Path) && !d.proposal.Apart {
			s.Others++
		}
	}
	return s
}

// Ruled says whether a rule decides the diff as soon as its agent has its answer: no view shows it, and
// View.Close is not called. Watchers hear that it opens and is decided, as of every diff.
func (d *Diff) Ruled() bool {
	d.registry.mu.Lock()
	defer d.registry.mu.Unlock()
	return d.ruled
}

// Agreed is the file as the text was made for it: the base of State, but
// while there is a conflict.
func (d *Diff) Agreed() File {
	d.registry.mu.Lock()
	defer d.registry.mu.Unlock()
	return d.agreed
}

// newest says whether a view has the newest text: it was shown it, or made it. The caller holds registry.mu.
func (d *Diff) newest(seen Seen) bool {
	return seen.Text == d.version || seen.By != nil && seen.By == d.editor
}

// concerns says whether the proposal follows the file.
func (d *Diff) concerns(path string) bool { return d.proposal.Path == path && !d.proposal.Apart }

// Outcome is how the diff was decided; false while it is open.
func (d *Diff) Outcome() (Outcome, bool) {
	d.registry.mu.Lock()
	defer d.registry.mu.Unlock()
	if d.outcome == nil {
		return Outcome{}, false
	}
	return *d.outcome, true
}

// Ended is closed when the diff has its outcome.
func (d *Diff) Ended() <-chan struct{} { return d.end() }

// end is closed when the diff is settled. The caller does not hold registry.mu.
func (d *Diff) end() <-chan struct{} {
	d.registry.mu.Lock()
	defer d.registry.mu.Unlock()
	if d.settled == nil {
		d.settled = make(chan struct{})
		if d.outcome != nil {
			close(d.settled)
		}
	}
	return d.settled
}

// size is what the diff counts for against Options.MaxTotal, in bytes. An
// unedited text is the proposal's own memory. The caller holds registry.mu.
func (d *Diff) size() int64 {
	n := len(d.proposal.Old) + len(d.proposal.New)
	if d.text != d.proposal.New {
		n += len(d.text)
	}
	if d.base.Text != d.proposal.Old {
		n += len(d.base.Text)
	}
	return int64(n)
}
