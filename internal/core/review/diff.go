package review

import "time"

// A Diff is one open proposal, from Registry.Open to its outcome. Its methods
// may be called from any goroutine, also after the outcome.
type Diff struct {
	id       string
	owner    Owner
	label    string // of the owner
	proposal Proposal
	opened   time.Time
	registry *Registry

	// Guarded by registry.mu:

	text    string
	version int
	outcome *Outcome      // nil until settled, then never changed
	settled chan struct{} // closed by settle; nil until somebody waits, see end
	phase   phase
	// announced: watchers have been told of it.
	// shown: View.Show returned nil; closed: View.Close has been or is being called.
	// told: Owner.Settled has been or is being called.
	announced, shown, closed, told bool
}

// A phase is how far Registry.Open has come with a diff.
type phase int

const (
	opening   phase = iota // being shown; the agent has had no answer
	answering              // in deliver
	open                   // the agent has its answer and may hear of the outcome
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

// Outcome is how the diff was decided; false while it is open.
func (d *Diff) Outcome() (Outcome, bool) {
	d.registry.mu.Lock()
	defer d.registry.mu.Unlock()
	if d.outcome == nil {
		return Outcome{}, false
	}
	return *d.outcome, true
}

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
	return int64(n)
}
