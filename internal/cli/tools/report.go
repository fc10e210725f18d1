package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/pollux-companion/pollux/internal/cli/confine"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/runner"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/sandbox"
	"github.com/pollux-companion/pollux/internal/words"
)

// runReport is the output of extensions run --json.
type runReport struct {
	OK           bool                 `json:"ok" jsonschema:"whether the tool ran and ended with exit code 0"`
	Extension    string               `json:"extension,omitempty"`
	Version      string               `json:"version,omitempty"`
	Tool         string               `json:"tool,omitempty"`
	Value        json.RawMessage      `json:"value,omitempty" jsonschema:"the answer of a tool that answers JSON, as it was printed"`
	Text         string               `json:"text,omitempty" jsonschema:"the answer of any other tool, or what should have been JSON"`
	NotJSON      string               `json:"notJson,omitempty" jsonschema:"why the answer is no JSON value, although it should be"`
	Stderr       string               `json:"stderr,omitempty"`
	ExitCode     int                  `json:"exitCode"`
	Signal       int                  `json:"signal,omitempty"`
	Limit        string               `json:"limit,omitempty" jsonschema:"time, memory or output, when that limit ended it"`
	Denials      []sandbox.Denial     `json:"denials"`
	Files        []runner.FileDenial  `json:"files" jsonschema:"files that its permissions keep from it, as far as it spoke of them"`
	Quarantined  []sandbox.Quarantine `json:"quarantined"`
	Milliseconds int64                `json:"milliseconds"`
	MemoryBytes  int64                `json:"memoryBytes"`
	Assurance    string               `json:"assurance,omitempty" jsonschema:"full, reduced, or none with --unsafe-no-sandbox"`
	Workspace    string               `json:"workspace,omitempty"`
	Error        *runError            `json:"error,omitempty"`
}

// runError says why a tool was not run, or failed.
type runError struct {
	Kind    string     `json:"kind" jsonschema:"extension, tool, arguments, consent, disabled, broken, place, sandbox, limit, signal, exit or other"`
	Message string     `json:"message"`
	Nearest []string   `json:"nearest,omitempty" jsonschema:"names that may be meant"`
	Missing []string   `json:"missing,omitempty" jsonschema:"arguments that are missing"`
	Unknown []string   `json:"unknown,omitempty" jsonschema:"arguments that the tool does not have"`
	Wrong   []wrongArg `json:"wrong,omitempty"`
}

type wrongArg struct {
	Name string `json:"name"`
	Want string `json:"want"`
	Got  string `json:"got"`
}

func newRunReport(r *runner.Result, err error) runReport {
	out := runReport{OK: err == nil, Denials: []sandbox.Denial{}, Files: []runner.FileDenial{}, Quarantined: []sandbox.Quarantine{}}
	if r != nil {
		out = runReport{
			OK: err == nil, Extension: r.Extension, Version: r.Version, Tool: r.Tool, Value: r.JSON, NotJSON: r.NotJSON, Stderr: r.Stderr,
			ExitCode: r.Code, Signal: r.Signal, Denials: console.List(r.Denials), Files: console.List(r.Files), Quarantined: console.List(r.Quarantined),
			Milliseconds: r.Elapsed.Milliseconds(), MemoryBytes: r.Memory, Assurance: r.Assurance, Workspace: r.Workspace,
		}
		if r.JSON == nil {
			out.Text = r.Text
		}
		if r.Limit != nil {
			out.Limit = r.Limit.Kind
		}
	}
	if err != nil {
		out.Error = newRunError(err)
	}
	return out
}

func newRunError(err error) *runError {
	e := &runError{Kind: "other", Message: err.Error()}
	var (
		unknown *store.NotFoundError
		tool    *runner.UnknownToolError
		wrong   *runner.ArgumentError
		refused *runner.RefusedError
		failed  *runner.FailedError
	)
	switch {
	case errors.As(err, &unknown):
		e.Kind, e.Nearest = "extension", unknown.Nearest
	case errors.As(err, &tool):
		e.Kind, e.Nearest = "tool", tool.Nearest
	case errors.As(err, &wrong):
		e.Kind, e.Missing = "arguments", wrong.Missing
		for _, u := range wrong.Unknown {
			e.Unknown = append(e.Unknown, u.Name)
			e.Nearest = append(e.Nearest, u.Nearest...)
		}
		e.Wrong = console.Each(wrong.Wrong, func(w runner.WrongArg) wrongArg { return wrongArg(w) })
	case errors.As(err, &refused):
		e.Kind = string(refused.Why)
	case errors.As(err, &failed) && failed.Result.Limit != nil:
		e.Kind = "limit"
	case errors.As(err, &failed) && failed.Result.Signal != 0:
		e.Kind = "signal"
	case errors.As(err, &failed):
		e.Kind = "exit"
	case console.IsNotRun(toolError(err)):
		e.Kind = "sandbox"
	}
	return e
}

