package capability

import (
	"fmt"
	"strings"

	"github.com/pollux-companion/pollux/internal/words"
)

// An UnknownError says that nothing with that name is offered.
type UnknownError struct {
	Kind    string // tool, document or extension
	Name    string // as the caller wrote it
	Nearest []string
}

// Error suggests near names, or says how to list all.
func (e *UnknownError) Error() string {
	text := fmt.Sprintf("there is no %s %q", e.Kind, words.Shorten(e.Name, 80))
	if len(e.Nearest) > 0 {
		return text + "; did you mean " + strings.Join(e.Nearest, " or ") + "?"
	}
	return text + "; " + Describe + "() lists all that there are"
}

// An AmbiguousError says that several extensions offer something with that name.
type AmbiguousError struct {
	Kind, Name string
	Choices    []string // the qualified names
}

// Error names the choices.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("several extensions have a %s %q; write %s", e.Kind, e.Name, strings.Join(e.Choices, " or "))
}

// WaitingTool finds a tool that waits for the user's consent, by the same names as Tool. Calling it asks the user.
// Before that, nothing about it may be told to a model.
func (s *Set) WaitingTool(name string) (Tool, bool) {
	t, err := (&Set{tools: s.unagreed}).Tool(name)
	return t, err == nil
}

// Tool finds a tool by its own name if that is unique among offered extensions, by extension.tool, or by its callable
// name. The error is an *UnknownError or an *AmbiguousError.
func (s *Set) Tool(name string) (Tool, error) {
	all := make([]entry[Tool], len(s.tools))
	for i, t := range s.tools {
		all[i] = entry[Tool]{t, t.Name, t.Qualified(), t.Callable}
	}
	return find("tool", name, all)
}

// Doc finds a document by its own name if that is unique among offered extensions, by extension.document, or by its
// URI. The error is an *UnknownError or an *AmbiguousError.
func (s *Set) Doc(name string) (Doc, error) {
	all := make([]entry[Doc], len(s.docs))
	for i, d := range s.docs {
		all[i] = entry[Doc]{d, d.Name, d.Qualified(), d.URI()}
	}
	return find("document", name, all)
}

// Extension finds an offered extension by name, ignoring case.
func (s *Set) Extension(name string) (*Extension, error) {
	names := make([]string, len(s.extensions))
	for i, x := range s.extensions {
		if strings.EqualFold(x.Name, name) {
			return x, nil
		}
		names[i] = x.Name
	}
	return nil, &UnknownError{"extension", name, words.Nearest(name, names)}
}

// entry is a thing with its names.
type entry[T any] struct {
	value                T
	name, qualified, own string
}

func find[T any](kind, name string, all []entry[T]) (T, error) {
	var found []entry[T]
	var names, qualified []string
	for _, e := range all {
		if e.qualified == name || e.own == name && e.name != name {
			return e.value, nil
		}
		if e.name == name {
			found = append(found, e)
			qualified = append(qualified, e.qualified)
		}
		if strings.Contains(name, ".") {
			names = append(names, e.qualified)
		} else {
			names = append(names, e.name)
		}
	}
	if len(found) == 1 {
		return found[0].value, nil
	}
	var none T
	if len(found) > 1 {
		return none, &AmbiguousError{kind, name, qualified}
	}
	return none, &UnknownError{kind, name, unique(words.Nearest(name, names))}
}

func unique(all []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range all {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
