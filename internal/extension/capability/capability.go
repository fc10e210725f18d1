// Package capability is the registry of what extensions offer a model (SPEC M-3): the tools, documents and examples,
// the extension each belongs to, whether they are offered here, and their names.
package capability

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
)

// Bridge is the name of the extension that pollux itself writes for Gemini CLI (SPEC P-3). It is never a candidate
// here.
const Bridge = "pollux"

// An Extension is an extension that is offered. It is read-only.
type Extension struct {
	*manifest.Manifest
	Dir string // its folder, absolute
	// Folder is the folder in the store, which for a link is not Dir; "" if the extension lies in no store.
	Folder string
	// Local says that it is enabled in this workspace but not elsewhere: somebody wanted it here.
	Local bool
	// Used is when one of its tools last ran; zero for never.
	Used time.Time
}

// A Tool is a tool that is offered.
type Tool struct {
	manifest.Tool
	Extension *Extension
	// Callable is the name for calls: the tool's own, or with its extension's name in front if that is not unique. It
	// has letters, digits, _ and -, at most MaxName characters, and is different for each tool.
	Callable string
}

// Qualified returns the name with the extension in front, as in code-analyzer.lintFile.
func (t Tool) Qualified() string { return t.Extension.Name + "." + t.Name }

// A Doc is a document that is offered.
type Doc struct {
	manifest.Doc
	Extension *Extension
	// Readable is the name for reading it: its own if that is unique, otherwise Qualified.
	Readable string
}

// Qualified returns the name with the extension in front, as in code-analyzer.linter-rules.
func (d Doc) Qualified() string { return d.Extension.Name + "." + d.Name }

// URI returns the address for MCP clients.
func (d Doc) URI() string { return "ext://" + d.Extension.Name + "/docs/" + d.Name }

// A Candidate is an installed extension, with what decides whether it is offered.
type Candidate struct {
	Extension
	// Enabled says that it is enabled in this workspace and loads without errors.
	Enabled bool
	// Agreed says that the user consented to its current content; Refused, that they never will.
	Agreed, Refused bool
}

// A Set is what is offered in one place at one moment. It is read-only and safe for concurrent use.
type Set struct {
	extensions []*Extension
	tools      []Tool
	docs       []Doc
	waiting    []*Extension
	unagreed   []Tool
}

// New makes a set of the enabled and agreed candidates: first those wanted in this workspace, then the most recently
// used, then by name. Names are settled among all candidates, offered or not, so consent and enabling never rename
// anything.
func New(candidates []Candidate) *Set {
	s := &Set{}
	order := slices.Clone(candidates)
	slices.SortStableFunc(order, func(a, b Candidate) int {
		if a.Local != b.Local {
			if a.Local {
				return -1
			}
			return 1
		}
		return cmp.Or(b.Used.Compare(a.Used), strings.Compare(a.Name, b.Name))
	})
	n := newNames(order)
	for i := range order {
		c := &order[i]
		switch {
		case !c.Enabled || len(c.Tools)+len(c.Docs) == 0:
			continue
		case !c.Agreed:
			if !c.Refused {
				s.waiting = append(s.waiting, &c.Extension)
			}
			for _, t := range c.Tools {
				s.unagreed = append(s.unagreed, Tool{t, &c.Extension, n.tool(c.Name, t.Name)})
			}
			continue
		}
		x := &c.Extension
		s.extensions = append(s.extensions, x)
		for _, t := range x.Tools {
			s.tools = append(s.tools, Tool{t, x, n.tool(x.Name, t.Name)})
		}
		for _, d := range x.Docs {
			s.docs = append(s.docs, Doc{d, x, n.doc(x.Name, d.Name)})
		}
	}
	slices.SortFunc(s.waiting, func(a, b *Extension) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// Extensions returns the offered extensions, the most relevant first.
func (s *Set) Extensions() []*Extension { return s.extensions }

// Tools returns all offered tools, in the order of Extensions and manifests.
func (s *Set) Tools() []Tool { return s.tools }

// Docs returns all offered documents, in the order of Extensions and manifests.
func (s *Set) Docs() []Doc { return s.docs }

// Waiting names the extensions that would be offered if the user agreed. Their authors chose the names: show them to
// the user, not to a model.
func (s *Set) Waiting() []string {
	names := make([]string, len(s.waiting))
	for i, x := range s.waiting {
		names[i] = x.Name
	}
	return names
}

// Only returns the part of the set for which keep is true, with the same names.
func (s *Set) Only(keep func(*Extension) bool) *Set {
	return &Set{
		extensions: filter(s.extensions, keep), waiting: filter(s.waiting, keep),
		tools:    filter(s.tools, func(t Tool) bool { return keep(t.Extension) }),
		docs:     filter(s.docs, func(d Doc) bool { return keep(d.Extension) }),
		unagreed: filter(s.unagreed, func(t Tool) bool { return keep(t.Extension) }),
	}
}

// ToolsOf returns the tools of one extension.
func (s *Set) ToolsOf(x *Extension) []Tool {
	return filter(s.tools, func(t Tool) bool { return t.Extension == x })
}

// DocsOf returns the documents of one extension.
func (s *Set) DocsOf(x *Extension) []Doc {
	return filter(s.docs, func(d Doc) bool { return d.Extension == x })
}

func filter[T any](all []T, keep func(T) bool) []T {
	var out []T
	for _, v := range all {
		if keep(v) {
			out = append(out, v)
		}
	}
	return out
}
