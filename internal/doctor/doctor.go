package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/client"
)

// What is found is said in the words of package finding.
type (
	Level   = finding.Level
	Finding = finding.Finding
)

// The levels of a finding. With a Fault, the CLI does not connect with context and diffs.
const (
	OK      = finding.OK
	Note    = finding.Note
	Warning = finding.Warning
	Fault   = finding.Fault

	fixNone  = finding.None
	fixSweep = finding.Sweep
	fixMode  = finding.Mode
)

// A Report is the result of Examine.
type Report struct {
	// Connects says whether the CLI would connect with context and diffs.
	Connects bool `json:"connects"`
	// Says is what the CLI itself would show: the editor's name, or its sentence about the failure.
	Says     string    `json:"says"`
	Dir      string    `json:"dir"`
	Findings []Finding `json:"findings"`
	choice   *client.Choice
	home     string // the folder of the agent's lock files, "" for Gemini CLI
}

// Options of Examine.
type Options struct {
	// Agent is the agent that does not connect.
	Agent agent.Agent
	// World is the CLI's environment; nil is this process's.
	World *client.World
	// Run are the folders of control sockets, to find companions that have no file here.
	Run []string
	// PID is the process whose World it is, 0 for this one. Lacks says what could not be learned of it, a sentence each.
	PID   int
	Lacks []string
	// Settings is the CLI's settings file; "" leaves IDE mode out.
	Settings string
	// Others are the discovery folders of other temp folders, for a CLI that looks in the wrong one.
	Others []string
}

// An examination is one run of Examine.
type examination struct {
	o Options
	w *client.World
	r *Report
}

// Examine replays an agent's search in a world, and tries the companion that the agent
// would take, in a session that Examine ends again. It opens no diff. It takes ten seconds
// at most, when a companion does not answer.
func Examine(ctx context.Context, o Options) (*Report, error) {
	if o.Agent.Choose != nil {
		return examineLocks(ctx, o)
	}
	x := &examination{o: o, w: client.Complete(o.World)}
	if look := o.Agent.Look; look != nil {
		x.r = &Report{Dir: x.w.Dir, Findings: look(ctx, x.w.Dir, x.w.Getenv)}
		x.troubles(ctx)
		x.program()
		x.r.Connects = !slices.ContainsFunc(x.r.Findings, func(f Finding) bool { return f.Level == Fault })
		return x.r, nil
	}
	x.r = &Report{Dir: x.w.Dir, choice: client.Choose(x.w)}
	x.seen()
	x.process()
	x.temp()
	x.files(ctx)
	x.choice(ctx)
	x.workspace()
	x.support()
	x.host()
	x.proxy()
	x.reach(ctx, x.r.choice.Ways(x.w))
	x.troubles(ctx)
	x.mode()
	x.version()
	x.r.Connects = !slices.ContainsFunc(x.r.Findings, func(f Finding) bool { return f.Level == Fault })
	return x.r, nil
}

// repair returns the command that makes doctor do the safe repairs.
func (x *examination) repair() string {
	if x.r.home != "" {
		return "pollux doctor " + x.o.Agent.Name + " --fix"
	}
	return "pollux doctor --fix"
}

func (x *examination) add(f Finding) { x.r.Findings = append(x.r.Findings, f) }

// ok adds a step without a problem.
func (x *examination) ok(id, what string, details ...string) {
	x.add(Finding{ID: id, Level: OK, What: what, Details: details})
}

// failed says whether a step ended in a fault.
func (x *examination) failed(ids ...string) bool {
	return slices.ContainsFunc(x.r.Findings, func(f Finding) bool { return f.Level == Fault && slices.Contains(ids, f.ID) })
}

// taken names the file that the CLI takes.
func (x *examination) taken() string {
	c := x.r.choice
	if c.Taken < 0 {
		return "no file"
	}
	return c.Candidates[c.Taken].Name
}

func (x *examination) path(name string) string { return filepath.Join(x.r.choice.Folder, name) }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
