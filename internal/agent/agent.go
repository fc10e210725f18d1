// Package agent is the table of the agents that pollux serves: what each is called, how it speaks, and how its CLIs find a
// companion. Each agent's own part is a room below this one.
package agent

import (
	"context"
	"os"
	"slices"
	"strconv"

	"github.com/pollux-companion/pollux/internal/agent/claude"
	"github.com/pollux-companion/pollux/internal/agent/gemini"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/agent/qwen"
	"github.com/pollux-companion/pollux/internal/core/state"
)

// An Agent is one kind of CLI.
type Agent struct {
	// Name is what commands, settings and records call it: "gemini".
	Name string
	// Label is what a person calls it: "Gemini CLI".
	Label string
	// Command is its program as it is typed.
	Command string
	// Door is how it comes in: all of an mcp.Agent but what differs for each companion, which is its token and key.
	Door func(Options) mcp.Agent
	// Place names the file by which its CLIs find a companion that serves this port, without touching the disk; nil where that
	// agent was never used on this machine, unless it is about to be (soon). A nil Place: package companion knows where (Gemini CLI's file has a second place).
	Place func(port int, soon bool) Place
	// Env are the variables with which its CLIs in a terminal find this companion and no other; nil: there are none. getenv knows
	// the terminal.
	Env func(e Endpoint, getenv func(string) string) ([]discovery.Variable, error)
	// Install is the command that installs it.
	Install string
	// Sweep removes the files that companions of pollux's left and whose process is gone, and returns their paths; nil: nothing
	// is left, or package companion does it.
	Sweep func() []string
}

// Options are the user's settings that dialects know.
type Options struct {
	// LegacyDiffClosed is for old releases of Gemini CLI (SPEC §0).
	LegacyDiffClosed bool
	// Snapshot is what the user looks at now.
	Snapshot func() *state.Snapshot
	// Open shows a file in the user's editor.
	Open func(ctx context.Context, path string, at *state.Position, takeFocus bool) error
}

// An Endpoint is where one companion serves one agent.
type Endpoint struct {
	Port  int
	Token string
	Roots []string // absolute and canonical
	// PID is the editor's process.
	PID int
	// Alone: the variables are for a terminal in which this agent runs and no other.
	Alone bool
	// IDE and DisplayName are how the companion introduces itself: "pollux", "Pollux".
	IDE, DisplayName string
}

// A Place is the file by which one agent's CLIs find one companion. Its methods are for one goroutine at a time.
type Place interface {
	// Path is absolute.
	Path() string
	// Put writes the file, 0600 and atomically, unless it says the same already.
	Put(Endpoint) error
	// Remove deletes what Put wrote. It may be called at any time and again.
	Remove() error
}

// Gemini names Gemini CLI in the table.
const Gemini = "gemini"

// All lists the agents, Gemini CLI first.
func All() []Agent {
	return []Agent{
		{
			Name: Gemini, Label: "Gemini CLI", Command: "gemini", Install: "npm install -g @google/gemini-cli",
			Door: func(o Options) mcp.Agent {
				return mcp.Agent{Dialect: gemini.Dialect{LegacyDiffClosed: o.LegacyDiffClosed}}
			},
			Env: func(e Endpoint, getenv func(string) string) ([]discovery.Variable, error) {
				return discovery.Env(&discovery.File{Port: e.Port, Roots: e.Roots, Token: e.Token}, e.PID, discovery.InContainer(), getenv)
			},
		},
		{
			Name: "claude", Label: "Claude Code", Command: "claude", Install: "npm install -g @anthropic-ai/claude-code",
			Door:  claudeDoor,
			Place: claudePlaceAt,
			Env:   claudeEnv,
			Sweep: func() []string { return swept(claude.Home, claude.Sweep) },
		},
		{
			Name: qwen.Name, Label: qwen.Label, Command: qwen.Command, Install: "npm install -g @qwen-code/qwen-code",
			Door:  func(Options) mcp.Agent { return mcp.Agent{Dialect: gemini.Dialect{}} },
			Place: qwenPlaceAt,
			Env: func(e Endpoint, _ func(string) string) ([]discovery.Variable, error) {
				return []discovery.Variable{{Name: qwen.PortVariable, Value: strconv.Itoa(e.Port)}}, nil
			},
			Sweep: func() []string { return swept(qwen.Home, qwen.Sweep) },
		},
	}
}

// Find is the agent of that name; ok is false where there is none.
func Find(name string) (a Agent, ok bool) {
	all := All()
	i := slices.IndexFunc(all, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return all[i], true
}

// claudeDoor also lets opencode in, which finds Claude Code's lock and counts lines from 1 (SPEC OC-3).
func claudeDoor(o Options) mcp.Agent {
	return mcp.Agent{
		Socket: true, TokenHeader: claude.TokenHeader, Dialect: &claude.Dialect{Snapshot: o.Snapshot, Open: o.Open},
		Also: map[string]mcp.Agent{
			claude.OpenCode: {Name: "opencode", Label: "opencode", Dialect: &claude.Dialect{Snapshot: o.Snapshot, Open: o.Open, First: 1}},
		},
	}
}

// claudeEnv names the port to Claude Code. Where opencode may run as well the port would keep it out (SPEC OC-2): there Claude Code
// is told to look for a lock.
func claudeEnv(e Endpoint, _ func(string) string) ([]discovery.Variable, error) {
	if e.Alone {
		return []discovery.Variable{{Name: claude.PortVariable, Value: strconv.Itoa(e.Port)}}, nil
	}
	return []discovery.Variable{{Name: claude.ConnectVariable, Value: "true"}}, nil
}

type claudePlace struct{ *claude.Place }

func claudePlaceAt(port int, soon bool) Place {
	home, ok := used(claude.Home)
	if !ok && (home == "" || !soon) {
		return nil
	}
	return claudePlace{claude.NewPlace(home, port)}
}

// Put implements Place.
func (p claudePlace) Put(e Endpoint) error {
	return p.Place.Put(&claude.Lock{PID: e.PID, Folders: e.Roots, IDE: e.DisplayName, Token: e.Token})
}

type qwenPlace struct{ *qwen.Place }

func qwenPlaceAt(port int, soon bool) Place {
	home, ok := used(qwen.Home)
	if !ok && (home == "" || !soon) {
		return nil
	}
	return qwenPlace{qwen.NewPlace(home, port)}
}

// Put implements Place.
func (p qwenPlace) Put(e Endpoint) error {
	return p.Place.Put(&qwen.Lock{Port: e.Port, Roots: e.Roots, Token: e.Token, PID: e.PID, Name: e.IDE, DisplayName: e.DisplayName})
}

// used finds an agent's home folder; ok is false where there is none, because the agent was never used on this machine.
func used(home func(getenv func(string) string) (string, error)) (dir string, ok bool) {
	dir, err := home(os.Getenv)
	if err != nil {
		return "", false
	}
	info, err := os.Stat(dir)
	return dir, err == nil && info.IsDir()
}

func swept(home func(getenv func(string) string) (string, error), sweep func(string) []string) []string {
	dir, ok := used(home)
	if !ok {
		return nil
	}
	return sweep(dir)
}
