package tools

import (
	"time"

	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/runner"
	"github.com/pollux-companion/pollux/internal/extension/store"
)

// ConsentReport says whether the user allows an extension's tools to run.
type ConsentReport struct {
	State string   `json:"state" jsonschema:"none: not asked yet; allowed; changed: allowed for other content; wider: allowed for less than it may do now; never: refused for good; unneeded: it has no tools and no documents; unknown: the answers cannot be read, so that nothing is allowed"`
	Since string   `json:"since,omitempty" jsonschema:"when that was answered: RFC 3339, UTC"`
	New   []string `json:"new,omitempty" jsonschema:"what it may do now beyond what was agreed to"`
	Words string   `json:"-"`
}

// NewConsentReport converts a verdict.
func NewConsentReport(v consent.Verdict) ConsentReport {
	r := ConsentReport{State: string(v.Status), New: v.Change.Wider, Words: v.Words()}
	if v.Record != nil {
		r.Since = v.Record.Time.Format(time.RFC3339)
	}
	return r
}

// Short returns the report in words for a column; "" for an extension without tools.
func (c *ConsentReport) Short() string {
	switch {
	case c == nil:
		return ""
	case c.State == string(consent.Allowed):
		return ", tools allowed"
	case c.State == string(consent.Denied), c.State == "unknown":
		return ", tools refused"
	}
	return ", tools ask first"
}

// ConsentOf returns the user's consent to an installed extension.
func (kit *Kit) ConsentOf(x *store.Extension) ConsentReport {
	if len(x.Manifest.Tools)+len(x.Manifest.Docs) == 0 {
		return ConsentReport{State: "unneeded", Words: "not needed: it has no tools and no documents"}
	}
	v, err := runner.Agreed(kit.Consent(), x)
	if err != nil {
		return ConsentReport{State: "unknown", Words: err.Error()}
	}
	return NewConsentReport(v)
}
