package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/internal/permission"
)

// Every documented field of both forms is decoded (SPEC E-1, E-3), with variables unreplaced.
func TestDecode(t *testing.T) {
	text := `{"$schema": "s", "name": "all", "version": "1.0.0", "description": "d é \ud83d\ude00",
"mcpServers": {"b": {"command": "node", "args": ["${extensionPath}"], "env": {"A": "$B"}, "cwd": "/c", "description": "s"}, "a": {"url": "https://u.example", "httpUrl": "https://h.example"}, "w": {"tcp": "ws://w.example"}},
"contextFileName": "C.md", "excludeTools": ["x"], "settings": [{"name": "n", "description": "d", "envVar": "E", "sensitive": true}],
"themes": [{"name": "green", "z": 1}], "plan": {"directory": "plans"}, "migratedTo": "m",
"permissions": {"filesystem": {"read": "home"}, "network": {"allowedHosts": ["*.Example.com"]}},
"tools": [{"name": "t", "description": "td", "executable": "./t.py", "runtime": "python", "args": [{"name": "a", "type": "integer", "description": "ad"}, {"name": "b", "type": "string"}]}],
"docs": [{"name": "doc", "description": "dd", "file": "d.md"}], "examples": [{"prompt": "p", "tool_call": "t(a=1)"}],
"future": {"x": [1, 2]}}`
	got, found := Parse("f", []byte(text))
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	want := &Manifest{
		Name: "all", Version: "1.0.0", Description: "d é 😀",
		MCPServers: []MCPServer{
			{Name: "b", Command: "node", Args: []string{"${extensionPath}"}, Env: map[string]string{"A": "$B"}, Cwd: "/c", Description: "s",
				JSON: `{"command": "node", "args": ["${extensionPath}"], "env": {"A": "$B"}, "cwd": "/c", "description": "s"}`},
			{Name: "a", URL: "https://h.example", JSON: `{"url": "https://u.example", "httpUrl": "https://h.example"}`},
			{Name: "w", URL: "ws://w.example", JSON: `{"tcp": "ws://w.example"}`},
		},
		ContextFiles: []string{"C.md"}, ExcludeTools: []string{"x"}, Settings: []Setting{{"n", "d", "E", true}},
		Themes: []Theme{{"green", `{"name": "green", "z": 1}`}}, PlanDirectory: "plans", MigratedTo: "m",
		HasPermissions: true, Permissions: permission.Permissions{Read: permission.Home, Hosts: []permission.Host{{Text: "*.Example.com", Name: "example.com", Wildcard: true, Ports: []int{443, 80}}}},
		Tools:    []Tool{{"t", "td", "./t.py", "python", "string", []Arg{{Name: "a", Type: "integer", Description: "ad"}, {Name: "b", Type: "string"}}}},
		Docs:     []Doc{{"doc", "dd", "d.md"}},
		Examples: []Example{{"p", "t(a=1)"}},
		Unknown:  map[string]string{"future": `{"x": [1, 2]}`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	tool, ok := got.Tool("t")
	if !ok || tool.Signature() != "t(a: integer, b: string)" {
		t.Errorf("tool %v %q", ok, tool.Signature())
	}
	if _, ok := got.Tool("T"); ok {
		t.Error("a tool in another spelling")
	}
	if d, ok := got.Doc("doc"); !ok || d.File != "d.md" {
		t.Errorf("doc %v %+v", ok, d)
	}
	if _, ok := got.Doc(""); ok {
		t.Error("a document without name")
	}
}

// An invalid value grants nothing and does not keep other values from being read (SPEC E-4).
func TestDecodeBroken(t *testing.T) {
	m, found := Parse("f", []byte(`{"name": "still-named", "version": 3, "permissions": {"filesystem": {"read": "all", "write": true}, "network": {"allowedHosts": "x.example"}}, "tools": [7, {"name": "t"`))
	var invalid *InvalidError
	if err := found.Err(); !errors.As(err, &invalid) || invalid.More == 0 || !strings.Contains(err.Error(), "more; pollux extensions validate") {
		t.Errorf("error %v", err)
	}
	if m.Name != "still-named" || m.Version != "3" || m.Permissions.Read != permission.None || m.Permissions.Write != permission.None || m.Permissions.Hosts != nil || len(m.Tools) != 1 {
		t.Errorf("%+v", m)
	}
	for _, text := range []string{"", "null", "7", `"x"`, "{", "[", "\xff"} {
		if m, found := Parse("f", []byte(text)); m == nil || found.Err() == nil {
			t.Errorf("%q: %v %v", text, m, found)
		}
	}
}

// A byte order mark is reported, and the rest is checked (the CLI fails on it).
func TestByteOrderMark(t *testing.T) {
	m, found := Parse("f", []byte("\ufeff{\"name\": \"a\", \"version\": \"1.0.0\"}"))
	if len(found) != 1 || !strings.Contains(found[0].Message, "byte order mark") || found[0].Line != 1 || found[0].Column != 1 || m.Name != "a" {
		t.Errorf("%v %+v", found, m)
	}
}

// Columns count characters; any of JSON's line breaks ends a line.
func TestPlace(t *testing.T) {
	_, found := Parse("f", []byte("{\r\n\t\"name\": \"ä\u00a0😀\", \"version\": 1x}"))
	if len(found) == 0 || found[len(found)-1].Line != 2 || found[len(found)-1].Column != 29 {
		t.Errorf("%v", found)
	}
}

// TestFindingPrintable: nothing in a foreign manifest moves the cursor or changes colours.
func TestFindingPrintable(t *testing.T) {
	f := Finding{Severity: Error, File: "\x1b", Line: 1, Column: 2, Message: "m\x1b", Text: "t\x1b", Fix: "f\x1b"}
	if s := f.String(); s != `\u001b:1:2: error: m\u001b (t\u001b); f\u001b` {
		t.Errorf("%s", s)
	}
}

func TestCheckName(t *testing.T) {
	for name, good := range map[string]bool{
		"a": true, "code-analyzer": true, "X9": true, strings.Repeat("a", 128): true,
		"": false, "a b": false, "a_b": false, "a.b": false, "a/b": false, "..": false, "ä": false, "-a": false, "con": false, "COM1": false, "a\n": false, strings.Repeat("a", 129): false,
	} {
		if err := CheckName(name); (err == nil) != good || err != nil && !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// An unreadable tree is an error that names it.
func TestHashTreeError(t *testing.T) {
	if _, err := HashTree(filepath.Join(t.TempDir(), "gone")); !errors.Is(err, os.ErrNotExist) && (err == nil || !strings.Contains(err.Error(), "gone")) {
		t.Errorf("error %v", err)
	}
}

// An example that validates without findings belongs to its tool, also with a blank before the bracket.
func TestExampleCalls(t *testing.T) {
	for call, want := range map[string]bool{"lint()": true, " lint (a=1)": true, "lint2()": false, "lin()": false, "lint": false, "": false} {
		if got := (Example{ToolCall: call}).Calls("lint"); got != want {
			t.Errorf("%q: %v", call, got)
		}
	}
}
