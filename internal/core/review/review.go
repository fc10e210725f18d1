// Package review leads each diff from an agent's proposal to its single outcome.
// It knows neither how an editor shows a diff nor how an agent hears of the
// outcome: both stand behind the interfaces View and Owner.
package review

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pollux-companion/pollux/internal/core/text"
)

// Errors that callers react to.
var (
	// ErrSettled: the diff has its outcome already, or never was.
	ErrSettled = errors.New("this diff has been decided already")
	// ErrEmptied: the user emptied a proposal that was not empty; agents
	// ignore an empty text, so accepting it would write the proposal (SPEC F-8).
	ErrEmptied = errors.New("an emptied proposal cannot be accepted: the agent would ignore it and write its own text; reject it instead")
	// ErrReadOnly: the agent takes a proposal as it is or not at all; Proposal.ReadOnly says why.
	ErrReadOnly = errors.New("this proposal cannot be edited")
	// ErrNoDiff: the owner has no open diff of that key.
	ErrNoDiff = errors.New("no open diff for this file")
	// ErrDeclined: the user's policy leaves this diff to the agent's own terminal (SPEC F-11).
	ErrDeclined = errors.New("the user reviews this change in the terminal")
	// ErrTooMany and ErrTooBig: a bound of SPEC A-4.
	ErrTooMany = errors.New("too many diffs are open; decide some of them first")
	ErrTooBig  = errors.New("the text is too big to show")
	// ErrShut: the registry is closing.
	ErrShut = errors.New("the companion is shutting down")
	// ErrStale: the file or the proposal is newer than what the view has shown
	// (SPEC F-13). ErrFileChanged and ErrTextChanged are ErrStale, and say which.
	ErrStale       = errors.New("look at it again before you accept it")
	ErrFileChanged = fmt.Errorf("the file has changed since this was shown: %w", ErrStale)
	ErrTextChanged = fmt.Errorf("the proposal was edited elsewhere since this was shown: %w", ErrStale)
	// ErrConflict: the file has changed where the proposal changes it, and the
	// user has not said yet which of the two stands (SPEC F-13).
	ErrConflict      = errors.New("the file has changed where the proposal changes it; keep the proposal or take the file's text first")
	errNothingToTake = errors.New("the file has no text to take; reject the proposal, or keep it")
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
	// NewJSON is New as a JSON string with its quotes, where the agent sent it so; "" where it is not known. See Diff.JSON.
	NewJSON string
	// Title says for a person what it is and which session asked.
	Title string
	// Waits: the agent waits for the outcome, and asks in its terminal when there is none. So the end of the companion is no
	// refusal: the diff ends Withdrawn, with the user's text.
	Waits bool
	// Unwritten: nobody is expected to write the file when this is accepted.
	Unwritten bool
	// ReadOnly says in a sentence for a person why the text cannot be edited: the agent takes it as it is or not at all. "" where it
	// can be. Nothing changes such a text, a change of its file neither, which is a Conflict instead.
	ReadOnly string
	// Apart: Old is another text than the file's own, so that what becomes of
	// the file does not concern this proposal.
	Apart bool
}

// A File is what a path holds at one moment.
type File struct {
	Text   string // byte for byte; "" with a Problem
	Exists bool
	// Problem says why the text cannot be shown (it is binary, too big, a folder …); "" when it can.
	Problem string
}

// Files lets a registry look at the files that proposals are about. Its method
// is called from any goroutine, with no lock held, and must not wait for long.
type Files interface {
	Read(path string) File
}

// Seen names what a view has shown of a diff: the version of the proposal's
// text and that of the file beside it. Both begin at 0.
type Seen struct {
	Text, Base int
	// By is the view, as in Edit; nil for none. A view has seen what it edited itself, whatever Text says.
	By any
}

// An Edit is a text as the user has it now in one view.
type Edit struct {
	Text string
	// From is the version that the user had edited; nil for the newest. What
	// others have made of the proposal since then is merged.
	From *int
	// Was is the text that the user had edited, nil for that of From as far as
	// the registry still has it, which is so of a few small ones.
	Was *string
	// Unsure: a crash lies between Was and now, so that the registry may never have had it. What a merge leaves of
	// this text, or this text of the registry's, is told as Event.Lost where it is not all.
	Unsure bool
	// By is the view, for Event.By; comparable. It may be nil.
	By any
}

// A Conflict says that the file has changed where the proposal changes it.
type Conflict struct {
	// Reason is a sentence for a person, about the file, without its name.
	Reason string
	// Places are lines of the proposal; none where the file as a whole is in the way.
	Places []text.Conflict
}

// A State is a diff at one moment.
type State struct {
	Text string // of the proposal, as edited
	Base File   // what the proposal would replace
	Seen Seen   // their versions, without By
	// Conflict is nil where there is none. While there is one, the diff cannot
	// be accepted; see Registry.Resolve.
	Conflict *Conflict
	// Others are how many other proposals wait for the same file.
	Others int
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
	Content(ctx context.Context, d *Diff) (newest Edit, ok bool)
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

// An EventKind says what an Event is about.
type EventKind int

const (
	// Opened: the diff is open. It may be told once more to a watcher that came in between.
	Opened EventKind = iota
	// Edited: its text has another version, by the user in one view or by a merge.
	Edited
	// Rebased: its file has changed, or a conflict with it came or went.
	Rebased
	// Decided: it has its outcome.
	Decided
	// RulesChanged: the policy is another one. There is no Diff.
	RulesChanged
)

// An Event tells a watcher what happened. It says that something is newer, not
// what: the newest is what Diff.Now and Registry.Rules return.
type Event struct {
	Kind EventKind
	Diff *Diff // nil for RulesChanged
	// Outcome is set for Decided, and nil else.
	Outcome *Outcome
	// By is the view that an edit was made in, nil when it is not known.
	By any
	// Lost is a text that an edit replaced although its view had never seen it, or one that may not be
	// whole in what a merge after a crash has made of it; "" in nearly every case. The history keeps it.
	Lost string
}

// Options configure a Registry.
type Options struct {
	// View shows the diffs; without one every Open fails with ErrNoView.
	View View
	// Files looks at files; without it they are taken to stay as they were.
	Files Files
	// ShowTimeout is 5 s when 0; ContentTimeout 500 ms when 0 (SPEC F-4).
	ShowTimeout, ContentTimeout time.Duration
	// MaxPerOwner is 32 when 0, MaxProposal 16 MiB, MaxTotal 512 MiB (SPEC A-4); sizes in
	// bytes. MaxProposal holds for the old text, the proposal and the edited text
	// each, MaxTotal for all texts of all open diffs together.
	MaxPerOwner           int
	MaxProposal, MaxTotal int64
	// AlwaysAsk keeps rules from accepting what is proposed from now on: nobody would see it.
	AlwaysAsk bool
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
