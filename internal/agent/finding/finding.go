// Package finding is how pollux says what it has found out about one step of an agent's way to a companion: how it stands, why it
// matters, and what mends it.
package finding

import (
	"context"
	"errors"
)

// A Level says how bad a finding is.
type Level string

// The levels. With a Fault the agent does not connect with context and diffs.
const (
	OK      Level = "ok"
	Note    Level = "note"    // it is good to know
	Warning Level = "warning" // it works, and something else may not
	Fault   Level = "fault"
)

// A Finding is one step of an agent's way to a companion, and what it came to.
type Finding struct {
	ID    string `json:"id"` // a short name that stays: "port", "token", "workspace"
	Level Level  `json:"level"`
	What  string `json:"what"`
	// Why says why it matters; "" where all is well.
	Why string `json:"why,omitempty"`
	// Mend is the command that mends it, as it is typed into this shell, and nothing else; "" where no command does.
	Mend string `json:"mend,omitempty"`
	// Remark is what else there is to be said about mending it, for a person.
	Remark string `json:"remark,omitempty"`
	// Details are the steps behind it, a line each.
	Details []string `json:"details,omitempty"`
	// Fix is what pollux doctor --fix does about it.
	Fix Fix `json:"-"`
}

// A Fix is something safe that pollux doctor --fix does.
type Fix int

// The fixes.
const (
	None  Fix = iota
	Sweep     // remove the files of dead companions
	Mode      // switch the agent's search for companions on in its settings
)

// A Trial is one thing to try with a companion, as pollux conform does.
type Trial struct {
	// Name is stable, and begins with its number in the specification: "CC-5/no Origin".
	Name, About string
	// Try returns nil where all is well; an error that is ErrNoDiffs leaves it out.
	Try func(ctx context.Context, d Door) error
}

// A Door is where a companion lets an agent in.
type Door struct {
	Port int
	// Socket is the private one (package ownpipe's Name) of an agent that has one; "" else.
	Socket string
	Token  string
	Dir    string // a folder of the workspace, for files that are proposed
}

// ErrNoDiffs: the companion shows no diffs at the moment, so that what needs one cannot be tried.
var ErrNoDiffs = errors.New("the companion shows no diffs at the moment")
