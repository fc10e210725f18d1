// Package runner runs one tool of an extension as a model would. It reads the extension once, asks for consent to
// exactly that content, and runs exactly that content in a sandbox with its permissions. It records the run. The result
// helps the caller to correct itself (SPEC X-1, S-1 to S-3).
package runner

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pollux-companion/pollux/internal/extension/audit"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox"
	"github.com/pollux-companion/pollux/internal/words"
)

// Options of New. Store, Consent, Audit and Sandbox are required.
type Options struct {
	// Store finds the extensions.
	Store *store.Store
	// Consent has what the user agreed to.
	Consent *consent.Store
	// Asker asks if there is no stored answer; nil asks nobody, and the run is refused.
	Asker consent.Asker
	// Audit records runs and refusals. If it cannot be written, nothing runs.
	Audit *audit.Log
	// Sandbox runs the tools.
	Sandbox *sandbox.Sandbox
	// Limits of a run; a field that is 0 has the sandbox's default.
	Limits sandbox.Limits
	// By names who asks, for the audit log and the question; "" is the user.
	By string
	// Log gets what helps to find a fault; never arguments or output. nil for nobody.
	Log *slog.Logger
}

// A Runner runs tools. Its methods may be used from several goroutines; each call reads the disk again.
type Runner struct {
	o Options
	// asking holds a token while a question is open. Several calls ask one after the other, and an answer to one also
	// counts for the next.
	asking chan struct{}
}

// New returns a Runner.
func New(o Options) *Runner {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Runner{o: o, asking: make(chan struct{}, 1)}
}

// A Request is one call of a tool.
type Request struct {
	Extension, Tool string
	// Args are the arguments as one JSON object; nil or empty means none.
	Args json.RawMessage
	// TextArgs are typed arguments, read by their declared types: text for a string, JSON for a list. They are added
	// to Args.
	TextArgs []TextArg
	// WorkDir is the caller's working folder, absolute.
	WorkDir string
	// Roots are the known workspaces, absolute. The nearest one that contains WorkDir is the tool's workspace;
	// without one it is WorkDir (SPEC E-2).
	Roots []string
	// Limits that are not 0 replace those of the Options.
	Limits sandbox.Limits
	// Agreed says that the user agreed to this one run beforehand.
	Agreed bool
	// Unsafe runs the tool without a sandbox, as the user explicitly demanded. Consent is still needed.
	Unsafe bool
}

// A TextArg is an argument as typed.
type TextArg struct {
	Name, Value string
	// Bare says that only the name was given, which means true.
	Bare bool
}

// A Result is the result of a tool that ran.
type Result struct {
	Extension, Version, Tool string
	// JSON is the answer of a tool that answers JSON: one value, exactly as printed. If it is nil, NotJSON says why,
	// and Text has the output.
	JSON    json.RawMessage
	NotJSON string
	// Text is what the tool printed, as valid UTF-8.
	Text string
	// Stderr is what it wrote to standard error, as valid UTF-8.
	Stderr string
	// Stdout is what it printed, byte for byte.
	Stdout []byte
	// Code is the exit code: the tool's own, 128+n if signal n ended it, 137 if a limit did.
	Code   int
	Signal int
	// Limit is the limit that ended it, which cuts the output off; nil for none.
	Limit       *sandbox.LimitError
	Denials     []sandbox.Denial     // refused contacts
	Missed      sandbox.Missed       // what it seems to have missed, if it failed
	Files       []FileDenial         // files withheld by the sandbox, as far as the tool mentioned them
	Quarantined []sandbox.Quarantine // what it made under protected names
	Elapsed     time.Duration
	Memory      int64  // the most that a single process held, in bytes
	Assurance   string // full or reduced; none without a sandbox
	Workspace   string // where it ran; "" for none
}

