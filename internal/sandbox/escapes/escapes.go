// Package escapes lists known ways out of a sandbox, each as something to try. The tests of package sandbox try them,
// and so can users on their own machine (pollux sandbox --self-test).
package escapes

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/permission"
)

// A Kind is what an escape tries to reach.
type Kind string

// The kinds.
const (
	files     Kind = "files"
	processes Kind = "processes"
	Kernel    Kind = "kernel"
	Network   Kind = "network"
	limits    Kind = "limits"
	programs  Kind = "programs" // code that runs outside the sandbox
	later     Kind = "later"    // code that somebody else runs later
)

// A Proof says who can do it without a sandbox.
type Proof int

// The proofs.
const (
	forAll    Proof = iota
	forRoot         // only for root
	forNobody       // harmful to try, or not offered by every kernel
)

// An Escape is one way out of a sandbox: a probe, which runs this program inside, or a play.
type Escape struct {
	Name string
	Kind Kind
	// Outside says who can do it without a sandbox. If it works there, its failure inside proves something.
	Outside Proof
	// Play is nil for a probe.
	Play *Play

	most bool         // tried only under the policy that allows most; what holds there holds under less
	try  func() error // returns nil if it got out
}

// A Play is an escape that takes more than one process.
type Play struct {
	// Policy is the policy of its sandbox.
	Policy permission.Permissions
	// Args are the command. $WORKSPACE stands for the prey's workspace.
	Args []string
	// Limit is the kind of limit that must end the command; "" if it ends by itself.
	Limit string
	// Memory, Output and Disk are its limits in bytes, Seconds the time limit; 0 means the sandbox's default.
	Memory, Output, Disk int64
	Seconds              int
	// Held checks afterwards whether the sandbox kept it in; nil if the limit proves that.
	Held func(p *Prey) error
}

// The exit codes of a probe.
const (
	Out     = 0 // it got out
	Held    = 10
	unknown = 11
)

// flag is the first of two arguments that make this program a probe, if the environment has the prey's variables.
const flag = "-probe"

// Probe must be among the first calls of every main that plays escapes. In a probe's process it does not return.
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

// Command returns the command line of a probe; program is the path of this program.
func (e *Escape) Command(program string) []string { return []string{program, flag, e.Name} }

// Policies returns the policies that must keep a probe in: nothing, read the workspace, write it. What a policy
// allows is left out.
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

// env returns a variable that the prey set for its probes.
func env(name string) string { return os.Getenv("PROBE_" + name) }

// absent returns a check that a file of the prey does not exist.
func absent(name string) func(*Prey) error {
	return func(p *Prey) error {
		if _, err := os.Lstat(filepath.Join(p.Home, name)); err == nil {
			return fmt.Errorf("%s was made", name)
		}
		return nil
	}
}
