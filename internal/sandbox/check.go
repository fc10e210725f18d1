package sandbox

import (
	"context"
	"fmt"
	"os"

	"github.com/pollux-companion/pollux/internal/paths"
)

// A Report says what this machine can enforce.
type Report struct {
	// Enforced says that every policy can be enforced, with every layer.
	Enforced bool `json:"enforced"`
	// Reduced says that Options.AllowReduced would make a few policies possible.
	Reduced bool    `json:"reduced"`
	Layers  []Layer `json:"layers"`
	Summary string  `json:"summary"` // one sentence
	// Fixes are commands or sentences that help, the best first.
	Fixes []string `json:"fixes"`
}

// A Layer is one mechanism of the sandbox.
type Layer struct {
	Name    string `json:"name"`
	Present bool   `json:"present"`
	Detail  string `json:"detail"`
}

// Check finds out what this machine can enforce by building a sandbox. Reading settings would prove nothing.
func (s *Sandbox) Check(ctx context.Context) Report {
	r := s.report(ctx)
	if r.Fixes == nil {
		r.Fixes = []string{}
	}
	return r
}

// AppArmorProfile returns a profile that lets only this program make user namespaces, for systems that forbid them to
// programs without a profile (Ubuntu from 23.10 on).
func AppArmorProfile() string {
	return fmt.Sprintf(`# Lets pollux make user namespaces, which its sandbox is built of.
# Save as /etc/apparmor.d/pollux and load it: apparmor_parser -r /etc/apparmor.d/pollux
abi <abi/4.0>,
include <tunables/global>

profile pollux %q flags=(unconfined) {
  userns,

  include if exists <local/pollux>
}
`, self())
}

// self returns the path of this program's file.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return "/nonexistent" // the system does not tell, so the file cannot be protected
	}
	return paths.Real(path)
}
