// Package review leads each diff from an agent's proposal to its single
// outcome. It knows neither how an editor shows a diff nor how an agent hears
// of the outcome; both stand behind the interfaces View and Owner.
package review

import (
	"context"
	"errors"
	"time"
)

// Errors that callers react to.
var (
	// ErrSettled: the diff has its outcome already, or never was.
	ErrSettled = errors.New("this diff has been decided already")
	// ErrEmptied: the user emptied a proposal that was not empty; agents
	// ignore an empty text, so accepting it would write the proposal (SPEC F-8).
	ErrEmptied = errors.New("an emptied proposal cannot be accepted: the agent would ignore it and write its own text; reject it instead")
	// ErrNoDiff: the owner has no open diff of that key.
	ErrNoDiff = errors.New("no open diff for this file")
	// ErrDeclined: the user's policy leaves this diff to the agent's own terminal (SPEC F-11).
	ErrDeclined = errors.New("the user reviews this change in the terminal")
	// ErrTooMany and ErrTooBig: a bound of SPEC A-4.
	ErrTooMany = errors.New("too many diffs are open; decide some of them first")
	ErrTooBig  = errors.New("the text is too big to show")
	// ErrShut: the registry is closing.
	ErrShut = errors.New("the companion is shutting down")
	// ErrNoView: no editor shows diffs, or the one there is did not in time.
	ErrNoView = errors.New("no editor shows the diff")
)

// A Kind says how a diff ended.
type Kind int

const (
	// Accepted: the user took the content of the outcome.
	Accepted Kind = iota + 1
	// Rejected: the user refused, or the editor or companion went away.
	Rejected
	// Withdrawn: the owner took the diff back, replaced it or has gone.
	Withdrawn
)

// String is the word for a person and for the history.
func (k Kind) String() string {
	switch k {
	case Accepted:
		return "accepted"
	case Rejected:
		return "rejected"
	case Withdrawn:
		return "withdrawn"
	default:
		return "undecided"
	}
}

// An Outcome is the one end of a diff.
type Outcome struct {
	Kind    Kind
	Content string // the final text, byte for byte; for Accepted and Withdrawn
	Edited  bool   // Content differs from the proposal
	// Policy is set when a policy of the user's decided, not the user at this diff.
	Policy bool
}

// A Proposal is what an agent wants to write.
type Proposal struct {
	// Key names the diff among its owner's, as the agent spelled it (Gemini: the path).
	Key string
	// Path is the absolute path of the file.
	Path string
	// Old is the file's text now, "" with IsNew when there is none.
	Old   string
	IsNew bool
	New   string
	// Title says for a person what it is and which session asked.
	Title string
}

// A View shows diffs: an editor. Calls may come from several goroutines; none
// is made while the registry holds a lock. A call that panics counts as an error.
type View interface {
	// Show opens the diff and returns when it is visible, or says why it
	// cannot be, leaving nothing visible then. Its ctx has a deadline of
	// Options.ShowTimeout, and ends when the diff is settled meanwhile. The
	// user may decide the diff before Show has returned.
	Show(ctx context.Context, d *Diff) error
	// Close takes the view away; the diff is settled. It is called exactly
	// once for each Show that returned nil, after it. It must not block.
	Close(d *Diff, o Outcome)
	// Content asks for the newest text, for an owner that withdraws.
	// ok is false when the registry's latest is all there is. Its ctx has
	// a deadline of Options.ContentTimeout.
	Content(ctx context.Context, d *Diff) (content string, ok bool)
}

// A PromptView is a View that has nothing to wait for: it is asked on the
// goroutine of Registry.Open, which saves a call a goroutine, a timer, and the
// changes between them. That is half of what a small diff costs.
type PromptView interface {
	View
	// ShowNow is called instead of Show. Like Close it must not block.
	ShowNow(d *Diff) error
}

// An Owner is an agent's session. Its dynamic type must be comparable, as a
// pointer is: owners are told apart by ==.
type Owner interface {
	// Label names the session for a person ("Gemini CLI #2"). A registry
	// takes it once, when a diff is opened.
	Label() string
	// Settled is called exactly once for each of the owner's diffs that
	// ends Accepted or Rejected, and never before the deliver of
	// Registry.Open has returned. A diff that the owner withdrew, replaced
	// or left behind is not mentioned. It must not block.
	Settled(d *Diff, o Outcome)
}

// An Event tells a watcher what happened to a diff.
type Event struct {
	Diff *Diff
	// Outcome is nil while the diff is open (it was opened or its text changed).
	Outcome *Outcome
}

// Options configure a Registry.
type Options struct {
	// View shows the diffs; without one every Open fails with ErrNoView.
	View View
	// ShowTimeout is 5 s when 0; ContentTimeout 500 ms when 0 (SPEC F-4).
	ShowTimeout, ContentTimeout time.Duration
	// MaxPerOwner is 32 when 0, MaxProposal 16 MiB, MaxTotal 512 MiB (SPEC A-4); sizes in
	// bytes. MaxProposal holds for the old text, the proposal and the edited text
	// each, MaxTotal for all texts of all open diffs together.
	MaxPerOwner           int
	MaxProposal, MaxTotal int64
}

func (o Options) withDefaults() Options {
	setDefault(&o.ShowTimeout, 5*time.Second)
	setDefault(&o.ContentTimeout, 500*time.Millisecond)
	setDefault(&o.MaxPerOwner, 32)
	setDefault(&o.MaxProposal, 16<<20)
	setDefault(&o.MaxTotal, 512<<20)
	return o
}

func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}
