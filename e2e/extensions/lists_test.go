package extensions

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pollux-companion/pollux/internal/peers"
)

// A listener is a client that hears of changed lists. Its methods may be called from any goroutine.
type listener interface {
	// heard is how often the server has said that a list has changed.
	heard(kind string) int
	// names are those of the list as the client knows it after the last notice.
	names(kind string) []string
}

// news is what a listener has heard.
type news struct {
	mu    sync.Mutex // guards the below
	count map[string]int
	last  map[string][]string
}

func newNews() *news { return &news{count: map[string]int{}, last: map[string][]string{}} }

func (n *news) heard(kind string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.count[kind]
}

func (n *news) names(kind string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last[kind]
}

func (n *news) take(kind string, changed bool, names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if changed {
		n.count[kind]++
	}
	n.last[kind] = names
}

// goListener is a client of the official Go SDK.
type goListener struct {
	*news
	t       testing.TB
	session *mcp.ClientSession
}

// listen starts a server of pollux's and joins it.
func (h *house) listen(args ...string) *goListener {
	h.t.Helper()
	l := &goListener{news: newNews(), t: h.t}
	client := mcp.NewClient(&mcp.Implementation{Name: "lists", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { l.take("tools", true, nil) },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { l.take("resources", true, nil) },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { l.take("prompts", true, nil) },
	})
	cmd := exec.Command(h.pollux, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = h.ws, h.home.Env(), os.Stderr
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	var err error
	l.session, err = client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	must(h.t, err)
	h.t.Cleanup(func() { _ = l.session.Close() })
	return l
}

// names asks the server.
func (l *goListener) names(kind string) []string {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	var names []string
	var err error
	switch kind {
	case "tools":
		for tool, e := range l.session.Tools(ctx, nil) {
			if err = e; err == nil {
				names = append(names, tool.Name)
			}
		}
	case "resources":
		for r, e := range l.session.Resources(ctx, nil) {
			if err = e; err == nil {
				names = append(names, r.Name)
			}
		}
	case "prompts":
		for p, e := range l.session.Prompts(ctx, nil) {
			if err = e; err == nil {
				names = append(names, p.Name)
			}
		}
	}
	must(l.t, err)
	return names
}

// listenTS is a client of the TypeScript SDK, on which most clients stand, the CLI among them.
func (h *house) listenTS(args ...string) *news {
	h.t.Helper()
	peers.Need(h.t, peers.Inspector) // which comes with the SDK
	root, err := peers.Root()
	must(h.t, err)
	sdk := filepath.Join(root, "e2e", "peers", "node_modules", "@modelcontextprotocol", "sdk", "dist", "esm")
	argv := append(peers.Command(h.t, peers.Node, filepath.Join(root, "e2e", "extensions", "testdata", "lists.mjs"), sdk, h.pollux), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = h.ws, h.home.Env(), os.Stderr
	in, err := cmd.StdinPipe()
	must(h.t, err)
	out, err := cmd.StdoutPipe()
	must(h.t, err)
	must(h.t, cmd.Start())
	n, read := newNews(), make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var line struct {
				Kind    string
				Changed bool
				Names   []string
			}
			if json.Unmarshal(lines.Bytes(), &line) == nil {
				n.take(line.Kind, line.Changed, line.Names)
			}
		}
	}()
	h.t.Cleanup(func() {
		late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		_ = in.Close()
		<-read
		_ = cmd.Wait()
	})
	poll(h.t, "the first lists of the TypeScript SDK's client", func() bool { return n.names("tools") != nil && n.names("resources") != nil })
	return n
}

// release writes a release of the extension "late": its tool, document and example are called after the word.
func release(t testing.TB, dir, version, word string) {
	t.Helper()
	write(t, filepath.Join(dir, "run.sh"), "echo "+word+"\n")
	write(t, filepath.Join(dir, "doc.md"), "About "+word+".\n")
	manifest, err := json.Marshal(map[string]any{
		"name": "late", "version": version, "description": "Comes during a session.",
		"tools":    []map[string]any{{"name": word + "Tool", "description": "Says it.", "executable": "run.sh", "runtime": "shell", "args": []any{}}},
		"docs":     []map[string]any{{"name": word + "-doc", "description": "About it.", "file": "doc.md"}},
		"examples": slices.Repeat([]map[string]any{{"prompt": "Say it", "tool_call": word + "Tool()"}}, len(strings.Split(version, "."))),
	})
	must(t, err)
	write(t, filepath.Join(dir, "gemini-extension.json"), string(manifest))
}

// SPEC P-3: an extension that is installed, changed or removed during a session shows in each of its lists, and the client is
// told of each: clients of two SDKs that nobody here wrote, at both of pollux's servers.
func TestListsChange(t *testing.T) {
	h := bridged(t)
	everything, fewer := []string{"tools", "resources", "prompts"}, []string{"tools", "resources"}
	clients := map[string]struct {
		listener
		kinds []string
	}{
		"Go SDK, pollux mcp":                      {h.listen("mcp"), everything},
		"Go SDK, pollux extensions serve":         {h.listen("extensions", "serve"), fewer},
		"TypeScript SDK, pollux mcp":              {h.listenTS("mcp"), everything},
		"TypeScript SDK, pollux extensions serve": {h.listenTS("extensions", "serve"), fewer},
	}
	origin := filepath.Join(t.TempDir(), "late")
	for _, step := range []struct {
		what       string
		change     func()
		here, gone map[string]string
	}{
		{"installed", func() {
			release(t, origin, "1", "first")
			h.us("install", origin, "--yes")
			h.us("consent", "grant", "late", "--yes")
		}, map[string]string{"tools": "firstTool", "resources": "first-doc", "prompts": "late-1"}, nil},
		{"changed", func() {
			release(t, origin, "1.1", "second")
			h.us("update", "late", "--yes")
			h.us("consent", "grant", "late", "--yes")
		}, map[string]string{"tools": "secondTool", "resources": "second-doc", "prompts": "late-2"}, map[string]string{"tools": "firstTool", "resources": "first-doc"}},
		{"removed", func() {
			h.us("uninstall", "late")
		}, nil, map[string]string{"tools": "secondTool", "resources": "second-doc", "prompts": "late-1"}},
	} {
		before := map[string]int{}
		for name, c := range clients {
			for _, kind := range c.kinds {
				before[name+kind] = c.heard(kind)
			}
		}
		step.change()
		for name, c := range clients {
			for _, kind := range c.kinds {
				var names []string
				notices := 0
				t.Cleanup(func() {
					if t.Failed() {
						t.Logf("%s, %s, %s: %d notices, last %q", name, kind, step.what, notices, names)
					}
				})
				poll(t, strings.Join([]string{name, kind, step.what}, ", "), func() bool {
					if notices = c.heard(kind) - before[name+kind]; notices == 0 {
						return false
					}
					names = c.names(kind)
					return (step.here[kind] == "" || slices.Contains(names, step.here[kind])) && (step.gone[kind] == "" || !slices.Contains(names, step.gone[kind]))
				})
			}
		}
	}
}
