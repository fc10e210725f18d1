package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
	"github.com/pollux-companion/pollux/internal/extension/runner"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/pace"
)

// many installs and allows n extensions, each with one tool that prints its argument.
func (w *world) many(n int) {
	w.t.Helper()
	w.env = append(w.env, "GEMINI_CLI=", "GEMINI_CLI_HOME=", "GEMINI_FORCE_FILE_STORAGE=true")
	for i := range n {
		dir := filepath.Join(w.root, ".gemini", "extensions", fmt.Sprintf("x%d", i))
		writeExtension(w.t, dir, fmt.Sprintf(`{"name":"x%d","version":"1.0.0","description":"An extension for analyzing and linting code files.","permissions":{"filesystem":{"read":"workspace"}},
			"tools":[{"name":"lint%d","description":"Runs the linter on a specified file and returns any issues found.","executable":"t.sh","runtime":"shell","args":[{"name":"file","type":"string","description":"The path to the file to lint."}]}]}`, i, i))
		if err := os.WriteFile(filepath.Join(dir, "t.sh"), []byte("echo got $2"), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	s, err := store.Open(&store.Options{Home: w.root, WorkDir: w.project})
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := s.List()
	if err != nil || len(all) != n {
		w.t.Fatalf("%d extensions: %v", len(all), err)
	}
	for _, x := range all {
		subject, err := runner.Subject(x)
		if err == nil {
			err = consent.Open(filepath.Join(w.state, "pollux")).Grant(w.t.Context(), subject, consent.Always, consent.Answered())
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// A sdkClient is the official SDK's client of pollux mcp.
type sdkClient struct {
	*mcp.ClientSession
	t *testing.T
}

func (w *world) sdk(args ...string) sdkClient {
	w.t.Helper()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(ctx context.Context, r *mcp.ToolListChangedRequest) { go r.Session.ListTools(ctx, nil) },
	}).Connect(w.t.Context(), &mcp.CommandTransport{Command: w.command(append([]string{"mcp"}, args...)...)}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	return sdkClient{c, w.t}
}

// tools returns the names of the declared functions, and what they and the instructions cost in tokens.
func (c sdkClient) tools() (names []string, cost int) {
	c.t.Helper()
	list, err := c.ListTools(c.t.Context(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	cost = prompt.Tokens(c.InitializeResult().Instructions)
	for _, tool := range list.Tools {
		names, cost = append(names, tool.Name), cost+prompt.DeclarationTokens(tool.Name, tool.Description, tool.InputSchema)
	}
	return names, cost
}

func (c sdkClient) call(name string, args map[string]any) string {
	c.t.Helper()
	r, err := c.CallTool(c.t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil || len(r.Content) != 1 {
		c.t.Fatalf("%s: %v, %v", name, r, err)
	}
	return r.Content[0].(*mcp.TextContent).Text
}

// Agents other than Gemini CLI are told of 50 extensions within the same budget: a gateway, the pinned tools, and the
// tools that the model describes (SPEC P-1, P-3).
func TestMCPCost(t *testing.T) {
	t.Parallel()
	pace.NotRaced(t, "the server is a process of its own")
	w := newWorld(t)
	w.many(50)
	w.configure(`{"keep": false, "tools": {"pinned": ["x7"]}}`)
	c := w.sdk()
	names, cost := c.tools()
	text := c.InitializeResult().Instructions
	if cost > prompt.EverythingBudget || !slices.Contains(names, "run_extension_tool") || !slices.Contains(names, "lint7") || slices.Contains(names, "lint37") {
		t.Errorf("%d tokens, %d functions: %s", cost, len(names), names)
	}
	if !strings.Contains(text, "`run_extension_tool(name, arguments)`") || strings.Contains(text, "bridge") || strings.Contains(text, "call them by these names") {
		t.Errorf("the instructions: %s", text)
	}
	t.Logf("50 extensions: %d tokens with %d functions", cost, len(names))
	for _, i := range []int{0, 37, 49} { // in one call, declared or not
		if got := c.call("run_extension_tool", map[string]any{"name": fmt.Sprintf("lint%d", i), "arguments": map[string]any{"file": "a.go"}}); !strings.Contains(got, "got a.go") {
			t.Errorf("lint%d: %s", i, got)
		}
	}
	if got := c.call("lint20", map[string]any{"file": "b.go"}); !strings.Contains(got, "got b.go") {
		t.Errorf("by its own name: %s", got)
	}
	if got := c.call("describe_extension", map[string]any{"name": "lint44"}); !strings.Contains(got, "The path to the file to lint.") {
		t.Errorf("described: %s", got)
	}
	if names, cost := c.tools(); !slices.Contains(names, "lint44") || cost > prompt.EverythingBudget {
		t.Errorf("after it was described: %d tokens, %s", cost, names)
	}
	// What ran here is a function in the next session.
	if names, cost := w.sdk().tools(); !slices.Contains(names, "lint20") || cost > prompt.EverythingBudget {
		t.Errorf("then: %d tokens, %s", cost, names)
	}
	// The user's own bound holds; none is none.
	if names, cost := w.sdk("--budget", "0").tools(); len(names) < 52 || slices.Contains(names, "run_extension_tool") {
		t.Errorf("without a bound: %d tokens, %s", cost, names)
	}
	if names, _ := w.sdk("--budget", "20000").tools(); len(names) < 52 {
		t.Errorf("with a wide bound: %s", names)
	}
	tight := w.sdk("--budget", "300")
	if n := prompt.Tokens(tight.InitializeResult().Instructions); n > 300 {
		t.Errorf("the instructions take %d tokens", n)
	}
}

// A few extensions are functions without a gateway, and their number may grow while a client is there.
func TestMCPGrows(t *testing.T) {
	t.Parallel()
	pace.NotRaced(t, "the server is a process of its own")
	w := newWorld(t)
	w.many(3)
	c := w.sdk()
	if names, cost := c.tools(); !slices.Contains(names, "lint2") || slices.Contains(names, "run_extension_tool") || cost > prompt.EverythingBudget {
		t.Errorf("%d tokens, %s", cost, names)
	}
	w.many(40)
	eventually(t, "the gateway", func() bool { names, _ := c.tools(); return slices.Contains(names, "run_extension_tool") })
	if got := c.call("run_extension_tool", map[string]any{"name": "lint39", "arguments": map[string]any{"file": "a.go"}}); !strings.Contains(got, "got a.go") {
		t.Errorf("a new one: %s", got)
	}
	if got := c.call("lint1", map[string]any{"file": "b.go"}); !strings.Contains(got, "got b.go") {
		t.Errorf("one that was a function: %s", got)
	}
}
