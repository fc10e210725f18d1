// Package agent is the table of the agents that pollux serves: their names, how they speak, and how their CLIs find a
// companion. The code specific to an agent is in a package below this one.
package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/claude"
	"github.com/pollux-companion/pollux/internal/agent/codex"
	"github.com/pollux-companion/pollux/internal/agent/copilot"
	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/agent/gemini"
	"github.com/pollux-companion/pollux/internal/agent/gemini/clisettings"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/agent/lockfile"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/agent/qwen"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/ownpipe"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/settingsfile"
)

// An Agent is one kind of CLI.
type Agent struct {
	// Name is its name in commands, settings and records: "gemini".
	Name string
	// Label is its name for people: "Gemini CLI".
	Label string
	// Command is its program, as typed.
	Command string
	// With names the agent whose lock and token it uses. It then has no Door of its own. "" for most agents.
	With string
	// Sole: where several companions serve their folder, its CLIs connect to none, or always to the same. Of pollux's own, one serves it.
	Sole bool
	// Door returns its mcp.Agent, except for the token and key, which differ for each companion. nil if it uses the
	// lock of With, or asks on its own socket.
	Door func(Options) mcp.Agent
	// Locks describes the files by which its CLIs find companions; nil: package companion handles them (Gemini CLI's
	// file has a second place). Choose replays how a CLI chooses among them.
	Locks  *lockfile.Kind
	Choose func(lockfile.World) *lockfile.Choice
	// Listen joins a companion as its CLIs do; nil if they speak as Gemini CLI does.
	Listen func(ctx context.Context, d finding.Door) (Listener, error)
	// Told returns what they tell their model about a context, "" for nothing. nil if they tell it in steps, or it is not known.
	Told func(context []byte) (string, error)
	// Steps: they tell their model the whole context once, and then what has changed in it (package gemini/told).
	Steps bool
	// Answer answers its CLIs on the socket that they ask on, which one companion serves; nil if they use the companion's own. asked is
	// called with each process that asks, and must not block. The Answerer is nil if another companion answers, or the agent was never
	// used on this machine.
	Answer func(snapshot func() *state.Snapshot, asked func(proc.Info), log *slog.Logger) (Answerer, error)
	// LetsIn says where the companion with this process answers its CLIs, if they have no Locks; otherwise nil.
	LetsIn func(pid int) (d finding.Door, ok bool)
	// Look examines how its CLIs started in dir reach a companion, if they have no Locks; otherwise nil.
	Look func(ctx context.Context, dir string, getenv func(string) string) []finding.Finding
	// Trials are the checks of its wire in pollux conform; nil if it speaks as Gemini CLI does.
	Trials []finding.Trial
	// Shows is the tool that its CLIs call to show a diff.
	Shows string
	// Env returns the variables by which its CLIs in a terminal find this companion and no other; nil: it has none.
	// getenv reads the terminal's environment.
	Env func(e Endpoint, getenv func(string) string) ([]discovery.Variable, error)
	// Unaided says how its CLIs find a companion, if they take no variables.
	Unaided string
	// Lines is how its prompt names lines after a file's name, a format for the first and last line; "" means in
	// words.
	Lines string
	// Install is the command that installs it. Release is the release that pollux was tested with.
	Install, Release string
	// Settings are the agent's user settings, as pollux setup changes them.
	Settings Settings
	// Relay is the file by which a CLI that finds no editor starts pollux relay; nil: it has none.
	Relay *Relay
	// Bridge means that pollux setup writes the extension by which its CLIs use what other extensions offer.
	Bridge bool
}

// LinesOf returns how a person names lines to an agent, after a file's name.
func LinesOf(name string, first, last int) string {
	a, _ := Find(name)
	one, _, _ := strings.Cut(a.Lines, "-")
	switch {
	case a.Lines != "" && first == last:
		return fmt.Sprintf(one, first)
	case a.Lines != "":
		return fmt.Sprintf(a.Lines, first, last)
	case first == last:
		return fmt.Sprintf(" line %d", first)
	}
	return fmt.Sprintf(" lines %d-%d", first, last)
}

