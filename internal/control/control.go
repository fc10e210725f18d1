// Package control is the channel between pollux processes of one user: JSON-RPC on a
// private unix socket, with checks of who is at the other end (SPEC §11.1). It is apart
// from the agents' port and token: a model's shell knows those, and gains nothing here.
package control

import (
	"context"
	"time"

	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/proc"
)

// The methods of the channel. Each takes one object as its parameters.
const (
	methodStatus   = "status"
	methodSessions = "sessions"
	methodAgents   = "agents"
	methodJudge    = "judge"
	methodJoin     = "join"
	methodDiffs    = "diffs"
	methodDecide   = "decide"
	methodOpen     = "open"
	methodSave     = "save"
	methodAsk      = "ask"
	methodContext  = "context"
	methodPage     = "page"
	methodEnv      = "env"
	methodPause    = "pause"
	methodShare    = "share"
	methodLend     = "lend"
	methodMention  = "mention"
	methodTold     = "told"    // the context as CLIs are told it
	methodPropose  = "propose" // pollux diff
	methodTakeBack = "takeBack"
	methodTakeOver = "takeOver"
	methodStop     = "stop"

	// The methods of a reviewer.
	methodAttach  = "attach"
	methodWatch   = "watch"
	methodTexts   = "texts"
	methodText    = "text"
	methodEdit    = "edit"
	methodResolve = "resolve"
	methodRule    = "rule"
	methodHistory = "history"
	methodEntry   = "entry"
	methodUndo    = "undo"
)

// noteOpened tells a proposer that its proposal is open now. It is the only message from the companion that is no
// answer.
const noteOpened = "opened"

// A Status says which companion this is.
type Status struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Editor  string    `json:"editor"` // ideInfo's name
	Roots   []string  `json:"roots"`  // absolute and canonical
	Started time.Time `json:"started"`
	// Keeper says that its editor has ended, and that it serves the CLIs that were connected then (SPEC L-4).
	Keeper bool `json:"keeper,omitempty"`
	// Alone says that it was started for its own agent (pollux run), and is not elected to serve other sessions.
	Alone bool `json:"alone,omitempty"`
	// Views says who would show a diff at this moment; nil from a companion that does not tell.
	Views *Views `json:"views,omitempty"`
	// Troubles are problems that this companion runs with.
	Troubles []Trouble `json:"troubles,omitempty"`
	// Shares lists every agent that pollux knows.
	Shares []Share `json:"shares,omitempty"`
	// Askers are the agents that ask by pollux mcp.
	Askers []Asker `json:"askers,omitempty"`
}

// PausedTrouble is the ID of the Trouble that says that sharing is paused.
const PausedTrouble = "paused"

// A Trouble is a problem that a companion runs with, told to a person.
type Trouble struct {
	ID   string `json:"id"`   // a short name that stays: "users", "folder"
	What string `json:"what"` // what does not work, and the reason
	Why  string `json:"why"`  // why it matters
	Do   string `json:"do"`   // what helps
}

// Views says who would show a diff. When nobody would, the diff is refused, and the agent asks in its own terminal (SPEC F-2).
type Views struct {
	Editor   bool `json:"editor"`   // the companion's own editor shows diffs, or asks about them
	Page     bool `json:"page"`     // an editor page is open, or reloading
	Reviewer bool `json:"reviewer"` // a pollux review is attached
	Browser  bool `json:"browser"`  // the companion opens a page in the browser, as far as that succeeds
}

// Any says whether somebody would try to show a diff.
func (v Views) Any() bool { return v != Views{} }

// A Session is one connected CLI.
type Session struct {
	ID      int       `json:"id"`
	Label   string    `json:"label"`
	Agent   string    `json:"agent,omitempty"` // its name: "claude"
	Since   time.Time `json:"since"`
	Version string    `json:"version,omitempty"` // the CLI's version, as it says; "" when it says none
	Process string    `json:"process,omitempty"` // "" when not known
	PID     int       `json:"pid,omitempty"`     // 0 when not known
	// Folder is the one of the companion's folders that the process works in, where there are several; "" when it is not known.
	Folder string `json:"folder,omitempty"`
	// Told says whether it is told what the user looks at: "told", "paused", "asks" or "never"; "" from a companion that does not say.
	Told string `json:"told,omitempty"`
}

// A Share says whether the sessions of one agent are told what the user looks at (SPEC C-8).
type Share struct {
	Agent string `json:"agent"` // its name: "claude"
	Label string `json:"label"`
	// Mode is "always", "ask" or "never". With ask, nothing is told until the person has answered.
	Mode string `json:"mode"`
}

// A Diff is one open proposal.
type Diff struct {
	ID     string    `json:"id"`
	Path   string    `json:"path"` // absolute
	IsNew  bool      `json:"isNew,omitempty"`
	Title  string    `json:"title"`
	Owner  string    `json:"owner"` // the session's label
	Opened time.Time `json:"opened"`
	Edited bool      `json:"edited,omitempty"`
	// Version grows with each edit of the text, Base with each change of the file.
	Version int `json:"version,omitempty"`
	Base    int `json:"base,omitempty"`
	// Conflict is nil unless the file has changed where the proposal changes it (SPEC F-13).
	// While it is set, the diff cannot be accepted; see Resolve.
	Conflict *Conflict `json:"conflict,omitempty"`
	// Others is the number of other proposals for the same file.
	Others int `json:"others,omitempty"`
	// ReadOnly says why the proposal cannot be edited; "" when it can.
	ReadOnly string `json:"readOnly,omitempty"`
	// Unsaved says that an editor has unsaved changes in the file (SPEC F-8).
	Unsaved bool `json:"unsaved,omitempty"`
}