// Run runs one tool and waits for it. The error says why it did not run (UnknownToolError, ArgumentError,
// store.NotFoundError, RefusedError, sandbox errors), or is a *FailedError if it ran and failed; then there is a
// Result too. When Run returns, no process of the tool is left.
func (r *Runner) Run(ctx context.Context, q Request) (*Result, error) {
	p, err := r.prepare(q)
	if err == nil {
		err = r.agree(ctx, p)
	}
	if err != nil {
		r.refused(p, q, err)
		return nil, err
	}
	id := rand.Text()[:13]
	if err := r.o.Audit.Append(p.entry(audit.Started, id)); err != nil {
		return nil, err
	}
	result, err := r.run(ctx, p)
	if err := r.record(p, id, result, err); err != nil {
		r.o.Log.Error("a run was not recorded", "extension", q.Extension, "tool", q.Tool, "err", err)
	}
	if err != nil {
		return nil, err
	}
	return result, result.failure()
}

// A job is an accepted request with the extension's content as read.
type job struct {
	q         Request
	by        string
	extension *store.Extension
	content   *snapshot
	tool      manifest.Tool
	subject   consent.Subject
	args      []string // of the command line, after the script
	names     []string // of the arguments
	workspace string
	dir       string
	limits    sandbox.Limits
	env       []string
}

// prepare checks everything that can be checked before the user is asked. Even with an error it returns what it
// knows.
func (r *Runner) prepare(q Request) (*job, error) {
	p, err := r.read(q)
	if err != nil {
		return p, err
	}
	m := p.content.manifest
	tool, ok := m.Tool(q.Tool)
	if !ok {
		return p, unknownTool(m, q.Tool)
	}
	p.tool = tool
	if p.args, p.names, err = arguments(tool, q.Args, q.TextArgs); err != nil {
		return p, err
	}
	if p.workspace, p.dir, err = place(q, m.Permissions); err != nil {
		return p, err
	}
	p.env, err = r.environment(p)
	return p, err
}

// read finds the extension and reads its content.
func (r *Runner) read(q Request) (*job, error) {
	p := &job{q: q, by: r.o.By, limits: merge(q.Limits, r.o.Limits)}
	x, err := r.o.Store.Get(q.Extension)
	if err != nil {
		return p, err
	}
	p.extension = x
	if err := usable(x); err != nil {
		return p, err
	}
	if p.content, err = readFolder(x.Dir); err != nil {
		return p, fmt.Errorf("the extension %q cannot be read: %w", x.Name, err)
	}
	m := p.content.manifest
	if m.Name != x.Name {
		return p, fmt.Errorf("the extension %q has just been replaced by %q; try again", x.Name, words.Printable(m.Name))
	}
	p.subject = subject(x, m, p.content.tree.ConsentHash())
	return p, nil
}

// usable refuses an extension that is installed but must not run.
func usable(x *store.Extension) error {
	switch {
	case x.Problem != "":
		return &RefusedError{Why: BecauseBroken, Extension: x.Name, Text: fmt.Sprintf("the extension %q does not load: %s", x.Name, x.Problem)}
	case !x.EnabledHere:
		return &RefusedError{Why: BecauseDisabled, Extension: x.Name, Text: fmt.Sprintf("the extension %q is disabled here; enable it with: pollux extensions enable %s", x.Name, x.Name)}
	}
	return nil
}

// Agree makes sure that the user has agreed to an extension's tools, and asks if needed. It runs nothing. Tool and
// arguments of q may be empty.
func (r *Runner) Agree(ctx context.Context, q Request) error {
	p, err := r.read(q)
	if err == nil {
		p.tool, _ = p.content.manifest.Tool(q.Tool)         // only for the question's wording
		p.workspace, _, _ = place(q, p.subject.Permissions) // only for the question's wording
		err = r.agree(ctx, p)
	}
	if err != nil {
		r.refused(p, q, err)
	}
	return err
}

// Consented says whether the user has agreed to the extension's current tools. It asks nobody; if that is unknown,
// the answer is no.
func (r *Runner) Consented(x *store.Extension) (bool, error) {
	v, err := Agreed(r.o.Consent, x)
	return err == nil && v.Status == consent.Allowed, err
}

