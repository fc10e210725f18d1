package capability

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
)

func offered(name string, tools ...string) Candidate {
	m := &manifest.Manifest{Name: name}
	for _, t := range tools {
		if doc, ok := strings.CutPrefix(t, "doc:"); ok {
			m.Docs = append(m.Docs, manifest.Doc{Name: doc})
		} else {
			m.Tools = append(m.Tools, manifest.Tool{Name: t})
		}
	}
	return Candidate{Extension: Extension{Manifest: m}, Enabled: true, Agreed: true}
}

// SPEC P-3: names are valid, short and unique, and do not change when another extension is enabled or agreed to.
func TestNames(t *testing.T) {
	long := strings.Repeat("l", 52)
	all := []Candidate{
		offered("a", "lint", "only", "mcp_x_y", ReadDoc, "b_c"), offered("a-b", "lint", long, "c_d", "b_c"), offered("mcp-x", "Lint", long, "t", "describe_Extension"),
		offered("c", "a_lint", "-"), offered(strings.Repeat("e", 128), long, "t"),
	}
	all[1].Enabled, all[2].Agreed = false, false
	some := New(all)
	for i := range all {
		all[i].Enabled, all[i].Agreed = true, true
	}
	set := New(all)
	legal := regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9_-]*$`)
	seen := map[string]bool{ReadDoc: true, Describe: true}
	byQualified := map[string]string{}
	for _, tool := range set.Tools() {
		n := tool.Callable
		if len(n) > MaxName || !legal.MatchString(n) && tool.Name != "-" || seen[strings.ToLower(n)] || strings.HasPrefix(n, "mcp_") {
			t.Errorf("%s is called %q", tool.Qualified(), n)
		}
		seen[strings.ToLower(n)] = true
		byQualified[tool.Qualified()] = n
		if found, err := set.Tool(n); err != nil || found.Qualified() != tool.Qualified() {
			t.Errorf("%q finds %s, %v", n, found.Callable, err)
		}
		if found, err := set.Tool(tool.Qualified()); err != nil || found.Callable != n {
			t.Errorf("%q finds %s, %v", tool.Qualified(), found.Callable, err)
		}
	}
	if byQualified["a.only"] != "only" || byQualified["a.lint"] == "lint" {
		t.Errorf("%v", byQualified)
	}
	for _, tool := range some.Tools() {
		if byQualified[tool.Qualified()] != tool.Callable {
			t.Errorf("%s was %s and became %s", tool.Qualified(), tool.Callable, byQualified[tool.Qualified()])
		}
	}
	if len(some.Waiting()) != 1 || len(some.Extensions()) != 3 {
		t.Errorf("%v wait, %d are offered", some.Waiting(), len(some.Extensions()))
	}
}

// Many extensions with the same tool name all get a name.
func TestManyOfOneName(t *testing.T) {
	var all []Candidate
	for i := range 300 {
		all = append(all, offered(fmt.Sprintf("%s%d", strings.Repeat("x", 100), i), "lint", "lint_it"))
	}
	seen := map[string]bool{}
	for _, tool := range New(all).Tools() {
		if seen[tool.Callable] || len(tool.Callable) > MaxName {
			t.Fatalf("%q", tool.Callable)
		}
		seen[tool.Callable] = true
	}
}

// An unknown name gets the nearest names, an ambiguous one the choices.
func TestLookup(t *testing.T) {
	set := New([]Candidate{offered("one", "lintFile", "same", "doc:rules", "doc:shared", "doc:a.b"), offered("two", "same", "doc:shared"), offered("a", "doc:b")})
	for name, want := range map[string]string{
		"lintFile": "one.lintFile", "one.lintFile": "one.lintFile", "two.same": "two.same", "two_same": "two.same",
		"lintfile": `there is no tool "lintfile"; did you mean lintFile?`,
		"same":     `several extensions have a tool "same"; write one.same or two.same`,
		"one.sane": `there is no tool "one.sane"; did you mean one.same?`,
		"quux":     `there is no tool "quux"; describe_extension() lists all that there are`,
	} {
		tool, err := set.Tool(name)
		var got string
		if err != nil {
			got = err.Error()
		} else {
			got = tool.Qualified()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{"rules": "one.rules", "a.b": "a.b", "one.a.b": "one.a.b", "ext://two/docs/shared": "two.shared"} {
		if doc, err := set.Doc(name); err != nil || doc.Qualified() != want {
			t.Errorf("%s: %s %v, want %s", name, doc.Name, err, want)
		}
	}
	for _, d := range set.Docs() {
		if found, err := set.Doc(d.Readable); err != nil || found.Qualified() != d.Qualified() {
			t.Errorf("%q finds %s, %v", d.Readable, found.Name, err)
		}
	}
	var ambiguous *AmbiguousError
	if _, err := set.Doc("shared"); !errors.As(err, &ambiguous) || len(ambiguous.Choices) != 2 {
		t.Errorf("%v", err)
	}
	var unknown *UnknownError
	if _, err := set.Extension("oen"); !errors.As(err, &unknown) || unknown.Nearest[0] != "one" {
		t.Errorf("%v", err)
	}
}
