package sandbox

import "cmp"

// explain is Explain on macOS: it lists the profile's paths.
func (s *Sandbox) explain(p Policy, c Command) (*Plan, error) {
	prog, err := s.find(c)
	if err != nil {
		return nil, err
	}
	workspace, err := s.workspace(p, c)
	if err != nil {
		return nil, err
	}
	const private = "/private/var/folders"
	b := seatbeltFor(p, s.home, workspace, private, append(prog.ReadOnly, c.ReadOnly...), s.named(p))
	plan := &Plan{Program: prog.Path, Dir: cmp.Or(workspace, private), Elsewhere: AccessNone,
		Environment: []string{"PATH", "HOME", "TMPDIR", "LANG", "TERM", "SHELL"}}
	for _, group := range []struct {
		access Access
		detail string
		paths  []string
	}{
		{AccessWrite, "", b.write}, {AccessRead, "", b.read}, {AccessRead, "", systemReads()}, {AccessRead, "", systemFiles()},
		{AccessRead, "protected", b.protected}, {AccessHidden, "refused", b.secrets},
	} {
		for _, path := range group.paths {
			if path == private {
				plan.Paths = append(plan.Paths, PlanPath{AccessPrivate, path, "one folder in it, removed afterwards"})
				continue
			}
			plan.Paths = append(plan.Paths, PlanPath{group.access, path, group.detail})
		}
	}
	plan.Notes = []string{"macOS limits neither the memory nor the number of processes"}
	return plan, nil
}