// AnswersNow returns a function that tells the user's answer for an extension. All answers are read once, now. An
// unknown answer counts as not asked. The function may be used from several goroutines.
func (r *Runner) AnswersNow() func(*store.Extension) consent.Status {
	verdict, err := r.o.Consent.Reader()
	return func(x *store.Extension) consent.Status {
		if err != nil {
			return consent.NotAsked
		}
		subject, err := Subject(x)
		if err != nil {
			return consent.NotAsked
		}
		return verdict(subject).Status
	}
}

// agree makes sure that the user has agreed to the job.
func (r *Runner) agree(ctx context.Context, p *job) error {
	_, agreed, err := r.agreed(p)
	if agreed || err != nil {
		return err
	}
	if r.o.Asker == nil {
		return p.refuse(needed(p), consent.ErrNobody)
	}
	select {
	case r.asking <- struct{}{}:
		defer func() { <-r.asking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	verdict, agreed, err := r.agreed(p) // another call may have asked meanwhile
	if agreed || err != nil {
		return err
	}
	answer, err := r.o.Asker.Ask(ctx, p.question(verdict))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return p.refuse(fmt.Sprintf("%s\nWhy you were not asked: %v", needed(p), err), err)
	}
	return r.grant(ctx, p, answer)
}

// agreed says whether the job may run because of a stored answer or earlier agreement. The error is a refusal.
func (r *Runner) agreed(p *job) (consent.Verdict, bool, error) {
	verdict, err := r.o.Consent.Lookup(p.subject)
	if err != nil {
		return verdict, false, p.refuse(err.Error(), err)
	}
	if verdict.Status == consent.Denied {
		return verdict, false, p.refuse(fmt.Sprintf("the user has refused for good to run tools of %q; pollux extensions consent revoke %s has pollux ask again", p.extension.Name, p.extension.Name), errDenied)
	}
	return verdict, verdict.Status == consent.Allowed || p.q.Agreed, nil
}

// grant stores an answer. It returns nil if the tool may run.
func (r *Runner) grant(ctx context.Context, p *job, answer consent.Answer) error {
	switch answer {
	case consent.Once:
		return nil
	case consent.Always:
		if err := r.o.Consent.Grant(ctx, p.subject, answer, consent.Answered()); err != nil {
			return err
		}
		r.note(p, "allowed for this content")
		return nil
	case consent.Never:
		if err := r.o.Consent.Grant(ctx, p.subject, answer, consent.Answered()); err != nil {
			r.o.Log.Error("a refusal was not kept", "extension", p.extension.Name, "err", err)
		}
		r.note(p, "refused for good")
		return p.refuse(fmt.Sprintf("the user has refused for good to run tools of %q", p.extension.Name), errDenied)
	}
	return p.refuse(fmt.Sprintf("the user did not agree to run tools of %q", p.extension.Name), nil)
}

// errDenied is in a RefusedError if the user has said never.
var errDenied = errors.New("refused for good")

// needed says what would allow the run.
func needed(p *job) string {
	return fmt.Sprintf("tools of %q may not run yet: nobody has agreed to that. To allow them, type in a terminal of your own (not a model's): pollux extensions consent grant %s", p.extension.Name, p.extension.Name)
}

func (p *job) refuse(text string, err error) error {
	return &RefusedError{Why: BecauseConsent, Extension: p.extension.Name, Tool: p.tool.Name, Text: text, Err: err}
}

func (p *job) question(v consent.Verdict) consent.Question {
	return consent.NewQuestion(p.subject, v, p.content.manifest, p.tool, p.workspace, p.by)
}

// policyHash identifies a set of permissions in the audit log.
func policyHash(p permission.Permissions) string {
	data, err := json.Marshal(p)
	if err != nil {
		return "" // cannot fail for this type
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