// printOutput passes on the tool's output: unchanged to a program, and made safe for a screen.
func printOutput(kit *Kit, r *runner.Result) {
	passOn(kit, kit.Err, []byte(r.Stderr))
	passOn(kit, kit.Out, r.Stdout)
}

func passOn(kit *Kit, w io.Writer, data []byte) {
	if confine.Painted(w) {
		data = []byte(words.PrintableLines(string(data)))
		if len(data) > 0 && data[len(data)-1] != '\n' {
			data = append(data, '\n')
		}
	}
	_, _ = w.Write(data) // a reader that has gone needs no more
}

// printRemarks prints on standard error what else happened in a run.
func printRemarks(kit *Kit, r *runner.Result) {
	for _, d := range r.Denials {
		at := d.Host
		if d.Port != 0 {
			at += ":" + strconv.Itoa(d.Port)
		}
		fmt.Fprintf(kit.Err, "pollux: refused: %s (%s)\n", words.Printable(at), d.Why)
	}
	if words := runner.MissedWords(r.Missed); words != "" {
		fmt.Fprintf(kit.Err, "pollux: %s\n", words)
	}
	for _, d := range r.Files {
		fmt.Fprintf(kit.Err, "pollux: refused: %s\n", d.Words())
	}
	confine.PrintQuarantined(kit.Console, r.Quarantined, "tool")
	if r.NotJSON != "" {
		fmt.Fprintf(kit.Err, "pollux: the tool should answer JSON, but %s\n", r.NotJSON)
	}
	switch {
	case r.Limit != nil:
		fmt.Fprintf(kit.Err, "pollux: %v\n", r.Limit)
	case r.Signal != 0:
		fmt.Fprintf(kit.Err, "pollux: %v\n", &runner.FailedError{Result: r})
	}
}

// explainReport is the output of extensions run --explain --json.
type explainReport struct {
	Extension   string        `json:"extension"`
	Version     string        `json:"version"`
	Tool        string        `json:"tool"`
	Runtime     string        `json:"runtime"`
	Consent     ConsentReport `json:"consent"`
	Workspace   string        `json:"workspace,omitempty"`
	Permissions []string      `json:"permissionsInWords"`
	Plan        *sandbox.Plan `json:"plan"`
	Arguments   string        `json:"arguments,omitempty" jsonschema:"what is wrong with the arguments"`
}

// explainTool prints the policy in force, without running anything.
func explainTool(ctx context.Context, kit *Kit, r *runner.Runner, q runner.Request, asJSON bool) error {
	e, err := r.Explain(q)
	if err != nil {
		return toolError(err)
	}
	report := explainReport{
		Extension: e.Subject.Extension, Version: e.Subject.Version, Tool: e.Tool.Name, Runtime: e.Tool.Runtime,
		Consent: NewConsentReport(e.Verdict), Workspace: e.Workspace, Permissions: consent.Sentences(e.Subject.Permissions), Plan: e.Plan,
	}
	if e.NotArguments != nil {
		report.Arguments = e.NotArguments.Error()
	}
	if asJSON {
		return kit.PrintJSON(report)
	}
	kit.Say("%s %s: %s, run with %s (%s)", report.Extension, report.Version, e.Tool.Signature(), e.Tool.Runtime, e.Plan.Program)
	kit.Say("consent: %s", e.Verdict.Words())
	for _, s := range report.Permissions {
		kit.Say("  %s", s)
	}
	if e.Workspace != "" {
		kit.Say("workspace: %s", e.Workspace)
	}
	if report.Arguments != "" {
		kit.Say("note: %s", report.Arguments)
	}
	_, err = io.WriteString(kit.Out, "\n"+words.PrintableLines(e.Plan.String()))
	return err
}