// A Listener is a connection to a companion as an agent's CLIs make it. Only one goroutine may use it at a time.
type Listener interface {
	// Tools returns the names of the companion's tools.
	Tools(ctx context.Context) ([]string, error)
	// Context waits for the next context, in the agent's own form.
	Context(ctx context.Context) (json.RawMessage, error)
	// Close ends the session.
	Close()
}

// An Answerer answers on an agent's own socket until Close.
type Answerer interface {
	// Asked returns the living processes that have asked.
	Asked() []proc.Info
	// Folder returns the folder that one of these has asked for last, as it said, "" for none.
	Folder(asker proc.Info) string
	Close()
}

// Settings describes an agent's user settings.
type Settings struct {
	Program settingsfile.Program
	// Path returns the settings file, absolute; the file need not exist.
	Path func(getenv func(string) string) (string, error)
	// Switches are the keys that make a CLI look for a companion by itself; empty if every CLI does. Later says what
	// a running CLI needs before they take effect.
	Switches []string
	Later    string
	// Mode reports whether a CLI started in dir with these settings looks for a companion; nil: package doctor knows.
	Mode func(settings, dir string, getenv func(string) string) finding.Finding
}

// A Relay writes and removes a file. Both functions return its path and whether that changed anything; with dryRun
// they change nothing.
type Relay struct {
	Put    func(program string, dryRun bool) (changed bool, path string, err error)
	Remove func(dryRun bool) (removed bool, path string, err error)
}

// Options are the user settings that affect dialects.
type Options struct {
	// LegacyDiffClosed is for old releases of Gemini CLI (SPEC §0).
	LegacyDiffClosed bool
	// KeepJSON: the view shows proposals as JSON, so that their JSON is kept while they are being opened.
	KeepJSON bool
	// Snapshot returns what the user looks at now, with the agents that must not be told.
	Snapshot func() *state.Snapshot
	// Open shows a file in the user's editor.
	Open func(ctx context.Context, path string, at *state.Position, takeFocus bool) error
	// Save has the user's editor write the unsaved changes of a file that others have not written since.
	Save func(ctx context.Context, path string) error
}

// snapshot returns what an agent may be told of what the user looks at now.
func (o Options) snapshot(agent string) func() *state.Snapshot {
	return func() *state.Snapshot { return o.Snapshot().For(agent) }
}

// An Endpoint is where one companion serves one agent.
type Endpoint struct {
	Port int
	// Socket is the path of the private socket (package ownpipe), "" without one. Since is when it was opened.
	Socket string
	Since  time.Time
	Token  string
	Roots  []string // absolute and canonical
	// PID is the editor's process.
	PID int
	// Alone: the variables are for a terminal that runs this agent and no other.
	Alone bool
	// TempDir is the temporary folder of CLIs that have to be sent to another one than their own; "" for none.
	TempDir string
	// IDE and DisplayName are the companion's names: "pollux", "Pollux".
	IDE, DisplayName string
}

// Default is the agent that a command means when it names none. pollux's old records name none either: it was the only one.
const Default = discovery.Agent

// Context returns a context as Gemini CLI gets it, which the user is shown as an example of what agents are told.
func Context(snap *state.Snapshot) string { return gemini.ContextParams(snap.For(discovery.Agent)) }

// All returns the agents, Gemini CLI first.
func All() []Agent {
	return []Agent{geminiCLI(), claudeCode(), qwenCode(), copilotCLI(), openCode(), codexCLI()}
}

// Deniers are the settings by which users keep files from the tools of some agents. getenv reads the user's environment.
func Deniers(getenv func(string) string) []claude.Denier { return claude.Deniers(getenv) }

