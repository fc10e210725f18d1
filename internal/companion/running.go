package companion

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// running is where agents with sessions read settings of their own, by the agent's name.
type running struct {
	folders map[string][]string // in which they run
	files   map[string][]string // that their environment names
}

// An agentProcess is a process of one agent.
type agentProcess struct {
	agent string
	pid   int
}

// deniers are the agents whose own settings keep files from them (SPEC C-8).
func (c *Companion) deniers() []workspace.Denier {
	ds := agent.Deniers(os.Getenv)
	for i, d := range ds {
		ds[i].Folders = func() []string { return c.runs().folders[d.Agent] }
		ds[i].Owned = func() []string { return c.runs().files[d.Agent] }
	}
	return ds
}

// runs returns what the last lookRunning has found.
func (c *Companion) runs() running {
	if now := c.running.Load(); now != nil {
		return *now
	}
	return running{}
}

// lookRunning finds out where the agents of the sessions read their settings.
func (c *Companion) lookRunning() {
	now := running{map[string][]string{}, map[string][]string{}}
	looked := map[agentProcess]bool{} // a process may have many sessions
	for _, s := range c.everySession() {
		one := agentProcess{s.Agent, s.PID}
		if looked[one] {
			continue
		}
		looked[one] = true
		if dir, err := proc.Dir(s.PID); err == nil {
			add(now.folders, s.Agent, dir)
		}
		if env, err := proc.Environ(s.PID); err == nil {
			add(now.files, s.Agent, ownFiles(s.Agent, env)...)
		}
	}
	was := c.running.Swap(&now)
	if was == nil || !maps.EqualFunc(was.folders, now.folders, slices.Equal[[]string]) || !maps.EqualFunc(was.files, now.files, slices.Equal[[]string]) {
		c.store.Touch()
	}
}

// add adds what is new to a list.
func add(lists map[string][]string, name string, values ...string) {
	for _, value := range values {
		if !slices.Contains(lists[name], value) {
			lists[name] = append(lists[name], value)
		}
	}
}

// ownFiles returns the settings files that an agent with this environment, as NAME=value, reads everywhere.
func ownFiles(name string, environ []string) (files []string) {
	getenv := func(variable string) string {
		for _, one := range environ {
			if value, ok := strings.CutPrefix(one, variable+"="); ok {
				return value
			}
		}
		return ""
	}
	for _, d := range agent.Deniers(getenv) {
		if d.Agent == name && d.Own != nil {
			files = append(files, d.Own(getenv)...)
		}
	}
	return files
}
