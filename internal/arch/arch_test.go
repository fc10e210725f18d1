package arch

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/peers"
)

var update = flag.Bool("update", false, "rewrite the tables of ARCHITECTURE.md")

// TestArchitecture holds the tree to its rules, each in a subtest.
func TestArchitecture(t *testing.T) {
	root, err := peers.Root()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Packages) < 10 {
		t.Fatalf("only %d packages found below %s", len(tree.Packages), root)
	}
	for name, rule := range rules() {
		t.Run(name, func(t *testing.T) {
			for _, finding := range rule(tree) {
				t.Error(finding)
			}
		})
	}
	t.Run("arrows", func(t *testing.T) { arrows(t, tree, filepath.Join(root, "ARCHITECTURE.md")) })
}

// TestNamedTests: what these pages promise is held by the tests that they name. Each complaint has one.
func TestNamedTests(t *testing.T) {
	root, err := peers.Root()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"security.md", "complaints.md"} {
		missing, err := namedTests(tree, filepath.Join(root, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range missing {
			t.Error(finding)
		}
	}
	complaints, err := os.ReadFile(filepath.Join(root, "docs", "complaints.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(complaints), "| --- | --- | --- |\n")
	rows, _, _ = strings.Cut(rows, "\n\n")
	for row := range strings.Lines(rows) {
		if !strings.Contains(row, "`Test") {
			t.Errorf("docs/complaints.md names no test in %q", row)
		}
	}
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("`TestNamedTests`, `TestOfNothing`"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := namedTests(tree, page); err != nil || len(found) != 1 || !strings.Contains(found[0], "TestOfNothing") {
		t.Errorf("%q, %v", found, err)
	}
}

// TestWalks: the walks of ARCHITECTURE.md go through functions that exist, and one that does not is found.
func TestWalks(t *testing.T) {
	root, err := peers.Root()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range namedPlaces(tree, string(page), "## Four walks, five hops each") {
		t.Error(finding)
	}
	bad := "\n## Walk\n`internal/door`, `door.Door.verdict`, `ide/diffAccepted`, `door.Door.gone`, `door.Gone`, `ide/gone`\n## Next\n`gone`\n"
	if found := namedPlaces(tree, bad, "## Walk"); len(found) != 3 || !strings.Contains(found[2], "ide/gone") {
		t.Errorf("%q", found)
	}
	if found := namedPlaces(tree, bad, "## Elsewhere"); len(found) != 1 {
		t.Errorf("%q", found)
	}
}

// TestCitations: every number of the contract that a comment cites stands in docs/spec, and one that does not is found.
func TestCitations(t *testing.T) {
	root, err := peers.Root()
	if err != nil {
		t.Fatal(err)
	}
	missing, err := citations(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range missing {
		t.Error(finding)
	}
	const spec = "SP" + "EC" // so that this file cites nothing
	small := t.TempDir()
	for name, content := range map[string]string{
		"docs/spec/a.md": "# Page\n\n- **A-1** A rule, like A-3.\n- **§11.2 The page.** Text.\n\n## §8 K: a part\n",
		"a.go":           "package a\n\n// A is " + spec + " A-1, and " + spec + " §8, §11.2 and A-2.\n// " + spec + " A-3\n",
		"b.lua":          "-- " + spec + " B-1/A-1\n",
		"c.md":           spec + " Z-9\n",
	} {
		file := filepath.Join(small, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	missing, err = citations(small)
	want := []string{"a.go:3: " + spec + " A-2", "a.go:4: " + spec + " A-3", "b.lua:1: " + spec + " B-1"}
	if err != nil || !slices.EqualFunc(missing, want, strings.HasPrefix) {
		t.Errorf("%q, %v; want %q", missing, err, want)
	}
}

func rules() map[string]func(*goTree) []string {
	return map[string]func(*goTree) []string{
		"sentences": sentences, "sizes": sizes, "inits": inits, "names": names, "docs": docs,
		"platforms": platformNames, "variables": variables, "logs": logs, "pure": pure, "rooms": rooms, "strangers": strangers, "fan-outs": fanOuts, "locks": locks,
	}
}

// arrows checks the imports against the page's table, and the table against the code.
func arrows(t *testing.T, tree *goTree, file string) {
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	places, err := placesOf(string(page))
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range arrowsOf(tree, places) {
		t.Error(finding)
	}
	want, err := rewritten(string(page), tree, places)
	if err != nil {
		t.Fatal(err)
	}
	if want, err = measured(want, measures(tree)); err != nil {
		t.Fatal(err)
	}
	if want == string(page) {
		return
	}
	if !*update {
		t.Error("the tables of ARCHITECTURE.md are not what the code says; run: go test ./internal/arch -update")
		return
	}
	if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestMeasures: a chain and a figure that are not the page's are found, and what is near enough stays.
func TestMeasures(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"cmd/a/a.go":      "package a\n\nimport _ \"" + module + "/internal/b\"\n\n// A is.\ntype A int\n\nfunc (a A) B() {}\n\nfunc (a A) c() {}\n",
		"internal/b/b.go": "package b\n\nimport _ \"" + module + "/internal/c\"\n\nconst D, e = 1, 2\n",
		"internal/c/c.go": "package c\n", "internal/c/c_test.go": "package c\n", "e2e/e.go": "package e2e\n\nimport _ \"" + module + "/cmd/a\"\n",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, m := range measures(tree) {
		got[m.row] = m.value
	}
	want := map[string]int{
		"packages with code": 4, "lines of Go outside tests": 19, "the same without e2e": 16,
		"exported names": 3, "longest import chain": 3, "imports of the package with most": 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	page := "| packages | 1 | 4 |\n| lines, all | 9 | about 1,010 |\n| names | 9 | about 900 |\n| imports (x) | 9, 8 | 2, 1 |\n"
	out, err := measured(page, []measure{{"packages", 5, 0}, {"lines", 1000, 100}, {"names", 12345, 10}, {"imports", 3, 0}})
	if want := "| packages | 1 | 5 |\n| lines, all | 9 | about 1,010 |\n| names | 9 | about 12,350 |\n| imports (x) | 9, 8 | 3, 1 |\n"; err != nil || out != want {
		t.Errorf("%s%v", out, err)
	}
	if _, err := measured(page, []measure{{"nothing", 1, 0}}); err == nil {
		t.Error("a row that is missing is not said")
	}
}

// TestRulesFindWhatTheyForbid: each rule fails on a tree that breaks it and
// on nothing else in it.
func TestRulesFindWhatTheyForbid(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"good/good.go":                    "// Package good is as it should be.\npackage good\n\nimport \"errors\"\n\n// ErrX is documented.\nvar ErrX = errors.New(\"x\")\n\nvar table = []int{1}\n\n// First reads.\nfunc First() int { return table[0] }\n",
		"good/good_linux.go":              "package good\n\nimport \"runtime\"\n\nconst os = runtime.GOOS\n",
		"sentences/x.go":                  "package sentences\n",
		"sizes/x.go":                      "// Package sizes is long.\npackage sizes\n\nfunc f() {\n" + strings.Repeat("\tprint()\n", 99) + "}\n",
		"sizes/y.go":                      "package sizes\n" + strings.Repeat("\n", 600),
		"inits/x.go":                      "// Package inits starts by itself.\npackage inits\n\nfunc init() {}\n",
		"util/x.go":                       "// Package util says nothing.\npackage util\n",
		"docs/x.go":                       "// Package docs is silent.\npackage docs\n\nfunc F() {}\n\ntype T struct{}\n\nfunc (T) M() {}\n\nconst C = 1\n",
		"platforms/x.go":                  "// Package platforms asks.\npackage platforms\n\nimport \"runtime\"\n\nvar fold = map[string]bool{\"darwin\": true}[runtime.GOOS]\n\nconst linux = runtime.GOOS == \"linux\"\n\nfunc f() {\n\tswitch runtime.GOOS {\n\t}\n\tswitch {\n\tcase \"x\" != runtime.GOOS:\n\t}\n}\n",
		"variables/x.go":                  "// Package variables changes.\npackage variables\n\nimport \"regexp\"\n\nvar n int\n\nvar table = map[int]int{}\n\n// Exported can be changed by anybody.\nvar Exported = []int{1}\n\nvar compiled = regexp.MustCompile(`x{1,9}`)\n\nfunc f() { table[1] = 2 }\n",
		"logs/x.go":                       "// Package logs prints.\npackage logs\n\nimport _ \"log\"\n",
		"internal/core/x.go":              "// Package core reads files.\npackage core\n\nimport \"os\"\n\nvar _ = os.IsPathSeparator\n\nvar _ = os.Stat\n",
		"internal/companion/x.go":         "// Package companion names a view.\npackage companion\n\nimport _ \"x/internal/editor/web\"\n",
		"rooms/x.go":                      "// Package rooms knows an agent.\npackage rooms\n\nimport _ \"x/internal/agent/qwen\"\n",
		"internal/agent/x.go":             "// Package agent knows the agents.\npackage agent\n\nimport _ \"x/internal/agent/claude\"\n",
		"internal/agent/claude/x.go":      "// Package claude is a room.\npackage claude\n\n// Name is its own.\nconst Name = \"claude\"\n\nfunc is(s string) bool { return s == Name }\n",
		"strangers/x.go":                  "// Package strangers asks for names.\npackage strangers\n\nimport \"x/internal/agent/claude\"\n\nconst mine = \"qwen\"\n\nfunc f(s string) (bool, string) {\n\tswitch s {\n\tcase \"a\", \"codex\":\n\tcase claude.Name:\n\t}\n\treturn s != mine, mine + claude.Name\n}\n",
		"locks/x.go":                      "// Package locks releases its caller's mutex.\npackage locks\n\ntype t struct{ a, b interface{ Lock(); RLock(); Unlock(); RUnlock() } }\n\nfunc (x t) first() {\n\tx.a.Lock()\n\tx.b.Unlock()\n\tx.a.Unlock()\n}\n\nfunc (x t) second() { defer x.a.RUnlock(); x.a.Lock() }\n\nfunc (x t) third() func() { x.b.RLock(); return func() { x.b.RUnlock() } }\n",
		"wide/x.go":                       "// Package wide imports too much.\npackage wide\n\nimport (\n" + imports(16) + ")\n",
		"narrow/x.go":                     "// Package narrow imports enough.\npackage narrow\n\nimport (\n" + imports(15) + ")\n",
		"other/go.mod":                    "module other\n",
		"other/util/x.go":                 "package util\n",
		"testdata/util/x.go":              "package util\n",
		"node_modules/a/util/x.go":        "package util\n",
		filepath.Join("e2e", "x_test.go"): "// Package e2e only tests.\npackage e2e\n\nimport _ \"testing\"\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"sentences": {"sentences:"}, "sizes": {"sizes/x.go:4", "sizes/y.go:"}, "inits": {"inits/x.go:4"}, "names": {"util:"},
		"docs":      {"docs/x.go:4", "docs/x.go:6", "docs/x.go:8", "docs/x.go:10"},
		"platforms": {"platforms/x.go:8", "platforms/x.go:11", "platforms/x.go:14"}, "variables": {"variables/x.go:6", "variables/x.go:8", "variables/x.go:11", "variables/x.go:13"},
		"logs": {"logs/x.go:4"}, "pure": {"internal/core/x.go:8"},
		"rooms": {"internal/companion/x.go:4", "rooms/x.go:4", "strangers/x.go:4"}, "fan-outs": {"wide:"},
		"locks":     {"locks/x.go:8", "locks/x.go:12"},
		"strangers": {"strangers/x.go:10", "strangers/x.go:11", "strangers/x.go:13"},
	}
	for name, rule := range rules() {
		got := rule(tree)
		if len(got) != len(want[name]) {
			t.Errorf("%s finds %q, want %q", name, got, want[name])
			continue
		}
		for i, finding := range got {
			if !strings.HasPrefix(finding, want[name][i]) {
				t.Errorf("%s finds %q, want %q…", name, finding, want[name][i])
			}
		}
	}
}

// imports are lines that import n packages of this repository.
func imports(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "\t_ \"%s/p%d\"\n", module, i)
	}
	return b.String()
}

// TestArrowsFindEveryDirection: up, into the other half, also from a program, into a half from what both share, into the tests' tools, on a wrong
// floor, a package without a row, a row without a package.
func TestArrowsFindEveryDirection(t *testing.T) {
	root := t.TempDir()
	for dir, imports := range map[string]string{
		"top": "bottom", "left": "right", "right": "low", "low": "", "bottom": "top", "new": "", "tooled": "internal/peers", "internal/peers": "low",
		"shared": "right", "asks": "internal/control", "internal/control": "low", "program": "right", "command": "left", "halved": "", "bench": "",
	} {
		source := "// Package x is one of several | kinds. More.\npackage x\n"
		if imports != "" {
			source += "\nimport _ \"" + module + "/" + imports + "\"\n"
		}
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, dir, "x.go"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page := "# x\n" + tableStart + "\n| assemblies | both | `top` |\n| edges | extension | `left` |\n| edges | companion | `right` |\n| domain | companion | `low` |\n" +
		"| ground | both | `bottom` |\n| edges | both | `tooled` |\n| tests | both | `internal/peers` |\n| domain | both | `gone` |\n| edges | both | `shared` |\n" +
		"| edges | extension | `asks` |\n| edges | companion | `internal/control` |\n| programs | both | `program` |\n| programs | companion | `command` |\n| ground | companion | `halved` |\n| tests | both | `bench` |\n" +
		tableEnd + "\nrest\n"
	places, err := placesOf(page)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	got := arrowsOf(tree, places)
	want := []string{
		"bench (tests, both): the floor tests", "bottom (ground, both): imports top (assemblies, both); arrows", "command (programs, companion): imports left (edges, extension); the halves", "gone:", "halved (ground, companion): the ground",
		"left (edges, extension): imports right (edges, companion); the halves", "new:",
		"shared (edges, both): imports right (edges, companion); what both", "tooled (edges, both): imports internal/peers (tests, both); that is for tests",
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("found %q, want %q", got, want)
	}
	written, err := rewritten(page, tree, places)
	if err != nil {
		t.Fatal(err)
	}
	if row := "| assemblies | both | `top` | is one of several \\| kinds | `bottom` |\n"; !strings.Contains(written, row) || !strings.HasSuffix(written, tableEnd+"\nrest\n") {
		t.Errorf("no row %q in\n%s", row, written)
	}
	for _, bad := range []string{"no table", tableStart + "\n| cellar | both | `x` |\n" + tableEnd, tableStart + "\n| ground | third | `x` |\n" + tableEnd, tableStart + "\n| ground | both | `x` |\n| edges | both | `x` |\n" + tableEnd} {
		if _, err := placesOf(bad); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}
