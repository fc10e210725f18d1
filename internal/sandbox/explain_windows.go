package sandbox

import "context"

// explain refuses, as Run does.
func (s *Sandbox) explain(context.Context, Policy, Command) (*Plan, error) {
	return nil, windowsError()
}
