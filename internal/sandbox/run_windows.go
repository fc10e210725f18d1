package sandbox

import "context"

// run refuses every policy. Without an administrator, Windows can limit what a program writes, but not what it reads
// or contacts.
func (s *Sandbox) run(context.Context, Policy, Command) (*Result, error) {
	return nil, windowsError()
}

// explain refuses, as Run does.
func (s *Sandbox) explain(Policy, Command) (*Plan, error) {
	return nil, windowsError()
}

// A tree is unused on Windows, where no plan is made.
type tree string

func windowsError() error {
	return &UnsupportedError{
		Feature: "namespaces or Seatbelt",
		Cause:   "Windows can keep a program of the user's from writing, but neither from reading files nor from the network, without an administrator's help",
		Fix:     "use pollux in WSL2, where the Linux sandbox works",
	}
}

func (s *Sandbox) report(ctx context.Context) Report {
	_, err := s.run(ctx, Policy{}, Command{})
	return Report{Summary: "No policy can be enforced on this machine: " + err.Error()}
}
