package extensions

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/peers"
)

// MCP's own inspector, a second client that nobody here wrote: it lists and calls what pollux mcp offers.
func TestInspector(t *testing.T) {
	inspector := peers.Command(t, peers.Inspector)
	h := bridged(t)
	write(t, filepath.Join(filepath.Dir(h.ws), "package.json"), "{}") // the inspector looks for its own from here, by mistake
	inspect := func(into any, args ...string) {
		t.Helper()
		all := append(append([]string{}, inspector...), h.pollux, "mcp", "--ide", "--method")
		out, both, code := h.run(append(all, args...), "")
		if err := json.Unmarshal([]byte(out), into); code != 0 || err != nil {
			t.Fatalf("%q: exit code %d, %v\n%s", args, code, err, both)
		}
	}
	var list struct{ Tools []struct{ Name string } }
	inspect(&list, "tools/list")
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "checkDocumentDirty describe_extension getCurrentSelection getDiagnostics getLatestSelection getOpenEditors getWorkspaceFolders lintFile openDiff openFile read_doc" {
		t.Errorf("tools %s", got)
	}
	var called struct {
		Content []struct{ Text string }
		IsError bool
	}
	inspect(&called, "tools/call", "--tool-name", "lintFile", "--tool-arg", "file="+filepath.Join("src", "index.js"))
	if called.IsError || len(called.Content) != 1 || !strings.Contains(called.Content[0].Text, `"rule": "no-var"`) {
		t.Errorf("the call: %+v", called)
	}
	var read struct{ Contents []struct{ Text string } }
	inspect(&read, "resources/read", "--uri", "ext://code-analyzer/docs/linter-rules")
	if len(read.Contents) != 1 || !strings.Contains(read.Contents[0].Text, "Lines over 120 characters") {
		t.Errorf("the document: %+v", read)
	}
	var prompts struct {
		Prompts []struct{ Name, Description string }
	}
	inspect(&prompts, "prompts/list")
	if len(prompts.Prompts) != 1 || prompts.Prompts[0].Description != "Lint the file src/index.js" {
		t.Errorf("prompts: %+v", prompts)
	}
}
