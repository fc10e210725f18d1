package scaffold

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
)

// Every template validates without a finding and has the name that it was given.
func TestTemplatesValidate(t *testing.T) {
	all := Templates()
	if len(all) < 10 {
		t.Fatalf("%d templates", len(all))
	}
	for _, template := range all {
		dir := filepath.Join(t.TempDir(), "my-extension")
		written, err := New(dir, template.Name, "")
		if err != nil || !slices.Contains(written, manifest.FileName) {
			t.Fatalf("%s: wrote %v, %v", template.Name, written, err)
		}
		m, found, err := manifest.Load(dir)
		if err != nil || len(found) > 0 || m.Name != "my-extension" || template.Summary == "" {
			t.Errorf("%s: %v %v %q", template.Name, err, found, m.Name)
		}
		for _, f := range written {
			data, err := os.ReadFile(filepath.Join(dir, f))
			if err != nil || bytes.Contains(data, []byte(placeholder)) {
				t.Errorf("%s: %s: %v, or the placeholder is left", template.Name, f, err)
			}
		}
	}
}

// Each template contains what its name says.
func TestTemplatesBring(t *testing.T) {
	for name, has := range map[string]func(m *manifest.Manifest) bool{
		"tool-python": func(m *manifest.Manifest) bool { return len(m.Tools) == 1 && m.Tools[0].Runtime == "python" },
		"tool-node":   func(m *manifest.Manifest) bool { return len(m.Tools) == 1 && m.Tools[0].Runtime == "node" },
		"tool-shell":  func(m *manifest.Manifest) bool { return len(m.Tools) == 1 && m.Tools[0].Runtime == "shell" },
		"mcp-server":  func(m *manifest.Manifest) bool { return len(m.MCPServers) == 1 },
		"context":     func(m *manifest.Manifest) bool { return len(m.Found.ContextFiles) == 1 },
		"commands": func(m *manifest.Manifest) bool {
			return slices.Equal(m.Found.Commands, []string{"/explain", "/git:summary"})
		},
		"skills":        func(m *manifest.Manifest) bool { return len(m.Found.Skills) == 1 },
		"agents":        func(m *manifest.Manifest) bool { return len(m.Found.Agents) == 1 },
		"hooks":         func(m *manifest.Manifest) bool { return m.Found.Hooks },
		"policies":      func(m *manifest.Manifest) bool { return len(m.Found.Policies) == 1 },
		"exclude-tools": func(m *manifest.Manifest) bool { return len(m.ExcludeTools) == 2 },
		"themes":        func(m *manifest.Manifest) bool { return len(m.Themes) == 1 },
	} {
		dir := filepath.Join(t.TempDir(), "x")
		if _, err := New(dir, name, ""); err != nil {
			t.Fatal(err)
		}
		if m, _, err := manifest.Load(dir); err != nil || !has(m) {
			t.Errorf("%s: %+v %v", name, m, err)
		}
	}
}

// The tools of the templates run and answer as their manifest says.
func TestToolsRun(t *testing.T) {
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "it's $x.txt"), []byte("one\n\ntwo\n \nlast"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, template := range []string{"tool-python", "tool-node", "tool-shell"} {
		dir := filepath.Join(t.TempDir(), "x")
		if _, err := New(dir, template, ""); err != nil {
			t.Fatal(err)
		}
		m, _, err := manifest.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		tool := m.Tools[0]
		interpreter := map[string]string{"python": "python3", "node": "node", "shell": "sh"}[tool.Runtime]
		if _, err := exec.LookPath(interpreter); err != nil {
			t.Logf("%s left out: no %s here", template, interpreter)
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, tool.Executable)); err != nil || info.Mode()&0o111 == 0 && os.PathSeparator == '/' {
			t.Errorf("%s: not executable (%v)", template, err)
		}
		run := func(file string) ([]byte, error) {
			cmd := exec.Command(interpreter, filepath.Join(dir, tool.Executable), "--"+tool.Args[0].Name, file)
			cmd.Dir = work
			return cmd.Output()
		}
		out, err := run("it's $x.txt")
		var got struct{ Lines, Empty int }
		if err != nil || json.Unmarshal(out, &got) != nil || got.Lines != 5 || got.Empty != 2 {
			t.Errorf("%s: %s, %v", template, out, err)
		}
		cmd := exec.Command(interpreter, filepath.Join(dir, tool.Executable), "--words", "--file", "it's $x.txt", "--long", "4")
		cmd.Dir = work
		if out, err := cmd.Output(); err != nil || !strings.Contains(strings.ReplaceAll(string(out), " ", ""), `"long":1,"words":3}`) {
			t.Errorf("%s: with options %s, %v", template, out, err)
		}
		var exit *exec.ExitError
		if _, err := run("missing"); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(exit.Stderr), "cannot read missing") {
			t.Errorf("%s: a missing file: %v", template, err)
		}
	}
}

// The template's server speaks MCP, with one answer for each request.
func TestServerRuns(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node here")
	}
	dir := filepath.Join(t.TempDir(), "my-server")
	if _, err := New(dir, "mcp-server", ""); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, filepath.Join(dir, "server.mjs"))
	cmd.WaitDelay = 10 * time.Second
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"reverse","arguments":{"text":"äb","wait_for_previous":true}}}
{"jsonrpc":"2.0","id":4,"method":"resources/list"}
{"jsonrpc":"2.0","id":5,"method":"toString"}
`)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	want := []string{`"name":"my-server"`, `"name":"reverse"`, `"text":"bä"`, `-32601`, `-32601`}
	if len(lines) != len(want) {
		t.Fatalf("%d answers: %s", len(lines), out)
	}
	for i, w := range want {
		if !strings.Contains(lines[i], w) {
			t.Errorf("answer %d is %s, without %s", i, lines[i], w)
		}
	}
}

// What New refuses, and that it leaves existing files alone.
func TestNewRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	for _, c := range []struct {
		dir, template, name string
		want                error
	}{
		{full, "", "x", nil},
		{filepath.Join(top, "a"), "nope", "", ErrTemplate},
		{filepath.Join(top, "a"), "../templates/context", "", ErrTemplate},
		{filepath.Join(top, "a"), ".", "", ErrTemplate},
		{filepath.Join(top, "has space"), "", "", manifest.ErrName},
		{filepath.Join(top, "a"), "", "con", manifest.ErrName},
		{filepath.Join(top, "a"), "", "../b", manifest.ErrName},
		{filepath.Join(full, "mine"), "", "x", nil},
	} {
		if written, err := New(c.dir, c.template, c.name); err == nil || len(written) > 0 || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%+v: wrote %v, %v", c, written, err)
		}
	}
	if left, _ := os.ReadDir(full); len(left) != 1 {
		t.Errorf("%v in the full folder", left)
	}
	if left, _ := os.ReadDir(top); len(left) != 0 {
		t.Errorf("%v beside it", left)
	}
	dir := filepath.Join(top, "Empty")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := New(dir, "context", "named"); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
}
