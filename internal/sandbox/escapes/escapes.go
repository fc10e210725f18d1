// Package escapes is the list of known ways out of a sandbox, each as something
// to try: the tests of package sandbox try them, and so does a user on their own machine (pollux sandbox --self-test).
package escapes

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/permission"
)

// A Kind is what an escape is after.
type Kind string

// The kinds.
const (
	Files     Kind = "files"
	Processes Kind = "processes"
	Kernel    Kind = "kernel"
	Network   Kind = "network"
	Limits    Kind = "limits"
	Programs  Kind = "programs" // code that runs outside
	Later     Kind = "later"    // code that somebody else runs later
)

// A Proof says for whom an escape works without a sandbox.
type Proof int

// The proofs.
const (
	ForAll    Proof = iota
	ForRoot         // for nobody else
	ForNobody       // harmful to try, or not offered by every kernel
)

// An Escape is one way out of a sandbox. It is a probe, which is this very program inside, or a play.
type Escape struct {
	Name string
	Kind Kind
	// Outside says for whom it works without a sandbox, where it is harmless; then its failure inside means something.
	Outside Proof
	// Play is nil for a probe.
	Play *Play

	most bool         // tried under the policy that gives most only: what holds then holds under less
	try  func() error // nil when it got out
}

// A Play is an escape that takes more than one process.
type Play struct {
	// Policy is what it has.
	Policy permission.Permissions
	// Args are the command, with $WORKSPACE for the prey's.
	Args []string
	// Limit is the kind of the limit that must end it; "" when it ends by itself.
	Limit string
	// Memory, Output and Disk limit it, in bytes, and Seconds by the clock; 0 is the sandbox's own.
	Memory, Output, Disk int64
	Seconds              int
	// Held looks afterwards whether it was kept in; nil when the limit says it all.
	Held func(p *Prey) error
}

// The exit codes of a probe.
const (
	Out     = 0 // it got out
	Held    = 10
	unknown = 11
)

// flag makes this program a probe, as its first argument of two, where the environment has the prey's variables.
const flag = "-probe"

// Probe is among the first calls of every main that plays escapes. In the process of one it does not return.
func Probe() {
	if len(os.Args) != 3 || os.Args[1] != flag || env("SECRET") == "" {
		return
	}
	for _, e := range All() {
		if e.Name != os.Args[2] || e.try == nil {
			continue
		}
		if err := e.try(); err != nil {
			fmt.Println(err)
			os.Exit(Held)
		}
		os.Exit(Out)
	}
	os.Exit(unknown)
}

// Command is the command line of a probe, with the path of this program.
func (e *Escape) Command(program string) []string { return []string{program, flag, e.Name} }

// Policies are what a probe must not get out of: with nothing, reading the workspace, and
// writing to it, except for what that allows.
func (e *Escape) Policies() []permission.Permissions {
	if e.most {
		return []permission.Permissions{{Write: permission.Workspace}}
	}
	all := []permission.Permissions{{}, {Read: permission.Workspace}}
	switch e.Name {
	case "write to the workspace", "change the times of a file of the workspace", "make the workspace writable":
		return all
	}
	return append(all, permission.Permissions{Write: permission.Workspace})
}

// env is what a prey tells a probe.
func env(name string) string { return os.Getenv("PROBE_" + name) }

// absent says that a file of the prey's must not be there.
func absent(name string) func(*Prey) error {
	return func(p *Prey) error {
		if _, err := os.Lstat(filepath.Join(p.Home, name)); err == nil {
			return fmt.Errorf("%s was made", name)
		}
		return nil
	}
}
