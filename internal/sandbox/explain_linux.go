package sandbox

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/pollux-companion/pollux/internal/sandbox/inside"
	"github.com/pollux-companion/pollux/internal/sandbox/program"
)

// explain is Explain on Linux.
func (s *Sandbox) explain(p Policy, c Command) (*Plan, error) {
	prog, err := s.find(c)
	if err != nil {
		return nil, err
	}
	return s.describe(p, c, prog)
}

// describe is explain for a program that is already found.
func (s *Sandbox) describe(p Policy, c Command, prog *program.Program) (*Plan, error) {
	set, l, err := s.setupOf(p, c, prog)
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
		if m.Show != inside.ShowDir && m.Show != inside.ShowDev {
			plan.Paths = append(plan.Paths, PlanPath{accessOf(m), m.Target, cmp.Or(detailOf(m), l.notes[m.Target])})
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

// accessOf returns the access that a mount gives.
func accessOf(m inside.Mount) Access {
	switch m.Show {
	case inside.ShowScratch:
		return AccessPrivate
	case inside.ShowDevice:
		return AccessDevice
	case inside.ShowLink, inside.ShowHeld:
		return AccessLink
	case inside.ShowNothing, inside.ShowVoid:
		return AccessHidden
	case inside.ShowFile, inside.ShowCopy:
		return AccessGiven
	}
	if m.Write {
		return AccessWrite
	}
	return AccessRead
}

// detailOf returns the detail of a mount.
func detailOf(m inside.Mount) string {
	switch m.Show {
	case inside.ShowLink:
		return "→ " + m.Source
	case inside.ShowCopy:
		return "as it was checked, files: " + strconv.Itoa(len(m.Files))
	case inside.ShowBind:
		if m.Source != m.Target {
			return "from " + m.Source
		}
	}
	return ""
}
