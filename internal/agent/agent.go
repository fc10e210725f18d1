// Package agent is the table of the agents that pollux serves: what each is called, how it speaks, and how its CLIs find a
// companion. Each agent's own part is a room below this one.
package agent

import (
	"github.com/pollux-companion/pollux/internal/agent/gemini"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
)

// An Agent is one kind of CLI.
type Agent struct {
	// Name is what commands, settings and records call it: "gemini".
	Name string
	// Label is what a person calls it: "Gemini CLI".
	Label string
	// Command is its program as it is typed.
	Command string
	// Dialect is how it speaks.
	Dialect func(Options) mcp.Dialect
	// Place names the file by which its CLIs find a companion that serves this port, without touching the disk; nil where that
	// agent is not used on this machine. A nil Place: package companion knows where (Gemini CLI's file has a second place).
	Place func(port int) Place
	// Sweep removes the files that companions of pollux's left and whose process is gone, and returns their paths; nil: nothing
	// is left, or package companion does it.
	Sweep func() []string
}

// Options are the user's settings that dialects know.
type Options struct {
	// LegacyDiffClosed is for old releases of Gemini CLI (SPEC §0).
	LegacyDiffClosed bool
}

// An Endpoint is where one companion serves one agent.
type Endpoint struct {
	Port  int
	Token string
	Roots []string // absolute and canonical
	// PID is the editor's process.
	PID int
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
			Name: Gemini, Label: "Gemini CLI", Command: "gemini",
			Dialect: func(o Options) mcp.Dialect { return gemini.Dialect{LegacyDiffClosed: o.LegacyDiffClosed} },
		},
	}
}
