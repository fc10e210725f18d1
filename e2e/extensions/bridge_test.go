package extensions

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/peers"
)

// bridged is a house whose CLI uses the example extension through the bridge.
func bridged(t *testing.T) *house {
	h := newHouse(t)
	root, err := peers.Root()
	must(t, err)
	h.us("install", filepath.Join(root, "examples", "code-analyzer"), "--yes")
	h.us("consent", "grant", "code-analyzer", "--yes")
	h.named()
	h.us("bridge", "install")
	write(t, filepath.Join(h.ws, "src", "index.js"), "var a = 1\n")
	return h
}

// named gives the bridge's server the name of this user's, pollux-tester, before the bridge is there: scripts of a model name its tools.
func (h *house) named() {
	h.t.Helper()
	own := filepath.Join(h.home.Dir, ".gemini", "pollux")
	must(h.t, os.MkdirAll(own, 0o700))
	write(h.t, filepath.Join(own, "bridge.json"), `{"server": "pollux-tester"}`)
}

// ask runs one prompt without a terminal against a scripted model.
func (h *house) ask(m *model.Server, prompt string, turns ...model.Turn) {
	h.t.Helper()
	m.Script(prompt, turns...)
	if _, all, code := h.run(append(h.gemini, "-p", prompt), "", cli.Variables(m)...); code != 0 {
		h.t.Fatalf("gemini -p %q: exit code %d\n%s", prompt, code, all)
	}
}

// call is a turn that calls one tool.
func call(name string, args map[string]any) model.Turn {
	return model.Turn{Calls: []model.Call{{Name: name, Args: args}}}
}

// everything is all that a request tells the model.
func everything(t testing.TB, r *model.Request) string {
	t.Helper()
	data, err := json.Marshal(r.Body)
	must(t, err)
	return string(data)
}

// declared says whether a request declares a function.
func declared(r *model.Request, name string) bool {
	for _, tool := range r.Body.Tools {
		if strings.Contains(string(tool), `"name":"`+name+`"`) {
			return true
		}
	}
	return false
}

// result waits for the result of the only call in a request.
func result(t testing.TB, m *model.Server, from int, name string) string {
	t.Helper()
	r := m.Wait(t, from, 2*time.Minute, func(r *model.Request) bool {
		all := r.Results()
		return len(all) > 0 && all[len(all)-1].Name == name
	})
	all := r.Results()
	last := all[len(all)-1]
	return last.Response.Output + last.Response.Error
}

// SPEC P-1, P-3, with gemini -p: the summary is in the first prompt, the documents and scripts are not; the tools
// are there by the explicit opt-in only, run in the sandbox, and their results are in the next request.
func TestHeadless(t *testing.T) {
	h := bridged(t)
	m := model.Start(t)
	h.ask(m, "first")
	first := m.Wait(t, 0, 2*time.Minute, nil)
	text := everything(t, first)
	for _, want := range []string{"**code-analyzer**: An extension for analyzing and linting code files.", "mcp_pollux-tester_lintFile(file: string)", "linter-rules"} {
		if !strings.Contains(text, want) {
			t.Errorf("the first prompt does not have %q", want)
		}
	}
	for _, secret := range []string{"Lines over 120 characters are not seen", "import argparse"} {
		if strings.Contains(text, secret) {
			t.Errorf("the first prompt has %q", secret)
		}
	}
	if declared(first, "mcp_pollux-tester_lintFile") {
		t.Error("a session without a terminal has the tools without anybody's leave")
	}

	if x := h.theyList()["pollux"]; !x.IsActive || len(x.ContextFiles) != 1 {
		t.Errorf("the CLI lists the bridge as %+v", x)
	}
	h.them("update", "--all") // finds nothing to do
	h.us("bridge", "install", "--headless")
	n := len(m.Requests())
	h.ask(m, "second",
		call("mcp_pollux-tester_lintFile", map[string]any{"file": "src/index.js", "wait_for_previous": true}),
		call("read_mcp_resource", map[string]any{"uri": "ext://code-analyzer/docs/linter-rules"}),
		call("mcp_pollux-tester_describe_extension", map[string]any{"name": "lintFile", "script": true}),
		call("mcp_pollux-tester_lintFile", map[string]any{"file": "/etc/shadow"}))
	if r := m.Wait(t, n, 2*time.Minute, nil); !declared(r, "mcp_pollux-tester_lintFile") || !declared(r, "mcp_pollux-tester_read_doc") {
		t.Error("with the opt-in the tools are not declared")
	}
	if got := result(t, m, n, "mcp_pollux-tester_lintFile"); !strings.Contains(got, `"rule": "no-var"`) {
		t.Errorf("the tool's result: %s", got)
	}
	if got := result(t, m, n, "read_mcp_resource"); !strings.Contains(got, `<extension_doc name="linter-rules">`) || !strings.Contains(got, "Lines over 120 characters are not seen") {
		t.Errorf("the document: %s", got)
	}
	if got := result(t, m, n, "mcp_pollux-tester_describe_extension"); !strings.Contains(got, "The path to the file to lint.") || !strings.Contains(got, "import argparse") || !strings.Contains(got, "may contact") {
		t.Errorf("the description: %s", got)
	}
	all := m.Requests()
	last := all[len(all)-1].Results()
	if got := last[len(last)-1].Response; !strings.Contains(got.Error+got.Output, "cannot lint /etc/shadow") {
		t.Errorf("outside the workspace: %+v", got)
	}

	h.us("bridge", "install", "--no-headless")
	n = len(m.Requests())
	h.ask(m, "third")
	if declared(m.Wait(t, n, 2*time.Minute, nil), "mcp_pollux-tester_lintFile") {
		t.Error("the opt-in was taken back, and the tools are still there")
	}
	h.us("bridge", "remove")
	if _, err := os.Stat(filepath.Join(h.home.Dir, ".gemini", "extensions", "pollux")); err == nil {
		t.Error("the bridge is left")
	}
	if _, err := os.Stat(filepath.Join(h.home.Dir, ".gemini", "policies")); err == nil {
		t.Error("the rule's folder is left")
	}
	n = len(m.Requests())
	h.ask(m, "fourth")
	if strings.Contains(everything(t, m.Wait(t, n, 2*time.Minute, nil)), "code-analyzer") {
		t.Error("without the bridge the model still knows")
	}
}

