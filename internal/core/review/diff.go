package review

import (
	"fmt"
	"slices"
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
	restored bool // version 0 was in an earlier life; so since birth, and no state
	registry *Registry

	// Guarded by registry.mu:

	json    string // see JSON
	text    string
	version int
	earlier []earlier // some earlier texts, oldest first; see Registry.Edit
	editor  any       // the view that made the newest text
	// base is what the file holds now; baseVersion counts its changes. agreed is the
	// file as text was made for it: the same as base, except during a conflict.
	base, agreed File
	baseVersion  int
	conflict     *Conflict
	looked       uint64        // the number of the look that base comes from; an older look must not replace it
	outcome      *Outcome      // nil until settled, then never changed
	settled      chan struct{} // closed by settle; nil until somebody waits, see end
	phase        phase
	answered     chan struct{} // closed when phase leaves answering; nil until somebody waits
	told         chan struct{} // closed when Owner.Settled has returned; nil when nobody waits
	sight        sight
}

// A phase is how far a diff has come with its agent. It only moves forward, by move.
type phase int

const (
	opening   phase = iota // being shown; the agent has had no answer
	answering              // in deliver
	open                   // the agent has its answer and may hear of the outcome
	told                   // Owner.Settled has been or is being called
)

// next is the table of allowed moves. A diff that is withdrawn stays where it is: its agent hears no more of it.
var next = map[phase]phase{opening: answering, answering: open, open: told}

// move takes the diff to its next phase. Any other move is a bug. The caller holds registry.mu.
func (d *Diff) move(to phase) {
	if next[d.phase] != to {
		panic(fmt.Sprintf("a diff goes from phase %d to %d", d.phase, to))
	}
	d.phase = to
}

// announced says whether watchers were told that the diff is open. They are told when its agent is answered, or when the
// user decides before that. A diff that was withdrawn before its answer is never told. The caller holds registry.mu.
func (d *Diff) announced() bool {
	return d.phase != opening || d.outcome != nil && d.outcome.Kind != Withdrawn
}

// A sight says whether the view shows a diff.
type sight int

const (
	hidden  sight = iota
	visible       // View.Show returned nil
	gone          // View.Close has been or is being called
	ruled         // a rule accepts it, so that no view is asked to show it
)

// nextSight is the table of allowed moves. A diff that no view showed stays hidden, and one that is gone stays gone:
// so View.Close follows each Show once. A ruled one is never shown, and so never closed.
var nextSight = map[sight][]sight{hidden: {visible, ruled}, visible: {gone}}

// turn takes the diff to its next sight, and says whether it did. Show may return before the diff is settled or after,
// so a move that the table does not allow is no bug: the call comes too late, and does nothing. The caller holds registry.mu.
func (d *Diff) turn(to sight) bool {
	if !slices.Contains(nextSight[d.sight], to) {
		return false
	}
	d.sight = to
	return true
}

// ID names the diff. It is unique, also among companions, never reused, and safe in a URL.
func (d *Diff) ID() string { return d.id }

// Proposal returns the proposal as the agent made it, without the user's edits, and without NewJSON.
func (d *Diff) Proposal() Proposal { return d.proposal }

// JSON returns the proposal's text as the JSON string that its agent sent, while the diff is being shown for the first time; ""
// when it is not known. A view that passes it on need not encode megabytes again.
func (d *Diff) JSON() string {
	d.registry.mu.Lock()
	defer d.registry.mu.Unlock()
	return d.json
}

// Owner returns the session that opened the diff.
func (d *Diff) Owner() Owner { return d.owner }

// Label returns the owner's label, as it was when the diff was opened.
func (d *Diff) Label() string { return d.label }

// Opened returns when the diff was opened. A restored diff keeps its first time.
func (d *Diff) Opened() time.Time { return d.opened }

// Text returns the proposal as the user has edited it, and its version. The version
// grows by at least one with each change.
func (d *Diff) Text() (content string, version int) {
	d.registry.mu.Lock()
	defer d.registry.mu.Unlock()
	return d.text, d.version
}

// Now returns the diff's state at one moment: its texts and versions belong together.
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

// Ruled says whether a rule accepts the diff as soon as its agent has its answer. No view shows such a diff, and
// View.Close is not called for it. Watchers hear of it as of every diff.
func (d *Diff) Ruled() bool {
	d.registry.mu.Lock()
	defer d.registry.mu.Unlock()
	return d.sight == ruled
}

// Agreed returns the file that the text was made for. It is State.Base, except
// during a conflict.
func (d *Diff) Agreed() File {
	d.registry.mu.Lock()
	defer d.registry.mu.Unlock()
	return d.agreed
}

// newest says whether a view has the newest text: the view was shown it, or made it. The second is so for a view that
// edits and accepts at once, before it has heard the number of its own edit. The caller holds registry.mu.
func (d *Diff) newest(seen Seen) bool {
	return seen.Text == d.version || seen.By != nil && seen.By == d.editor
}

// concerns says whether the proposal follows changes of the file.
func (d *Diff) concerns(path string) bool { return d.proposal.Path == path && !d.proposal.Apart }

// Outcome returns how the diff was decided; false while it is open.
func (d *Diff) Outcome() (Outcome, bool) {
	d.registry.mu.Lock()
	defer d.registry.mu.Unlock()
	if d.outcome == nil {
		return Outcome{}, false
	}
	return *d.outcome, true
}

// Ended returns a channel that is closed when the diff is settled.
func (d *Diff) Ended() <-chan struct{} { return d.end() }

// end is Ended. The channel is made on first use, so that a diff for which nobody
// waits costs none. The caller does not hold registry.mu.
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

// size is what the diff counts against Options.MaxTotal, in bytes. An unedited
// text counts nothing: it shares the proposal's memory. The caller holds registry.mu.
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
