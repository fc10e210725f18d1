package runner

import (
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/sandbox"
)

// An Explanation is what Run would do, without doing it.
type Explanation struct {
	Subject consent.Subject
	Verdict consent.Verdict
	Tool    manifest.Tool
	// Workspace is the tool's workspace; "" if it has none.
	Workspace string
	// Command is the command line, the runtime's program first.
	Command []string
	// Plan is what the sandbox would let it do.
	Plan *sandbox.Plan
	// NotArguments says what is wrong with the arguments, or is nil. An explanation does not need complete arguments.
	NotArguments error
}

// Explain returns what Run would do. It asks nobody, runs nothing of the extension and records nothing.
func (r *Runner) Explain(q Request) (*Explanation, error) {
	p, err := r.read(q)
	if err != nil {
		return nil, err
	}
	e := &Explanation{Subject: p.subject}
	if e.Verdict, err = r.o.Consent.Lookup(p.subject); err != nil {
		return nil, err
	}
	m := p.content.manifest
	tool, ok := m.Tool(q.Tool)
	if !ok {
		return nil, unknownTool(m, q.Tool)
	}
	p.tool, e.Tool = tool, tool
	p.args, p.names, e.NotArguments = arguments(tool, q.Args, q.TextArgs)
	if p.workspace, p.dir, err = place(q, m.Permissions); err != nil {
		return nil, err
	}
	p.env = settingNames(m) // values would ask the keychain, which could ask the user
	c := p.command(p.content.dir)
	c.Copies = []sandbox.Copy{{Dir: p.content.dir, Files: p.content.held()}}
	e.Workspace, e.Command = p.workspace, c.Args
	e.Plan, err = r.o.Sandbox.Explain(m.Permissions, c)
	return e, err
}

// held returns the files whose content is in memory.
func (s *snapshot) held() []sandbox.CopyFile {
	if s.size > maxHeld || len(s.large) > 0 {
		return nil // an explanation does not need them
	}
	return s.files
}
