package control

import (
	"context"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
)

// Reviewing is what a reviewer in another process needs of a companion. What decides, changes a text or a file, or
// counts as looking is refused to a process below an agent (ErrFromAgent).
type Reviewing interface {
	// Attach counts the caller among those who look at diffs, until detach.
	Attach() (detach func())
	// Watch returns the queue as soon as it is another than seen (0: at once), or when ctx ends.
	Watch(ctx context.Context, seen uint64) Queue
	// Texts returns the texts that a diff was opened with; review.ErrSettled when it is not open.
	Texts(id string) (Texts, error)
	// Text is a diff's text as it is edited now.
	Text(id string) (text string, version int, err error)
	// Edit records the text as the user has it now, who had edited the version
	// from (nil: the newest), and returns its version.
	Edit(id, text string, from *int) (version int, err error)
	// Resolve ends a conflict with the proposal's text or, with theirs, the file's.
	Resolve(id string, seen Seen, theirs bool) error
	// SetRule adds a rule to the policy (SPEC F-11).
	SetRule(review.Rule)
	// History lists past proposals, newest first (SPEC F-12).
	History() ([]Entry, error)
	// Entry is one of them; its Final is "" when it was rejected.
	Entry(id string) (Texts, error)
	// Undo puts the old text back, if the file still holds the final one.
	Undo(id string) error
}

// A Queue is what waits for the user, at one moment.
type Queue struct {
	// Version is another one whenever something of the below has changed.
	Version uint64 `json:"version"`
	Diffs   []Diff `json:"diffs"` // oldest first
	Rules   []Rule `json:"rules,omitempty"`
	// Sessions is how many CLIs are connected.
	Sessions int `json:"sessions"`
	// Past grows when an entry is added to the history.
	Past uint64 `json:"past"`
	// Troubles are what the user should know of while proposals wait, or none do.
	Troubles []Trouble `json:"troubles,omitempty"`
	// Ended are the last diffs that were decided, and how, newest last.
	Ended []Ended `json:"ended,omitempty"`
}

// An Ended is a diff that has its outcome.
type Ended struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome"` // review.Kind's word
	Policy  bool   `json:"policy,omitempty"`
}

// A Rule is one line of the user's policy.
type Rule = review.Rule

// Texts are those of a proposal, byte for byte.
type Texts struct {
	Old   string
	IsNew bool // there was no file
	New   string
	Final string // of an Entry
	Base  int    // the version of Old, of an open diff
}

// An Entry is one proposal of the past.
type Entry struct {
	ID       string    `json:"id"`
	Path     string    `json:"path"`
	Owner    string    `json:"owner"`
	At       time.Time `json:"at"`      // of the outcome
	Outcome  string    `json:"outcome"` // review.Kind's word
	Edited   bool      `json:"edited,omitempty"`
	Policy   bool      `json:"policy,omitempty"`
	Undoable bool      `json:"undoable,omitempty"` // it was not rejected
	Undone   bool      `json:"undone,omitempty"`   // it has been taken back
}

// A Proposal is what `pollux diff` asks about.
type Proposal struct {
	Path  string // absolute; the file that it is about
	Old   string
	IsNew bool // there is no file
	New   string
}

// An Answer is the outcome of a Proposal.
type Answer struct {
	Accepted bool
	Content  string // the final text, when Accepted
	Edited   bool   // it is not the proposal any more
}

// On the wire texts are bytes, that is base64: JSON writes a "<" or a control
// character with six, and a message would exceed its bound.
type (
	idParams struct {
		ID      string `json:"id"`
		InAgent bool   `json:"inAgent,omitempty"`
	}
	editParams struct {
		ID      string `json:"id"`
		Text    []byte `json:"text"`
		From    *int   `json:"from,omitempty"`
		InAgent bool   `json:"inAgent,omitempty"`
	}
	editReply struct {
		Version int `json:"version"`
	}
	resolveParams struct {
		ID      string `json:"id"`
		Seen    Seen   `json:"seen"`
		Theirs  bool   `json:"theirs"`
		InAgent bool   `json:"inAgent,omitempty"`
	}
	ruleParams struct {
		Rule    Rule `json:"rule"`
		InAgent bool `json:"inAgent,omitempty"`
	}
	agentParams struct {
		InAgent bool `json:"inAgent,omitempty"`
	}
	watchParams struct {
		Seen uint64 `json:"seen"`
	}
	textsReply struct {
		Old   []byte `json:"old,omitempty"`
		IsNew bool   `json:"isNew,omitempty"`
		New   []byte `json:"new,omitempty"`
		Final []byte `json:"final,omitempty"`
		// Same says that Final is New, and not sent twice.
		Same bool `json:"same,omitempty"`
		Base int  `json:"base,omitempty"`
	}
	textReply struct {
		Text    []byte `json:"text"`
		Version int    `json:"version"`
	}
	proposeParams struct {
		Path  string `json:"path"`
		Old   []byte `json:"old"`
		IsNew bool   `json:"isNew,omitempty"`
		New   []byte `json:"new"`
	}
	answerReply struct {
		Accepted bool   `json:"accepted"`
		Content  []byte `json:"content,omitempty"`
		Edited   bool   `json:"edited,omitempty"`
	}
	toldParams struct {
		Seen string `json:"seen"`
	}
	toldReply struct {
		Params string `json:"params"`
	}
)

func (t Texts) wire() textsReply {
	r := textsReply{Old: []byte(t.Old), IsNew: t.IsNew, New: []byte(t.New), Same: t.Final == t.New, Base: t.Base}
	if !r.Same {
		r.Final = []byte(t.Final)
	}
	return r
}

func (r textsReply) texts() Texts {
	t := Texts{Old: string(r.Old), IsNew: r.IsNew, New: string(r.New), Final: string(r.Final), Base: r.Base}
	if r.Same {
		t.Final = t.New
	}
	return t
}
