package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/pollux-companion/pollux/internal/client"
)

// A Level says how bad a finding is.
type Level string

// The levels. With a Fault the CLI does not connect with context and diffs.
const (
	OK      Level = "ok"
	Note    Level = "note"    // it is good to know
	Warning Level = "warning" // it works, and something else may not
	Fault   Level = "fault"
)

// A Finding is one step of the CLI's way to a companion, and what it came to.
type Finding struct {
	ID    string `json:"id"` // a short name that stays: "port", "token", "workspace"
	Level Level  `json:"level"`
	What  string `json:"what"`
	// Why says why it matters; "" where all is well.
	Why string `json:"why,omitempty"`
	// Mend is the command that mends it, as it is typed into this shell, and nothing else; "" where no command does.
	Mend string `json:"mend,omitempty"`
	// Remark is what else there is to be said about mending it, for a person.
	Remark string `json:"remark,omitempty"`
	// Details are the steps behind it, a line each.
	Details []string `json:"details,omitempty"`
	// fix says that Repair can do it.
	fix fix
}

type fix int

const (
	fixNone fix = iota
	fixSweep
	fixMode
)

// A Report is what Examine found.
type Report struct {
	// Connects says whether the CLI would connect with context and diffs.
	Connects bool `json:"connects"`
	// Says is what the CLI itself would show: the editor's name, or its sentence about the failure.
	Says     string    `json:"says"`
	Dir      string    `json:"dir"`
	Findings []Finding `json:"findings"`
	choice   *client.Choice
	home     string // Qwen Code's, where the report is about it
}

// Options of Examine.
type Options struct {
	// World is the CLI's; nil is this process's.
	World *client.World
	// Run are the folders of control sockets, to see companions that have no file here.
	Run []string
	// PID is the process whose world it is, 0 for this one's, and Lacks what could not be learned of it, a sentence each.
	PID   int
	Lacks []string
	// Settings is the CLI's settings file; "" leaves IDE mode out.
	Settings string
	// Others are discovery folders of other temp folders, for those who look in the wrong one.
	Others []string
}

// An examination is one run of Examine.
type examination struct {
	o Options
	w *client.World
	r *Report
}

// Examine replays what Gemini CLI does in a world and tries the companion that
// it would take, in a session of its own that it deletes. It opens no diff.
// The longest wait is some ten seconds, for a companion that does not answer.
func Examine(ctx context.Context, o Options) *Report {
	x := &examination{o: o, w: client.Complete(o.World)}
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
	return x.r
}

// repair is the command that has doctor do what is safe.
func (x *examination) repair() string {
	if x.r.home != "" {
		return "pollux doctor qwen --fix"
	}
	return "pollux doctor --fix"
}

func (x *examination) add(f Finding) { x.r.Findings = append(x.r.Findings, f) }

// ok adds a step that came to no harm.
func (x *examination) ok(id, what string, details ...string) {
	x.add(Finding{ID: id, Level: OK, What: what, Details: details})
}

// failed says whether a step has come to a fault.
func (x *examination) failed(ids ...string) bool {
	return slices.ContainsFunc(x.r.Findings, func(f Finding) bool { return f.Level == Fault && slices.Contains(ids, f.ID) })
}

// Find returns the finding of a step; ok is false when there is none.
func (r *Report) Find(id string) (f Finding, ok bool) {
	for _, f := range r.Findings {
		if f.ID == id {
			return f, true
		}
	}
	return Finding{}, false
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