// A Conflict says why a proposal cannot be accepted.
type Conflict struct {
	Reason string  `json:"reason"` // a sentence about the file, without its name
	Places []Place `json:"places,omitempty"`
}

// A Place is a range of lines of the proposal, 0-based, with the file's lines for it.
type Place struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Text  string `json:"text"`
}

// Seen names the versions that the user was shown of a diff: Diff.Version and Diff.Base.
type Seen struct {
	Version int `json:"version"`
	Base    int `json:"base"`
}

// A Decision settles a diff. With Accept, a Content that is not nil replaces the text. Nothing is accepted when the
// text or the file is newer than Seen says (SPEC F-13).
type Decision struct {
	ID      string  `json:"id"`
	Accept  bool    `json:"accept"`
	Content *string `json:"content,omitempty"`
	Seen    Seen    `json:"seen"`
}

// A Location is a file to show, and the place in it.
type Location struct {
	Path      string          `json:"path"` // absolute
	Position  *state.Position `json:"position,omitempty"`
	TakeFocus bool            `json:"takeFocus,omitempty"`
}

// A Question is put to the person in front of the editor.
type Question struct {
	Title   string   `json:"title"`
	Message string   `json:"message"`
	Choices []string `json:"choices"`
}

// A Connection is what a CLI needs to reach the companion.
type Connection struct {
	PID   int      `json:"pid"`
	Port  int      `json:"port"`
	Token string   `json:"token"`
	Roots []string `json:"roots"`
	// TempDir is the temporary folder in which the CLI finds the discovery file; "" for the CLI's own.
	TempDir string `json:"tempDir,omitempty"`
}

// A Backend is the companion behind the channel. Calls come from several goroutines. A ctx ends with the caller's
// connection.
type Backend interface {
	Status() Status
	Connection() Connection
	Sessions() []Session
	// Agents returns the sessions' agents. It waits until ctx ends for processes that are still being found.
	Agents(context.Context) Agents
	// Meet is told of an agent that asks through go-betweens (pollux relay, pollux mcp), and of these; the agent is the last. Agents has
	// them from then on.
	Meet(...proc.Info)
	// Joined is told of the process of an asker that is new in Server.Askers, where it stays until that process ends.
	Joined(proc.Info)
	Diffs() []Diff
	Decide(Decision) error
	// Open shows a file in the editor.
	Open(context.Context, Location) error
	// Save has the editor write its unsaved changes of a file, for an agent whose session a keeper holds.
	Save(ctx context.Context, path string) error
	// Ask returns the choice; nil when the person made none.
	Ask(context.Context, Question) (*string, error)
	Context() *state.Snapshot
	// Pause stops or resumes telling agents what the user looks at.
	Pause(paused bool)
	// SetShare says whether an agent is told what the user looks at, in this workspace.
	SetShare(agent, mode string) error
	// Lend takes what the user of another companion looks at, as state.Store.Lend does. key stands for the connection.
	Lend(key any, snap *state.Snapshot, active bool)
	// Mention puts a mention into the prompt of a session.
	Mention(context.Context, Mention) (Mentioned, error)
	// Told returns the parameters of ide/contextUpdate as CLIs get them, as soon as they differ from seen, or when
	// ctx ends.
	Told(ctx context.Context, seen string) (params string)
	// Page returns a fresh address of the editor page, good for one use.
	Page() (string, error)
	// Propose shows a proposal and waits for its outcome. It calls opened when the proposal is shown, with what takes it back and
	// returns the user's text. When ctx ends, Propose takes it back itself.
	Propose(ctx context.Context, p Proposal, opened func(takeBack TakeBack)) (Answer, error)
	reviewing
	keeping
}

// A TakeBack takes a proposal back, and returns its text as the user had it.
type TakeBack = func(context.Context) (text string, err error)

// Clients say whether they run in an agent's shell, as far as they know; see ErrFromAgent.
type (
	decideParams struct {
		ID      string `json:"id"`
		Accept  bool   `json:"accept"`
		Content []byte `json:"content,omitempty"` // bytes, because JSON makes six bytes of a "<"
		HasText bool   `json:"hasText,omitempty"`
		Seen    Seen   `json:"seen"`
		InAgent bool   `json:"inAgent,omitempty"`
	}
	pageParams struct {
		InAgent bool `json:"inAgent,omitempty"`
	}
)

type pauseParams struct {
	Paused  bool `json:"paused"`
	InAgent bool `json:"inAgent,omitempty"`
}

type shareParams struct {
	Agent   string `json:"agent"`
	Mode    string `json:"mode"`
	InAgent bool   `json:"inAgent,omitempty"`
}

type saveParams struct {
	Path    string `json:"path"`
	InAgent bool   `json:"inAgent,omitempty"`
}

// lendReply has the sessions that hear what is lent.
type lendReply struct {
	Sessions []Session `json:"sessions,omitempty"`
}

type lendParams struct {
	Snapshot *state.Snapshot `json:"snapshot"`
	Active   bool            `json:"active,omitempty"`
}

type contextParams struct {
	InAgent bool `json:"inAgent,omitempty"`
}

// The verdicts of methodJudge.
const (
	byPerson = "person"
	byAgent  = "agent"
	byUnseen = "unseen"
)

type judgeReply struct {
	Verdict string `json:"verdict"`
}

type pageReply struct {
	Address string `json:"address"`
}

type askReply struct {
	Choice *string `json:"choice"`
}

// empty is the result of a method that has none.
type empty struct{}
