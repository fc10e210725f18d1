package manifest

import (
	"fmt"
	"strings"

	"github.com/pollux-companion/pollux/internal/words"
)

// Severity says what a finding means for the extension.
type Severity int

// The severities, mildest first.
const (
	Note    Severity = iota // worth knowing; nothing is wrong
	Warning                 // it loads, but may not do what its author expects
	Error                   // it must not be installed or run
)

// String returns the severity in lower case, as reports print it.
func (s Severity) String() string { return [...]string{"note", "warning", "error"}[s] }

// MarshalText makes the severity a string in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one remark about a manifest (SPEC E-4).
type Finding struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`           // as given to Parse or Load
	Line     int      `json:"line"`           // 1-based; 0 if the finding is about no place in the file
	Column   int      `json:"column"`         // 1-based, in code points
	Path     string   `json:"path,omitempty"` // the field, such as tools[0].runtime
	Text     string   `json:"text,omitempty"` // the text in question, cut at 80 characters
	Message  string   `json:"message"`
	Fix      string   `json:"fix,omitempty"` // what to do about it
}

// String returns one line: file:line:column: severity: message: fix. It is safe to print: control characters of the
// foreign file are removed.
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(words.Printable(f.File))
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
	}
	b.WriteString(": " + f.Severity.String() + ": " + words.Printable(f.Message))
	if f.Text != "" && !strings.Contains(f.Message, strings.Trim(f.Text, `"`)) {
		fmt.Fprintf(&b, " (%s)", words.Printable(f.Text))
	}
	if f.Fix != "" {
		b.WriteString("; " + words.Printable(f.Fix))
	}
	return b.String()
}

// Findings are all findings, in the order of the file.
type Findings []Finding

// Count returns the number of findings of severity s.
func (fs Findings) Count(s Severity) int {
	n := 0
	for _, f := range fs {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Err returns nil if no finding is an Error. Otherwise it names the first one and how many more there are.
func (fs Findings) Err() error {
	n := fs.Count(Error)
	if n == 0 {
		return nil
	}
	for _, f := range fs {
		if f.Severity == Error {
			return &InvalidError{First: f, More: n - 1}
		}
	}
	return nil
}

// InvalidError says that a manifest must not be used.
type InvalidError struct {
	First Finding
	More  int // further errors
}

// Error returns the first finding and the number of the others.
func (e *InvalidError) Error() string {
	if e.More == 0 {
		return e.First.String()
	}
	return fmt.Sprintf("%s (and %d more; pollux extensions validate shows them)", e.First, e.More)
}