// SPEC P-3: the summary is that of the workspace. What is on here alone is in the first prompt here and nowhere else, what is off
// here is said to be; in a folder for which there is no summary yet the server's own words say it, and from the second session on
// the context does.
func TestWorkspaces(t *testing.T) {
	h := bridged(t)
	h.us("bridge", "install", "--headless")
	h.us("install", h.slow(t.TempDir()), "--yes")
	h.us("consent", "grant", "slow", "--yes")
	h.us("disable", "slow")
	here := h.ws
	h.us("enable", "slow", "--scope", "workspace")
	h.us("disable", "code-analyzer", "--scope", "workspace")
	m := model.Start(t)
	first := func(dir, prompt string) *model.Request {
		t.Helper()
		must(t, os.MkdirAll(dir, 0o755))
		h.ws = dir
		n := len(m.Requests())
		h.ask(m, prompt)
		return m.Wait(t, n, 2*time.Minute, nil)
	}
	const own, off = "**slow**: Takes its time.", "Switched off in this workspace, with all functions and docs: code-analyzer."
	r := first(here, "in the workspace")
	if text := everything(t, r); strings.Count(text, own) != 1 || strings.Count(text, off) != 1 || !declared(r, "mcp_pollux-tester_count") || declared(r, "mcp_pollux-tester_lintFile") {
		t.Errorf("in the workspace: %.6000s", text)
	}
	r = first(t.TempDir(), "elsewhere")
	if text := everything(t, r); strings.Contains(text, "slow") || strings.Contains(text, off) || !strings.Contains(text, "mcp_pollux-tester_lintFile(file: string)") || declared(r, "mcp_pollux-tester_count") {
		t.Errorf("elsewhere: %.6000s", text)
	}
	below := filepath.Join(here, "deep", "below")
	for _, session := range []string{"first", "second"} {
		text := everything(t, first(below, session+" below"))
		_, context, _ := strings.Cut(text, `\u003cextension_context`)
		context, _, _ = strings.Cut(context, `\u003c/extension_context`)
		if !strings.Contains(text, own) || strings.Contains(context, own) != (session == "second") {
			t.Errorf("the %s session below: %.6000s", session, text)
		}
		poll(t, "the summary of the folder below", func() bool {
			data, err := os.ReadFile(filepath.Join(h.home.Dir, ".gemini", "extensions", "pollux", "workspaces", below, "SUMMARY.md"))
			return err == nil && strings.Contains(string(data), own) && strings.Contains(string(data), off)
		})
	}
}

// P-4: a document that is longer than a result may be is read to its end where its resources are all that there is: the first
// part names the second, which the CLI knows.
func TestHeadlessLongDocument(t *testing.T) {
	h := newHouse(t)
	dir := filepath.Join(t.TempDir(), "long")
	release(t, dir, "1", "word")
	write(t, filepath.Join(dir, "doc.md"), strings.Repeat("A line of the document.\n", 2000)+"The last line.\n")
	h.us("install", dir, "--yes")
	h.us("consent", "grant", "late", "--yes")
	h.us("bridge", "install")
	m := model.Start(t)
	const first, second = "ext://late/docs/word-doc", "ext://late/docs/word-doc?part=2"
	h.ask(m, "read", call("read_mcp_resource", map[string]any{"uri": first}), call("read_mcp_resource", map[string]any{"uri": second}))
	var got []string
	for _, r := range m.Requests() {
		for _, one := range r.Results() {
			got = append(got, one.Response.Output+one.Response.Error)
		}
	}
	if len(got) != 2 || !strings.Contains(got[0], "go on with the resource "+second+"]") || strings.Contains(got[0], "read_doc") || !strings.Contains(got[1], "The last line.") {
		t.Errorf("%.200q", got)
	}
	for _, part := range got {
		if len(part) >= 40_000 {
			t.Errorf("a part of %d bytes", len(part))
		}
	}
}
