package control

import (
	"context"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
)

// reviewing is what a reviewer in another process needs of a companion. A process below an agent gets ErrFromAgent
// for every method that decides, changes a text or a file, or counts as looking.
type reviewing interface {
	// Attach counts the caller as somebody who looks at diffs, until detach.
	Attach() (detach func())
	// Watch returns the queue as soon as it differs from seen (at once for 0), or when ctx ends.
	Watch(ctx context.Context, seen uint64) Queue
	// Texts returns the texts that a diff was opened with; review.ErrSettled when it is not open.
	Texts(id string) (Texts, error)
	// Text returns a diff's text, as edited, and its version.
	Text(id string) (text string, version int, err error)
	// Edit records a diff's text as the user has it now, and returns its version. from is
	// the version that the user edited; nil for the newest.
	Edit(id, text string, from *int) (version int, err error)
	// Resolve ends a conflict with the proposal's text or, with theirs, the file's.
	Resolve(id string, seen Seen, theirs bool) error
	// SetRule adds a rule to the policy (SPEC F-11). A process asks for it that may decide.
	SetRule(rule review.Rule, process int)
	// History lists past proposals, newest first (SPEC F-12).
	History() ([]PastProposal, error)
	// PastTexts returns the texts of a past proposal; Final is "" when it was rejected.
	PastTexts(id string) (Texts, error)
	// Undo puts the old text back, if the file still holds the final one.
	Undo(id string) error
}

// A Queue is everything that waits for the user at one moment.
type Queue struct {
	// Version changes whenever something below has changed.
	Version uint64        `json:"version"`
	Diffs   []Diff        `json:"diffs"` // oldest first
	Rules   []review.Rule `json:"rules,omitempty"`
	// Sessions is how many CLIs are connected.
	Sessions int `json:"sessions"`
	// Sharing says in words who is told what the user looks at; "" when nobody is connected.
	Sharing string `json:"sharing,omitempty"`
	// Past grows when an entry is added to the history.
	Past uint64 `json:"past"`
	// Troubles are the problems that the user should see beside the proposals.
	Troubles []Trouble `json:"troubles,omitempty"`
	// Ended are the diffs that were decided last, and how; newest last.
	Ended []Ended `json:"ended,omitempty"`
}

// An Ended is a diff that was decided.
type Ended struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome"` // review.Kind's word
	Policy  bool   `json:"policy,omitempty"`
}

// Texts are the texts of a proposal, byte for byte.
type Texts struct {
	Old   string
	IsNew bool // there was no file
	New   string
	Final string // of a PastProposal only
	Base  int    // the version of Old; of an open diff only
}

// A PastProposal is one that was decided.
type PastProposal struct {
	ID       string    `json:"id"`
	Path     string    `json:"path"`
	Owner    string    `json:"owner"`
	At       time.Time `json:"at"`      // when it was decided
	Outcome  string    `json:"outcome"` // review.Kind's word
	Edited   bool      `json:"edited,omitempty"`
	Policy   bool      `json:"policy,omitempty"`
	Undoable bool      `json:"undoable,omitempty"` // it was not rejected
	Undone   bool      `json:"undone,omitempty"`   // it has been taken back
}

// A Proposal is what `pollux diff` proposes, or a keeper for an agent.
type Proposal struct {
	Path  string // absolute
	Old   string
	IsNew bool // there is no file
	New   string
	// For is the label of the keeper's session that proposes, and writes the file; "" for `pollux diff`. A process below an agent gets
	// ErrFromAgent for it.
	For string
	// Agents are the keeper's: they decide nothing about this proposal either.
	Agents Agents
	// ReadOnly is as in Diff.
	ReadOnly string
	// By is the process that asks. The server fills it in.
	By int
}

// An Answer is the outcome of a Proposal.
type Answer struct {
	Accepted bool
	Content  string // the final text, when Accepted
	Edited   bool   // it differs from the proposal
}

// On the wire texts are bytes, and so base64. JSON writes a "<" or a control
// character with six bytes, and a message would exceed its bound.
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
		Rule    review.Rule `json:"rule"`
		InAgent bool        `json:"inAgent,omitempty"`
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
		// Same says that Final equals New, and is not sent twice.
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

		For      string `json:"for,omitempty"`
		Agents   Agents `json:"agents,omitzero"`
		ReadOnly string `json:"readOnly,omitempty"`
		InAgent  bool   `json:"inAgent,omitempty"`
	}
	answerReply struct {
		Accepted bool   `json:"accepted"`
		Content  []byte `json:"content,omitempty"`
		Edited   bool   `json:"edited,omitempty"`
	}
	toldParams struct {
		Seen    string `json:"seen"`
		InAgent bool   `json:"inAgent,omitempty"`
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
