package runner

import (
	"fmt"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/words"
)

// An UnknownToolError says that an extension has no tool with this name.
type UnknownToolError struct {
	Extension, Tool string
	Nearest         []string // similar names, the nearest first
	Known           []string // signatures of all its tools
}

func unknownTool(m *manifest.Manifest, name string) error {
	e := &UnknownToolError{Extension: m.Name, Tool: name}
	var names []string
	for _, t := range m.Tools {
		names = append(names, t.Name)
		e.Known = append(e.Known, t.Signature())
	}
	e.Nearest = words.Nearest(name, names)
	return e
}

// Error names the nearest tools, or all tools.
func (e *UnknownToolError) Error() string {
	text := fmt.Sprintf("the extension %q has no tool %q", e.Extension, words.Printable(e.Tool))
	switch {
	case len(e.Nearest) > 0:
		return text + "; did you mean " + orList(e.Nearest) + "?"
	case len(e.Known) == 0:
		return text + "; it has no tools at all"
	}
	return text + "; it has " + strings.Join(e.Known, ", ")
}

// An ArgumentError lists all faults of a call's arguments.
type ArgumentError struct {
	Signature string // of the tool
	Missing   []string
	Unknown   []UnknownArg
	Wrong     []WrongArg
	// Text is set, alone, if the arguments are not a JSON object.
	Text string
}

// An UnknownArg is an argument that the tool does not have.
type UnknownArg struct {
	Name    string
	Nearest []string // similar names, the nearest first
}

// A WrongArg is an argument whose value does not fit its type.
type WrongArg struct {
	Name string
	Want string // in words, such as "a whole number"
	Got  string // in words, without the value
}

// Error returns one sentence for each kind of fault, and the signature.
func (e *ArgumentError) Error() string {
	var parts []string
	if e.Text != "" {
		parts = append(parts, e.Text)
	}
	if len(e.Missing) > 0 {
		parts = append(parts, "missing: "+strings.Join(e.Missing, ", "))
	}
	for _, u := range e.Unknown {
		text := fmt.Sprintf("unknown: %s", words.Printable(u.Name))
		if len(u.Nearest) > 0 {
			text += " (did you mean " + strings.Join(u.Nearest, " or ") + "?)"
		}
		parts = append(parts, text)
	}
	for _, w := range e.Wrong {
		parts = append(parts, fmt.Sprintf("%s must be %s, and is %s", w.Name, w.Want, w.Got))
	}
	return fmt.Sprintf("the arguments do not fit %s: %s", e.Signature, strings.Join(parts, "; "))
}

// A Why says why a run was refused.
type Why string

// The reasons of a RefusedError.
const (
	BecauseConsent  Why = "consent"  // the user has not agreed, or has refused
	BecauseDisabled Why = "disabled" // the extension is disabled here
	BecauseBroken   Why = "broken"   // the extension does not load
	BecausePlace    Why = "place"    // its permissions need a workspace, and there is none
)

// A RefusedError says that a tool was not allowed to run. Text says what would change that.
type RefusedError struct {
	Why             Why
	Extension, Tool string
	Text            string
	Err             error // may wrap consent.ErrNobody or consent.ErrDamaged; may be nil
}

// Error returns the reason and what would change it.
func (e *RefusedError) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// A FailedError says that a tool ran and failed: an exit code other than 0, a signal, or a limit.
type FailedError struct{ Result *Result }

// Error says how it ended, without its output.
func (e *FailedError) Error() string {
	r := e.Result
	switch {
	case r.Limit != nil:
		return fmt.Sprintf("the tool %q did not finish: %v", r.Tool, r.Limit)
	case r.Signal != 0:
		return fmt.Sprintf("the tool %q was ended by signal %d (%s)", r.Tool, r.Signal, signalName(r.Signal))
	}
	return fmt.Sprintf("the tool %q failed with exit code %d", r.Tool, r.Code)
}

// failure returns the error of a run that failed, otherwise nil.
func (r *Result) failure() error {
	if r.Code == 0 && r.Limit == nil {
		return nil
	}
	return &FailedError{r}
}

// orList joins names with "or".
func orList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, " or ")
}

// signalName returns the common name of a signal that ends programs.
func signalName(n int) string {
	names := map[int]string{1: "hangup", 2: "interrupt", 3: "quit", 4: "illegal instruction", 6: "abort", 7: "bus error", 8: "arithmetic error",
		9: "kill", 11: "segmentation fault", 13: "broken pipe", 14: "alarm", 15: "terminate", 24: "too much processor time", 25: "too large a file", 31: "a forbidden system call"}
	if name, ok := names[n]; ok {
		return name
	}
	return "see signal(7)"
}