func geminiCLI() Agent {
	return Agent{
		Name: discovery.Agent, Label: string(clisettings.Program), Command: "gemini", Install: "npm install -g @google/gemini-cli", Steps: true,
		Door: func(o Options) mcp.Agent {
			return mcp.Agent{Dialect: gemini.Dialect{LegacyDiffClosed: o.LegacyDiffClosed}, KeepJSON: o.KeepJSON}
		},
		Env: func(e Endpoint, getenv func(string) string) ([]discovery.Variable, error) {
			vars, err := discovery.Env(&discovery.File{Port: e.Port, Roots: e.Roots, Token: e.Token}, e.PID, discovery.InContainer(), getenv)
			if err == nil && e.TempDir != "" {
				vars = append(vars, discovery.Variable{Name: discovery.TempVariable, Value: e.TempDir})
			}
			return vars, err
		},
		Settings: Settings{
			Program: clisettings.Program, Path: clisettings.PathIn, Switches: clisettings.Switches(),
			Later: "a CLI that runs already needs /ide enable",
		},
		Relay:  &Relay{Put: discovery.PutRelay, Remove: discovery.RemoveRelay},
		Bridge: true,
	}
}

func claudeCode() Agent {
	locks := claude.Locks()
	return Agent{
		Name: claude.Name, Sole: true, Label: "Claude Code", Command: "claude", Install: "npm install -g @anthropic-ai/claude-code",
		Lines: "#L%d-%d", Release: "2.1.330", Door: claudeDoor, Env: claudeEnv, Locks: &locks, Choose: claude.Choose, Told: claude.Told, Shows: "openDiff", Trials: claude.Trials(),
		Listen: func(ctx context.Context, d finding.Door) (Listener, error) {
			c, err := claude.Dial(ctx, d.Port, d.Token, nil)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		Settings: Settings{
			Program: settingsfile.ClaudeCode, Path: claude.SettingsPath, Switches: claude.Switches(), Mode: claude.Mode,
			Later: "a Claude Code that runs already needs /ide",
		},
	}
}

func qwenCode() Agent {
	locks := qwen.Locks()
	return Agent{
		Name: "qwen", Label: qwen.Label, Command: "qwen", Install: "npm install -g @qwen-code/qwen-code", Release: "0.24.4",
		Door: func(o Options) mcp.Agent { return mcp.Agent{Dialect: gemini.Dialect{}, KeepJSON: o.KeepJSON} },
		Env: func(e Endpoint, _ func(string) string) ([]discovery.Variable, error) {
			return []discovery.Variable{{Name: qwen.PortVariable, Value: strconv.Itoa(e.Port)}}, nil
		},
		Locks: &locks, Choose: qwen.Choose,
		Settings: Settings{
			Program: qwen.Program, Path: qwen.SettingsPath, Switches: qwen.Switches(), Mode: qwen.Mode,
			Later: "a Qwen Code that runs already has to be started again",
		},
		Relay: &Relay{Put: qwen.PutRelay, Remove: qwen.RemoveRelay},
	}
}

func copilotCLI() Agent {
	locks := copilot.Locks()
	return Agent{
		Name: copilot.Name, Label: copilot.Label, Command: "copilot", Install: "npm install -g @github/copilot", Release: "1.0.102",
		Unaided: "it reads the lock files of companions, and takes the one of its own folder",
		Door: func(o Options) mcp.Agent {
			return mcp.Agent{Private: true, TokenHeader: copilot.TokenHeader, TokenScheme: copilot.TokenScheme, ProcessHeader: copilot.ProcessHeader, Dialect: &copilot.Dialect{Snapshot: o.snapshot(copilot.Name)}}
		},
		Locks: &locks, Choose: copilot.Choose, Told: copilot.Told, Shows: "open_diff", Trials: copilot.Trials(),
		Listen: func(ctx context.Context, d finding.Door) (Listener, error) {
			c, err := copilot.Dial(ctx, d)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		Settings: Settings{Program: copilot.Program, Path: copilot.SettingsPath, Mode: copilot.Mode},
	}
}

// openCode connects through Claude Code's lock, for context only.
func openCode() Agent {
	a := claudeCode()
	return Agent{
		Name: claude.OpenCode, Sole: true, Label: claude.OpenCode, Command: "opencode", Install: "npm install -g opencode-ai", Release: "1.18.33", With: a.Name,
		Locks: a.Locks, Choose: claude.ChooseOpenCode, Listen: a.Listen,
		Env: func(e Endpoint, _ func(string) string) (vars []discovery.Variable, err error) {
			for _, name := range claude.OpenCodePorts() { // a real port would keep it out (SPEC OC-2)
				if e.Alone {
					vars = append(vars, discovery.Variable{Name: name, Value: "0"})
				}
			}
			return vars, nil
		},
		Settings: Settings{Program: claude.OpenCode, Path: claude.OpenCodeSettings, Mode: claude.OpenCodeMode},
	}
}

// codexCLI asks on a socket that one companion serves (SPEC CX-1), so it has no Door.
func codexCLI() Agent {
	return Agent{
		Name: codex.Name, Sole: true, Label: codex.Label, Command: "codex", Install: "npm install -g @openai/codex", Release: "0.169.0",
		Unaided: "each Codex of this user asks on the same socket, after /ide",
		Answer:  answerCodex, Told: codex.Told, LetsIn: codex.LetsIn, Look: codex.Look, Trials: codex.Trials(),
		Listen: func(ctx context.Context, d finding.Door) (Listener, error) {
			c, err := codex.Dial(ctx, d.Socket, d.Dir)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		Settings: Settings{Program: codex.Label, Path: codex.SettingsPath, Later: "in each Codex, type /ide"},
	}
}

func answerCodex(snapshot func() *state.Snapshot, asked func(proc.Info), log *slog.Logger) (Answerer, error) {
	home, err := os.UserHomeDir()
	if err != nil || !codex.Used(os.Getenv, home) {
		return nil, nil
	}
	s, err := codex.Serve(os.TempDir(), snapshot, asked, log)
	switch {
	case errors.Is(err, codex.ErrTaken): // Codex hears from the other companion
		return nil, nil
	case err != nil:
		return nil, err
	}
	return s, nil
}

// Find returns the agent with that name.
func Find(name string) (a Agent, ok bool) {
	all := All()
	i := slices.IndexFunc(all, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return all[i], true
}

// claudeDoor also serves opencode, which finds Claude Code's lock and counts lines from 1 (SPEC OC-3).
func claudeDoor(o Options) mcp.Agent {
	return mcp.Agent{
		Socket: true, TokenHeader: claude.TokenHeader, Dialect: &claude.Dialect{Snapshot: o.snapshot(claude.Name), Open: o.Open, Save: o.Save},
		Also: map[string]mcp.Agent{
			claude.OpenCode: {Name: claude.OpenCode, Label: claude.OpenCode, Dialect: &claude.Dialect{Snapshot: o.snapshot(claude.OpenCode), Open: o.Open, Save: o.Save, First: 1}},
		},
	}
}

// claudeEnv gives Claude Code the port. Where opencode may run as well, the port would keep opencode out (SPEC OC-2);
// there Claude Code is told to look for a lock.
func claudeEnv(e Endpoint, _ func(string) string) ([]discovery.Variable, error) {
	if _, has := claudeCode().DoorOf(e.Port, e.PID); has && e.Alone { // the port is of use only with the lock of the companion
		return []discovery.Variable{{Name: claude.PortVariable, Value: strconv.Itoa(e.Port)}}, nil
	}
	return []discovery.Variable{{Name: claude.ConnectVariable, Value: "true"}}, nil
}

// A Place is the file by which one agent's CLIs find one companion. Only one goroutine may use it at a time.
type Place struct {
	*lockfile.File
	kind lockfile.Kind
}

// Private reports whether its CLIs connect through a private socket.
func (a Agent) Private() bool { return a.Door != nil && a.Door(Options{}).Private }

// Place returns the file by which CLIs find a companion on this port, without touching the disk. It is nil for an
// agent without Locks, and for one never used on this machine, unless soon says that it is about to be.
func (a Agent) Place(port int, soon bool) *Place {
	home, used := a.home()
	if !used && (home == "" || !soon) {
		return nil
	}
	return &Place{lockfile.New(lockfile.Path(home, port)), *a.Locks}
}

// Put writes the file, 0600 and atomically, unless it is already up to date.
func (p *Place) Put(e Endpoint) error {
	return p.kind.Put(p.File, &lockfile.Lock{
		Port: e.Port, Socket: ownpipe.Name(e.Socket), Scheme: ownpipe.Scheme, Since: e.Since, Roots: e.Roots, Token: e.Token, PID: e.PID, Name: e.IDE, DisplayName: e.DisplayName,
	})
}

// DoorHere returns the door of an agent that is started in a folder and finds the companion by itself.
func DoorHere(folder string) finding.Door { return finding.Door{Dir: folder} }

// Contested reports whether another program can stand in a companion's way: in its folder of locks, or on the socket that its CLIs ask on.
func (a Agent) Contested() bool { return a.Locks != nil || a.Answer != nil }

// Tells reports whether it is known what its CLIs tell their model.
func (a Agent) Tells() bool { return a.Told != nil || a.Steps }

// DoorOf returns where the companion with this process and port serves the agent; ok is false if it does not.
func (a Agent) DoorOf(port, pid int) (d finding.Door, ok bool) {
	if a.LetsIn != nil {
		return a.LetsIn(pid)
	}
	home, used := a.home()
	if !used {
		return d, false
	}
	data, err := safefile.ReadPrivate(lockfile.Path(home, port), maxLock)
	if err != nil {
		return d, false
	}
	l, err := a.Locks.Decode(data)
	if err != nil || l.Stdio != nil {
		return d, false
	}
	l.Port = port
	return l.Door(), true
}

// Rival returns the name of another program whose lock of this agent is valid for some of the folders that overlaps accepts; "" for none.
func (a Agent) Rival(overlaps func(roots []string) bool) string {
	home, used := a.home()
	if !used {
		return ""
	}
	for _, l := range a.Locks.Look(lockfile.Dir(home), lockfile.World{Home: home, Dir: home, Getenv: os.Getenv, Alive: proc.Alive}, "") {
		if l.Lock != nil && !l.Dead && !l.Lock.Ours && overlaps(l.Lock.Roots) {
			return cmp.Or(l.Lock.DisplayName, l.Lock.Name, "another program")
		}
	}
	return ""
}

// maxLock bounds a lock file, in bytes.
const maxLock = 256 << 10

// Sweep removes the locks of pollux companions whose process has ended, and returns their paths.
func (a Agent) Sweep() []string {
	home, used := a.home()
	if !used {
		return nil
	}
	return a.Locks.Sweep(home)
}

// home returns the agent's folder; used is false if it does not exist, because the agent was never used on this
// machine.
func (a Agent) home() (dir string, used bool) {
	if a.Locks == nil {
		return "", false
	}
	dir, err := a.Locks.Home(os.Getenv)
	if err != nil {
		return "", false
	}
	info, err := os.Stat(dir)
	used = err == nil && info.IsDir()
	for _, b := range All() {
		used = used || b.With == a.Name && b.used()
	}
	return dir, used
}

// used reports whether an agent that uses another one's lock has settings on this machine.
func (a Agent) used() bool {
	path, err := a.Settings.Path(os.Getenv)
	if err != nil {
		return false
	}
	info, err := os.Stat(filepath.Dir(path))
	return err == nil && info.IsDir()
}
