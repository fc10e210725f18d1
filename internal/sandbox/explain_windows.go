package sandbox

// explain refuses, as Run does.
func (s *Sandbox) explain(Policy, Command) (*Plan, error) {
	return nil, windowsError()
}
