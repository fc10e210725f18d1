package extensions

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
)

// The most that 50 extensions may take of a session's first request, and of each later one, in tokens.
const (
	firstCost = 4000
	laterCost = 2500
)

// told is what a request tells a model beyond the conversation that has come after the first one.
func told(t *testing.T, first, r *model.Request) int {
	t.Helper()
	talk, err := json.Marshal(r.Body.Contents[len(first.Body.Contents):])
	must(t, err)
	return prompt.Tokens(everything(t, r)) - prompt.Tokens(string(talk))
}

// SPEC P-1, P-3: with many extensions a request carries a gateway, what ran lately and what is pinned; the model reaches every
// tool in two calls at most, and what it describes becomes a function.
func TestGateway(t *testing.T) {
	h := newHouse(t)
	h.named()
	m := model.Start(t)
	h.ask(m, "none")
	base := prompt.Tokens(everything(t, m.Wait(t, 0, patience, nil)))
	h.many(0, 50)
	must(t, os.MkdirAll(filepath.Join(h.ws, "src"), 0o755))
	write(t, filepath.Join(h.ws, "src", "index.js"), "var a = 1\n")
	h.us("bridge", "install", "--headless")

	const server = "mcp_pollux-tester_"
	run, describe := server+"run_extension_tool", server+"describe_extension"
	file := map[string]any{"file": "src/index.js"}
	turns := []model.Turn{call(describe, map[string]any{"name": "analyzer-37"}), call(server+"lintFile37", file)}
	for i := 1; i <= 50; i += 10 { // all, in one call each
		var turn model.Turn
		for j := i; j < i+10; j++ {
			turn.Calls = append(turn.Calls, model.Call{Name: run, Args: map[string]any{"name": fmt.Sprintf("lintFile%d", j), "arguments": file}})
		}
		turns = append(turns, turn)
	}
	n := len(m.Requests())
	h.ask(m, "work", turns...)
	all := m.Requests()[n:]
	var session []*model.Request
	for _, r := range all {
		if declared(r, run) {
			session = append(session, r)
		}
	}
	if len(session) != len(turns)+1 {
		t.Fatalf("%d requests have the gateway, want %d", len(session), len(turns)+1)
	}
	first := session[0]
	if cost := told(t, first, first) - base; cost > firstCost {
		t.Errorf("the first request takes %d tokens", cost)
	} else {
		t.Logf("50 extensions: %d tokens of the first request", cost)
	}
	for i, r := range session[1:] {
		if cost := told(t, first, r) - base; cost > laterCost {
			t.Errorf("request %d takes %d tokens", i+2, cost)
		} else {
			t.Logf("request %d: %d tokens", i+2, cost)
		}
	}
	if declared(first, server+"lintFile37") || !declared(session[1], server+"lintFile37") {
		t.Error("a tool is to be a function from when it was described")
	}
	var results []model.FunctionResponse
	for _, r := range session[1:] {
		results = append(results, r.Results()...)
	}
	if len(results) != 52 {
		t.Errorf("%d results", len(results))
	}
	for i, r := range results[1:] {
		if text := r.Response.Error + r.Response.Output; !strings.Contains(text, `"rule": "no-var"`) {
			t.Errorf("call %d answers %.300s", i, text)
		}
	}

	// What ran here is a function in the next session, and what is pinned.
	write(t, filepath.Join(h.home.Dir, ".config", "pollux", "config.json"), `{"tools": {"pinned": ["analyzer-3"]}}`)
	n = len(m.Requests())
	h.ask(m, "again")
	next := m.Wait(t, n, patience, nil)
	if !declared(next, server+"lintFile3") {
		t.Error("what is pinned is no function")
	}
	lately := 0
	for i := 41; i <= 50; i++ { // they ran side by side
		if declared(next, fmt.Sprintf("%slintFile%d", server, i)) {
			lately++
		}
	}
	if lately == 0 || declared(next, server+"lintFile20") {
		t.Errorf("%d functions are there that ran lately", lately)
	}
	if cost := told(t, next, next) - base; cost > laterCost {
		t.Errorf("then a session begins with %d tokens", cost)
	}
	var status struct {
		RequestTokens int
		Functions     struct {
			Gateway         bool
			Declared, Tools int
		}
	}
	must(t, json.Unmarshal([]byte(h.us("bridge", "status", "--json")), &status))
	if cost := told(t, next, next) - base; !status.Functions.Gateway || status.Functions.Tools != 50 || status.RequestTokens < cost*3/4 || status.RequestTokens > cost*5/4 {
		t.Errorf("status says %+v, and it is %d", status, cost)
	}
}
