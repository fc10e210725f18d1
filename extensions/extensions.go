// Package extensions lets a Go program use extensions of Gemini CLI as pollux does. It tells
// a model what there is, finds the calls in the model's text, and runs them in a sandbox. The
// results are text that cannot be mistaken for anything else.
//
// The text side (Parse, Scanner, ParseCall, Result) needs nothing else. A [Host] works with the extensions that
// this user has installed with pollux or Gemini CLI:
//
//	host, err := extensions.Open(nil)
//	prompt, err := host.Summary(2000)       // for the first prompt
//	…
//	response, err := host.Respond(ctx, text) // for what the model wrote
//	// response.Reply goes back to the model
//
// On Linux a program that runs tools is started once more as the first process of each sandbox; this package takes over there
// before main is called.
package extensions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/audit"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/dispatch"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
	"github.com/pollux-companion/pollux/internal/extension/runner"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/sandbox"
	"github.com/pollux-companion/pollux/internal/settings"
)

// Options of Open; nil means the zero value.
type Options struct {
	// Home is the folder that holds .gemini with the extensions; "" is the user's (GEMINI_CLI_HOME or home).
	Home string
	// State is the private folder of consent and audit log; "" is pollux's own, so that the user's answers
	// to pollux count here too.
	State string
	// WorkDir is the workspace of the tools; "" is the working folder.
	WorkDir string
	// Name is who asks for runs, in questions and in the audit log; "" is the program's name.
	Name string
	// Ask asks the user when consent is missing; nil refuses. It may be called from several goroutines.
	Ask func(context.Context, Question) (Answer, error)
	// Log gets messages for finding faults; nil discards them.
	Log *slog.Logger
}

// A Question asks whether the tools of an extension may run.
type Question struct {
	Extension string
	Tool      string // the tool that should run
	// Title is the question in one line. Lines are what the user should know: the source, the permissions in plain
	// words, what has changed. Both are safe for a terminal.
	Title string
	Lines []string
}

// An Answer is the user's answer. Every other value, also "", means: not now.
type Answer string

// The answers.
const (
	Once   Answer = "once"   // this run, and ask again
	Always Answer = "always" // every tool of this content, with these permissions or fewer
	Never  Answer = "never"  // no tool of this extension
)

// A Host works with the extensions installed for one user, from one folder. Its methods
// may be called from several goroutines. It needs no closing.
type Host struct {
	dispatcher *dispatch.Dispatcher
}

// Open finds the extensions. It runs nothing and changes nothing.
func Open(o *Options) (*Host, error) {
	opts := Options{}
	if o != nil {
		opts = *o
	}
	dirs, err := settings.Folders()
	if err != nil {
		return nil, err
	}
	if err := opts.complete(dirs); err != nil {
		return nil, err
	}
	s, err := store.Open(&store.Options{Home: opts.Home, WorkDir: opts.WorkDir})
	if err != nil {
		return nil, err
	}
	set, _, err := settings.Load(dirs.ConfigFile())
	if err != nil {
		return nil, err
	}
	r := runner.New(runner.Options{
		Store: s, Consent: consent.Open(opts.State), Audit: audit.Open(opts.State), Asker: asker(opts.Ask), By: opts.Name, Log: opts.Log,
		Sandbox: sandbox.New(&sandbox.Options{
			Masked:       append([]string{opts.State, dirs.State, dirs.Config}, dirs.Run...),
			AllowReduced: set.Tools.Reduced, Log: opts.Log,
		}),
	})
	return &Host{dispatch.New(dispatch.Options{Store: s, Runner: r, WorkDir: opts.WorkDir})}, nil
}

// complete fills in what is left out.
func (o *Options) complete(dirs settings.Dirs) (err error) {
	if o.State == "" {
		o.State = dirs.State
	}
	if o.WorkDir == "" {
		if o.WorkDir, err = os.Getwd(); err != nil {
			return err
		}
	}
	if o.WorkDir, err = filepath.EvalSymlinks(o.WorkDir); err != nil {
		return fmt.Errorf("no folder to work in: %w", err)
	}
	if o.Name == "" {
		o.Name = filepath.Base(os.Args[0])
	}
	return nil
}

