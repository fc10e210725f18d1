package setup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/cli/console"
)

// installed reports whether an agent is on this machine: its command is in PATH, or it has settings here.
func installed(a agent.Agent) bool {
	if _, err := exec.LookPath(a.Command); err == nil {
		return true
	}
	path, err := a.Settings.Path(os.Getenv)
	if err != nil {
		return false
	}
	info, err := os.Stat(filepath.Dir(path))
	return err == nil && info.IsDir()
}

// agentsFor returns the agents to set up: the named ones, or for undo all, or else the installed ones. If none is
// installed, it returns the first agent.
func agentsFor(names []string, undo bool) ([]agent.Agent, error) {
	all := agent.All()
	if len(names) == 0 && undo {
		return all, nil
	}
	if len(names) == 0 {
		found := slices.DeleteFunc(slices.Clone(all), func(a agent.Agent) bool { return !installed(a) })
		if len(found) == 0 {
			return all[:1], nil
		}
		return found, nil
	}
	var chosen []agent.Agent
	for _, name := range names {
		a, ok := agent.Find(name)
		if !ok {
			return nil, console.Usage(fmt.Errorf("%q is no agent that setup knows; these are: %s", name, strings.Join(agent.Names(nil), ", ")))
		}
		chosen = append(chosen, a)
	}
	return chosen, nil
}
