package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent/gemini/clisettings"
	"github.com/pollux-companion/pollux/internal/agent/qwen"
	"github.com/pollux-companion/pollux/internal/relay"
	"github.com/pollux-companion/pollux/internal/settingsfile"
)

// A setupAgent is what setup needs to know about one agent.
type setupAgent struct {
	name, label, command string
	program              settingsfile.Program
	// path names the agent's own settings of this user; switches are the keys in it that setup switches on.
	path     func(getenv func(string) string) (string, error)
	switches []string
	// later says what an agent needs that runs already.
	later string
	// install and remove are about the file by which the agent starts pollux relay.
	install func(program string, dryRun bool) (relay.Installed, error)
	remove  func(dryRun bool) (relay.Installed, error)
	bridge  bool // it has a bridge to extensions
}

// setupAgents are the agents that setup knows. The first one is set up where none is found.
func setupAgents() []setupAgent {
	return []setupAgent{
		{
			name: "gemini", label: "Gemini CLI", command: "gemini", program: clisettings.Program,
			path: clisettings.PathIn, switches: clisettings.Switches(), later: "a CLI that runs already needs /ide enable",
			install: relay.Install, remove: relay.Remove, bridge: true,
		},
		{
			name: "qwen", label: qwen.Label, command: qwen.Command, program: qwen.Program,
			path: qwen.SettingsPath, switches: qwen.Switches(), later: "a Qwen Code that runs already has to be started again",
			install: relay.InstallQwen, remove: relay.RemoveQwen,
		},
	}
}

// installed says whether the agent is on this machine: its command is in PATH, or it has kept settings here.
func (s setupAgent) installed() bool {
	if _, err := exec.LookPath(s.command); err == nil {
		return true
	}
	path, err := s.path(os.Getenv)
	if err != nil {
		return false
	}
	info, err := os.Stat(filepath.Dir(path))
	return err == nil && info.IsDir()
}

// agentsFor chooses the agents that setup is about: the named ones; to undo, all; else those that are installed.
func agentsFor(names []string, undo bool) ([]setupAgent, error) {
	all := setupAgents()
	if len(names) == 0 && undo {
		return all, nil
	}
	if len(names) == 0 {
		found := slices.DeleteFunc(setupAgents(), func(s setupAgent) bool { return !s.installed() })
		if len(found) == 0 {
			return all[:1], nil
		}
		return found, nil
	}
	var chosen []setupAgent
	for _, name := range names {
		i := slices.IndexFunc(all, func(s setupAgent) bool { return s.name == name })
		if i < 0 {
			return nil, usageError{fmt.Errorf("%q is no agent that setup knows; these are: %s", name, strings.Join(setupAgentNames(), ", "))}
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func setupAgentNames() (names []string) {
	for _, s := range setupAgents() {
		names = append(names, s.name)
	}
	return names
}
