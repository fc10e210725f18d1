// Package capability is the registry of what extensions offer a model (SPEC
// M-3): which tools, documents and examples there are, from which extension,
// whether they are offered here, and under which names.
package capability

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/store"
)

// Bridge is the name of the extension that pollux itself writes for Gemini CLI (SPEC P-3). It offers nothing of its own here.
const Bridge = "pollux"

// An Extension is one that is offered. It is read-only.
type Extension struct {
	*manifest.Manifest
	Dir string // where its content lies, absolute
	// Installed is nil for one that lies in no store.
	Installed *store.Extension
	// Local says that it is on in this workspace though it is off elsewhere: somebody wanted it here.
	Local bool
	// Used is when one of its tools ran last; zero when never.
	Used time.Time
}

// A Tool is one tool that is offered.
type Tool struct {
	manifest.Tool
	Extension *Extension
	// Callable is the name under which it is called: its own, or one with its extension's
	// in front where another extension has a tool of that name. Letters, digits, _ and -,
	// at most MaxName characters, and different for each tool.
	Callable string
}

// Qualified is the name with the extension in front, as in code-analyzer.lintFile.
func (t Tool) Qualified() string { return t.Extension.Name + "." + t.Name }

// A Doc is one document that is offered.
type Doc struct {
	manifest.Doc
	Extension *Extension
	// Readable is the name under which it is read: its own where that is the only one, else Qualified.
	Readable string
}

// Qualified is the name with the extension in front, as in code-analyzer.linter-rules.
func (d Doc) Qualified() string { return d.Extension.Name + "." + d.Name }

// URI is the address under which MCP clients find it.
func (d Doc) URI() string { return "ext://" + d.Extension.Name + "/docs/" + d.Name }

// A Candidate is an installed extension with what decides whether it is offered.
type Candidate struct {
	Extension
	// Enabled says that it is on in this workspace and loads without errors.
	Enabled bool
	// Agreed says that the user consented to it as it lies there now, Refused that they never will.
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

// New makes a set of the candidates that are enabled and agreed to, those wanted in this workspace first, then
// those that were used most recently, then by name. The names of tools and documents are settled among all
// candidates, offered or not, so that consent and enabling rename nothing.
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

// Extensions are the offered extensions, in order of interest.
func (s *Set) Extensions() []*Extension { return s.extensions }

// Tools are all tools that are offered, in the order of Extensions and manifests.
func (s *Set) Tools() []Tool { return s.tools }

// Docs are all documents that are offered, in the order of Extensions and manifests.
func (s *Set) Docs() []Doc { return s.docs }

// Waiting names the extensions that would be offered if the user agreed to
// them. Their names are their authors' words: for the user's eyes, not for a model's.
func (s *Set) Waiting() []string {
	names := make([]string, len(s.waiting))
	for i, x := range s.waiting {
		names[i] = x.Name
	}
	return names
}

// Only is the part of the set that keep is true of, under the same names.
func (s *Set) Only(keep func(*Extension) bool) *Set {
	return &Set{
		extensions: filter(s.extensions, keep), waiting: filter(s.waiting, keep),
		tools:    filter(s.tools, func(t Tool) bool { return keep(t.Extension) }),
		docs:     filter(s.docs, func(d Doc) bool { return keep(d.Extension) }),
		unagreed: filter(s.unagreed, func(t Tool) bool { return keep(t.Extension) }),
	}
}

// ToolsOf are the tools of one extension.
func (s *Set) ToolsOf(x *Extension) []Tool {
	return filter(s.tools, func(t Tool) bool { return t.Extension == x })
}

// DocsOf are the documents of one extension.
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
