//go:build unix

package sandbox

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox/program"
)

// workspace returns the canonical workspace folder. If that holds the whole home folder, the level "workspace" is
// refused (SPEC E-2).
func (s *Sandbox) workspace(p Policy, c Command) (string, error) {
	if c.Workspace == "" {
		if p.Read == permission.Workspace || p.Write == permission.Workspace {
			return "", policyError("the level \"workspace\" needs a workspace folder")
		}
		return "", nil
	}
	dir, err := s.tree.evalSymlinks(c.Workspace)
	if err == nil {
		if !s.tree.isDir(dir) {
			err = fmt.Errorf("%q is not a folder", dir)
		}
	}
	if err != nil {
		return "", fmt.Errorf("%w: the workspace: %w", ErrPolicy, err)
	}
	if dir != "/" && (s.home == "" || !paths.Within(dir, s.home)) {
		return dir, nil
	}
	if p.Read == permission.Workspace || p.Write == permission.Workspace {
		return "", policyError("the folder %q is no workspace: it holds your whole home folder; work in a folder of the project's own", dir)
	}
	return "", nil
}

// find looks up the program of a command.
func (s *Sandbox) find(c Command) (*program.Program, error) {
	hidden := slices.DeleteFunc([]string{s.home, c.Workspace}, func(dir string) bool { return dir == "" })
	p, err := program.Find(program.Search{Name: c.Args[0], Dir: cmp.Or(c.Dir, c.Workspace, "/"), Guarded: hidden, Shown: systemFolders()})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCommand, err)
	}
	return p, nil
}
