package extensions

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/extension/scaffold"
	"github.com/pollux-companion/pollux/internal/peers"
)

// Every template of `extensions new`, and both examples, installed by pollux
// and taken by the real CLI: it validates and lists them, connects to the
// server of the one that has one, and finds what each brings (SPEC E-1, M-1).
func TestTemplatesInTheCLI(t *testing.T) {
	h := newHouse(t)
	names := []string{"code-analyzer", "hello-extension"}
	for _, template := range scaffold.Templates() {
		name := "made-" + template.Name
		names = append(names, name)
		h.us("new", filepath.Join(h.ws, name), "--template", template.Name)
		h.us("install", filepath.Join(h.ws, name), "--yes")
	}
	root, err := peers.Root()
	must(t, err)
	for _, name := range names[:2] {
		h.us("install", filepath.Join(root, "examples", name), "--yes")
	}
	for _, name := range []string{"made-mcp-server", "made-tool-python"} { // each start of the CLI takes seconds
		if said := h.them("validate", filepath.Join(h.ws, name)); !strings.Contains(said, "successfully validated") {
			t.Errorf("the CLI does not take %s: %s", name, said)
		}
	}
	list := h.theyList()
	for _, name := range names {
		if x, ok := list[name]; !ok || !x.IsActive {
			t.Errorf("the CLI lists %s as %+v (%v)", name, x, ok)
		}
		if x := h.weList()[name]; x.Problem != "" || !x.Enabled.Workspace {
			t.Errorf("pollux lists %s as %+v", name, x)
		}
	}
	if files := list["made-context"].ContextFiles; len(files) != 1 || filepath.Base(files[0]) != "GEMINI.md" {
		t.Errorf("the CLI reads %q of the context template", files)
	}
	_, said, code := h.run(append(slices.Clone(h.gemini), "mcp", "list"), "")
	if code != 0 || !strings.Contains(said, "made-mcp-server") || !strings.Contains(said, "Connected") {
		t.Errorf("gemini mcp list: exit code %d\n%s", code, said)
	}
	// The CLI knows nothing of tools and permissions; pollux says both.
	said = h.us("describe", "code-analyzer")
	for _, want := range []string{"lintFile(file: string)", "linter-rules.example.com (https only)", "Its tools may change no files."} {
		if !strings.Contains(said, want) {
			t.Errorf("describe does not say %q:\n%s", want, said)
		}
	}
}
