// Package consent keeps the user's answers: which extension's tools may run, for which
// content, and with which permissions (SPEC S-2). It also words the question, and asks
// it.
package consent

import (
	"fmt"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/permission"
)

// A Subject is what a user agrees to: an extension from a source, its content,
// and what its tools may do.
type Subject struct {
	Extension string `json:"extension"`
	// Source is where it came from, in this package's own form: equal for equal sources.
	Source  string `json:"source"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"` // "" when not known
	// Content is the hash of its content (manifest.Tree.ConsentHash); "" for a linked one,
	// whose content may change.
	Content     string                 `json:"content,omitempty"`
	Permissions permission.Permissions `json:"permissions"`
}

// Linked says that the extension is a folder under development. The user agrees once for
// each link, whatever its content becomes.
func (s Subject) Linked() bool { return s.Content == "" }

// An Answer is the user's answer.
type Answer string

// The answers; the zero value is none.
const (
	Once   Answer = "once"   // this run, and ask again
	Always Answer = "always" // every tool of this content, with these permissions or fewer
	Never  Answer = "never"  // no tool of this extension from this source, whatever its content becomes
)

// A Record is an answer that was kept.
type Record struct {
	Subject
	Answer Answer    `json:"answer"` // Always or Never
	Time   time.Time `json:"time"`   // UTC
	Via    string    `json:"via"`    // how it was given: terminal, editor, command
}

// A Status summarises the records about a subject.
type Status string

// The statuses.
const (
	NotAsked Status = "none"    // there is no record about this extension from this source
	Allowed  Status = "allowed" // its tools may run
	Changed  Status = "changed" // it was allowed, and its content has changed since
	Wider    Status = "wider"   // it was allowed, and may now do more
	Denied   Status = "never"   // its tools may not run
)

// A Verdict is a Status and its reasons.
type Verdict struct {
	Status Status
	Record *Record           // what was kept; nil for NotAsked
	Change permission.Change // of the permissions since Record, for Wider and Changed
}

// Words returns a verdict for a person, as half a sentence.
func (v Verdict) Words() string {
	day := ""
	if v.Record != nil {
		day = v.Record.Time.Local().Format("2006-01-02 15:04")
	}
	switch v.Status {
	case Allowed:
		if v.Record.Linked() {
			return "given on " + day + " for this link, whatever its content becomes"
		}
		return "given on " + day + " for this content"
	case Changed:
		return "given on " + day + " for other content; pollux asks again before the next run"
	case Wider:
		return "given on " + day + " for less than it may do now; pollux asks again before the next run (" + strings.Join(v.Change.Wider, " ") + ")"
	case Denied:
		return fmt.Sprintf("refused on %s for good; pollux extensions consent revoke %s has pollux ask again", day, v.Record.Extension)
	}
	return "not given yet; pollux asks before a tool's first run"
}
