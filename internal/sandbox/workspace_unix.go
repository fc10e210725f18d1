//go:build unix

package sandbox

import (
	"fmt"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/permission"
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
