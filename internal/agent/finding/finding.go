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

// A Finding is the result of one step of an agent's way to a companion.
type Finding struct {
	ID    string `json:"id"` // a short name that stays: "port", "token", "workspace"
	Level Level  `json:"level"`
	What  string `json:"what"`
	// Why says why it matters; "" when all is well.
	Why string `json:"why,omitempty"`
	// Mend is the command that mends it, exactly as a user types it into this shell; "" when no command does.
	Mend string `json:"mend,omitempty"`
	// Remark is further advice for a person.
	Remark string `json:"remark,omitempty"`
	// Details are the facts behind it, a line each.
	Details []string `json:"details,omitempty"`
	// Fix is the repair that pollux doctor --fix makes.
	Fix Fix `json:"-"`
}

// A Fix is a safe repair of pollux doctor --fix.
type Fix int

// The fixes.
const (
	None  Fix = iota
	Sweep     // remove the files of dead companions
	Mode      // switch the agent's search for companions on in its settings
)

// A Trial is one check of a companion by pollux conform.
type Trial struct {
	// Name stays the same between releases, and begins with its number in the specification: "CC-5/no Origin".
	Name, About string
	// Try returns nil when all is well. An ErrNoDiffs counts as left out.
	Try func(ctx context.Context, d Door) error
}

// A Door is the address at which a companion lets an agent in.
type Door struct {
	Port int
	// Socket is the agent's private socket (package ownpipe's Name); "" for an agent without one.
	Socket string
	Token  string
	Dir    string // a folder of the workspace, for proposed files
}

// ErrNoDiffs: the companion shows no diffs at the moment, so checks that need one cannot run.
var ErrNoDiffs = errors.New("the companion shows no diffs at the moment")
