package sandbox

import (
	"strconv"
	"strings"
)

// explain is Explain on Linux: the setup, in words.
func (s *Sandbox) explain(p Policy, c Command) (*Plan, error) {
	prog, err := s.find(c)
	if err != nil {
		return nil, err
	}
	return s.describe(p, c, prog)
}

// describe is explain for a program that was found.
func (s *Sandbox) describe(p Policy, c Command, prog *program) (*Plan, error) {
	set, l, err := s.planFor(p, c, prog)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Program: set.Path, Dir: set.Dir, Elsewhere: AccessNone}
	if set.Root.Host {
		plan.Elsewhere = AccessRead
	}
	if set.Root.Write {
		plan.Elsewhere = AccessWrite
	}
	for _, m := range set.Mounts {
		if m.Show != showDir && m.Show != showDev {
			plan.Paths = append(plan.Paths, PlanPath{m.access(), m.Target, or(m.detail(), l.notes[m.Target])})
		}
	}
	plan.Paths = append(plan.Paths, PlanPath{AccessGiven, "/proc", "of its own processes, read-only"})
	for _, w := range l.watched.Paths {
		if w.Link == "" { // links are among the mounts
			plan.Paths = append(plan.Paths, PlanPath{AccessWatched, w.Path, ""})
		}
	}
	if w := l.watched; w.Root != "" {
		plan.Paths = append(plan.Paths, PlanPath{AccessWatched, w.Root + "/**/", strings.Join(protectedNames(), " ")})
	}
	for _, v := range set.Env {
		name, _, _ := strings.Cut(v, "=")
		plan.Environment = append(plan.Environment, name)
	}
	return plan, nil
}

// access is a mount in a plan's terms.
func (m mount) access() Access {
	switch m.Show {
	case showScratch:
		return AccessPrivate
	case showDevice:
		return AccessDevice
	case showLink, showHeld:
		return AccessLink
	case showNothing, showVoid:
		return AccessHidden
	case showFile, showCopy:
		return AccessGiven
	}
	if m.Write {
		return AccessWrite
	}
	return AccessRead
}

// detail is what else there is to say of a mount.
func (m mount) detail() string {
	switch m.Show {
	case showLink:
		return "→ " + m.Source
	case showCopy:
		return "as it was checked, files: " + strconv.Itoa(len(m.Files))
	case showBind:
		if m.Source != m.Target {
			return "from " + m.Source
		}
	}
	return ""
}
