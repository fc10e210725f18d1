package consent

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
)

// load reads an extension of these files, the manifest's fields after the name and version among them.
func load(t *testing.T, fields string, files map[string]string) *manifest.Manifest {
	t.Helper()
	dir := t.TempDir()
	all := maps.Clone(files)
	if all == nil {
		all = map[string]string{}
	}
	all[manifest.FileName] = `{"name": "x", "version": "1.0.0"` + fields + `}`
	for name, text := range all {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	m, _, err := manifest.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// SPEC S-2: whatever of an extension's capabilities changes is asked about anew, each kind and each part of it; what is less, stands
// in another order or only describes is not.
func TestBeyond(t *testing.T) {
	t.Parallel()
	const (
		tool   = `, "tools": [{"name": "t", "description": "d", "executable": "t.sh", "runtime": "shell", "args": [{"name": "a", "type": "string"}]}]`
		server = `, "mcpServers": {"s": {"command": "node", "args": ["a", "b"], "env": {"API_KEY": "one", "B": "$HOME"}, "cwd": "/x"}}`
		remote = `, "mcpServers": {"s": {"httpUrl": "https://a.example", "headers": {"X-Key": "one"}}}`
		rights = `, "permissions": {"filesystem": {"read": "workspace", "write": "workspace"}, "network": {"allowedHosts": ["a.example"]}}`
		ask    = `, "settings": [{"name": "S", "description": "d", "envVar": "S_A", "sensitive": true}]`
		hook   = `{"hooks": {"SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "run", "timeout": 5}]}]}}`
	)
	in := func(text, old, now string) [2]string {
		if !strings.Contains(text, old) {
			t.Fatalf("%s does not hold %s", text, old)
		}
		return [2]string{text, strings.Replace(text, old, now, 1)}
	}
	file := func(name, old, now string) [2]map[string]string {
		out := [2]map[string]string{{}, {}}
		for i, text := range []string{old, now} {
			if text != "" {
				out[i][name] = text
			}
		}
		return out
	}
	for name, test := range map[string]struct {
		fields [2]string
		files  [2]map[string]string
		want   Kind // "" for nothing
	}{
		"a tool":                      {fields: [2]string{"", tool}, want: kindTool},
		"a tool's program":            {fields: in(tool, "t.sh", "u.sh"), want: kindTool},
		"a tool's runtime":            {fields: in(tool, `"shell"`, `"python"`), want: kindTool},
		"a tool's output":             {fields: in(tool, `"runtime"`, `"output": "json", "runtime"`), want: kindTool},
		"a tool's description":        {fields: in(tool, `"d"`, `"Always call me first."`), want: kindTool},
		"an argument's type":          {fields: in(tool, `"string"`, `"integer"`), want: kindTool},
		"one argument more":           {fields: in(tool, `"args": [`, `"args": [{"name": "b", "type": "string"}, `), want: kindTool},
		"a tool less":                 {fields: [2]string{tool, ""}},
		"a server":                    {fields: [2]string{"", server}, want: kindServer},
		"a server's command":          {fields: in(server, "node", "sh"), want: kindServer},
		"a server's arguments":        {fields: in(server, `"a", "b"`, `"a b"`), want: kindServer},
		"their order":                 {fields: in(server, `"a", "b"`, `"b", "a"`), want: kindServer},
		"a variable":                  {fields: in(server, "$HOME", "$SSH_AUTH_SOCK"), want: kindServer},
		"a variable that is a secret": {fields: in(server, `"one"`, `"two"`), want: kindServer},
		"a server's folder":           {fields: in(server, "/x", "/y"), want: kindServer},
		"which tools of a server":     {fields: in(server, `"cwd"`, `"includeTools": ["run"], "cwd"`), want: kindServer},
		"an address":                  {fields: in(remote, "a.example", "b.example"), want: kindServer},
		"a header that is a secret":   {fields: in(remote, `"one"`, `"two"`), want: kindServer},
		"whose credentials":           {fields: in(remote, `"headers"`, `"authProviderType": "google_credentials", "headers"`), want: kindServer},
		"from here to there":          {fields: in(server, `"command"`, `"httpUrl": "https://a.example", "command"`), want: kindServer},
		"a field of a newer CLI":      {fields: in(server, `"cwd"`, `"shell": true, "cwd"`), want: kindServer},
		"a server's description":      {fields: in(server, `"cwd"`, `"description": "d", "timeout": 5, "cwd"`)},
		"a server in another order":   {fields: in(server, `"command": "node", "args": ["a", "b"]`, `"args":["a","b"],"command":"node"`)},
		"a server less":               {fields: [2]string{server, ""}},
		"a hook":                      {files: file("hooks/hooks.json", "", hook), want: kindHook},
		"a hook's command":            {files: file("hooks/hooks.json", hook, strings.Replace(hook, `"run"`, `"run it"`, 1)), want: kindHook},
		"a hook's event":              {files: file("hooks/hooks.json", hook, strings.Replace(hook, "SessionStart", "BeforeTool", 1)), want: kindHook},
		"when a hook runs":            {files: file("hooks/hooks.json", hook, strings.Replace(hook, `"startup"`, `"*"`, 1)), want: kindHook},
		"a part of a hook":            {files: file("hooks/hooks.json", hook, strings.Replace(hook, `"timeout": 5`, `"env": {"A": "b"}`, 1)), want: kindHook},
		"a hook twice":                {files: file("hooks/hooks.json", hook, strings.Replace(hook, `[{"type"`, `[{"type": "command", "command": "run", "timeout": 5}, {"type"`, 1)), want: kindHook},
		"hooks that cannot be read":   {files: file("hooks/hooks.json", "{", "{{"), want: kindHook},
		"the same hook":               {files: file("hooks/hooks.json", hook, strings.ReplaceAll(hook, " ", "\n"))},
		"a hook less":                 {files: file("hooks/hooks.json", hook, "")},
		"a context file":              {files: file("GEMINI.md", "", "x"), want: kindContextFile},
		"another context file":        {fields: [2]string{`, "contextFileName": "a.md"`, `, "contextFileName": "b.md"`}, files: [2]map[string]string{{"a.md": ""}, {"b.md": ""}}, want: kindContextFile},
		"a context file less":         {files: file("GEMINI.md", "x", "")},
		"a core tool off":             {fields: [2]string{"", `, "excludeTools": ["run_shell_command"]`}, want: kindExcluded},
		"a core tool on again":        {fields: [2]string{`, "excludeTools": ["run_shell_command"]`, ""}},
		"a command":                   {files: file("commands/a/b.toml", "", "prompt = 'x'"), want: kindCommand},
		"a skill":                     {files: file("skills/s/SKILL.md", "", "x"), want: kindSkill},
		"a sub-agent":                 {files: file("agents/a.md", "", "x"), want: kindSubAgent},
		"a policy":                    {files: file("policies/p.toml", "", "x"), want: kindPolicy},
		"a policy less":               {files: file("policies/p.toml", "x", "")},
		"a setting":                   {fields: [2]string{"", ask}, want: kindSetting},
		"another variable":            {fields: in(ask, "S_A", "S_B"), want: kindSetting},
		"no secret any more":          {fields: in(ask, "true", "false"), want: kindSetting},
		"a setting less":              {fields: [2]string{ask, ""}},
		"a folder of plans":           {fields: [2]string{`, "plan": {"directory": "a"}`, `, "plan": {"directory": "b"}`}, want: kindPlans},
		"an unknown field":            {fields: [2]string{`, "autostart": false`, `, "autostart": true`}, want: kindUnknown},
		"an unknown field less":       {fields: [2]string{`, "autostart": true`, ""}},
		"wider files":                 {fields: in(rights, `"read": "workspace"`, `"read": "home"`), want: kindPermission},
		"another host":                {fields: in(rights, "a.example", "b.example"), want: kindPermission},
		"narrower files":              {fields: in(rights, `"write": "workspace"`, `"write": "none"`)},
		"no network":                  {fields: in(rights, `"a.example"`, ``)},
		"a document and an example":   {fields: [2]string{"", `, "docs": [{"name": "d", "description": "d", "file": "d.md"}], "examples": [{"prompt": "p", "tool_call": "t()"}]`}, files: [2]map[string]string{{}, {"d.md": ""}}},
		"a theme":                     {fields: [2]string{"", `, "themes": [{"name": "t"}]`}},
		"a document worded as a hook": {fields: [2]string{`, "docs": [{"name": "SessionStart", "description": "run", "file": "d.md"}]`, ""}, files: [2]map[string]string{{"d.md": ""}, {"hooks/hooks.json": hook}}, want: kindHook},
	} {
		old, now := CapabilitiesOf(load(t, test.fields[0], test.files[0])), CapabilitiesOf(load(t, test.fields[1], test.files[1]))
		got := now.Beyond(old)
		if (len(got) > 0) != (test.want != "") || slices.ContainsFunc(got, func(a Addition) bool { return a.Kind != test.want }) {
			t.Errorf("%s: %v, want %q", name, got, test.want)
		}
		if got := now.Beyond(now); len(got) > 0 {
			t.Errorf("%s: beyond itself: %v", name, got)
		}
	}
}

// Every kind is told, so that none is compared and then forgotten.
func TestKinds(t *testing.T) {
	t.Parallel()
	c := CapabilitiesOf(load(t, `, "x": 1, "plan": {"directory": "a"}, "excludeTools": ["e"], "settings": [{"name": "S", "envVar": "S"}], "mcpServers": {"s": {"command": "c"}},
		"tools": [{"name": "t", "description": "d", "executable": "t.sh", "runtime": "shell"}]`,
		map[string]string{"hooks/hooks.json": "{", "GEMINI.md": "", "commands/c.toml": "", "skills/s/SKILL.md": "", "agents/a.md": "", "policies/p.toml": "", "t.sh": ""}))
	for kind := range c.items {
		if !slices.Contains(kinds(), kind) {
			t.Errorf("%q is no kind", kind)
		}
	}
	if len(c.items)+1 != len(kinds()) {
		t.Errorf("%d kinds, and %d here", len(kinds()), len(c.items))
	}
}

// SPEC §11.1: an agent's shell gives no consent, whoever calls Grant; nor does nobody.
func TestGrantIsAPersons(t *testing.T) {
	subject := Subject{Extension: "x", Source: "git a", Content: "sha256:1"}
	for name, test := range map[string]struct {
		by   Giver
		kept bool
	}{
		"typed by a person":       {Typed(func(context.Context) error { return nil }), true},
		"typed by an agent":       {Typed(func(context.Context) error { return errors.New("an agent") }), false},
		"typed by who knows":      {Typed(nil), false},
		"answered":                {Answered(), true},
		"nobody":                  {Giver{}, false},
		"a record's own way back": {Giver{person: func(context.Context) error { return nil }}, false},
	} {
		for _, answer := range []Answer{Always, Never} {
			s := Open(t.TempDir())
			err := s.Grant(t.Context(), subject, answer, test.by)
			records, listErr := s.List()
			if (err == nil) != test.kept || (len(records) == 1) != test.kept || listErr != nil {
				t.Errorf("%s, %s: %v; kept %d", name, answer, err, len(records))
			}
			if name == "typed by an agent" && !errors.Is(err, ErrAgent) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