// asker asks through the program's own function.
func asker(ask func(context.Context, Question) (Answer, error)) consent.Asker {
	if ask == nil {
		return nil
	}
	return askFunc(ask)
}

type askFunc func(context.Context, Question) (Answer, error)

// Ask implements [consent.Asker].
func (f askFunc) Ask(ctx context.Context, q consent.Question) (consent.Answer, error) {
	a, err := f(ctx, Question{Extension: q.Extension, Tool: q.Tool.Name, Title: q.Title(), Lines: q.Lines()})
	switch a {
	case Once, Always, Never:
		return consent.Answer(a), err
	}
	return "", err
}

// ErrBudget: a summary needs more tokens than it may take.
var ErrBudget = errors.New("the budget is too small for a summary")

// Summary returns what a model should know at the start of a session, in at most budget tokens as Tokens
// estimates them; 0 sets no bound. It tells of extensions that are enabled in the working folder and that the user agreed to.
func (h *Host) Summary(budget int) (string, error) {
	set, err := h.dispatcher.Refresh()
	if err != nil {
		return "", err
	}
	s := prompt.Summarize(set, &prompt.SummaryOptions{Budget: budget})
	if budget > 0 && s.Tokens > budget {
		return "", fmt.Errorf("%w: it takes %d tokens at least", ErrBudget, s.Tokens)
	}
	return s.Text, nil
}

// Tokens estimates how many tokens a model counts for text: a quarter of its ASCII characters
// plus one for each other character.
func Tokens(text string) int { return prompt.Tokens(text) }

// A Reply is the answer to one call.
type Reply struct {
	// Text is for the model: the result, or what went wrong and what to try. It is not delimited; Result does that.
	Text string
	// Status is ok, error, or denied when the user has not agreed.
	Status string
}

// Call calls a tool: "lintFile", "code-analyzer.lintFile", or pollux's own "read_doc" and "describe_extension". args are
// encoded as JSON. The end of ctx ends the tool with everything that it started. The error is for a call that cannot be
// made; a tool that fails gives a Reply.
func (h *Host) Call(ctx context.Context, name string, args map[string]any) (Reply, error) {
	data, err := json.Marshal(args)
	if err != nil {
		return Reply{}, err
	}
	r := h.dispatcher.Call(ctx, name, data)
	return Reply{Text: r.Text, Status: r.Status()}, context.Cause(ctx)
}

// ReadDoc returns a document by its name, delimited, from an offset in bytes. A long one says how to go on.
func (h *Host) ReadDoc(name string, offset int) Reply {
	r := h.dispatcher.Read(name, offset)
	return Reply{Text: r.Text, Status: r.Status()}
}

// A Response is the answer to a model's text.
type Response struct {
	// Reply goes back to the model; "" when the model asked for nothing.
	Reply string
	// Outcomes are the results of the blocks, in order.
	Outcomes []Outcome
}

// An Outcome is the result of one block.
type Outcome struct {
	Block Block
	// Status is ok, error, denied or ignored (the block stood in code, a quotation or a result).
	Status string
	// Text is the answer without delimiters.
	Text string
}

// Respond runs everything that a model's text asks for, in order.
func (h *Host) Respond(ctx context.Context, text string) (Response, error) {
	var out Response
	if _, err := h.dispatcher.Refresh(); err != nil {
		return out, err
	}
	var reply strings.Builder
	for _, b := range prompt.Parse(text) {
		o := h.dispatcher.Respond(ctx, b)
		if ctx.Err() != nil {
			out.Reply = reply.String()
			return out, context.Cause(ctx)
		}
		out.Outcomes = append(out.Outcomes, Outcome{blockOf(b), o.Status, o.Text})
		reply.WriteString(o.Reply)
	}
	out.Reply = reply.String()
	return out, nil
}
