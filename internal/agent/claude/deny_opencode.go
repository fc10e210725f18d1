package claude

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/settingsfile"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// openCodeDenier is opencode's permission: the rules for its tool read, where the last rule that fits decides (SPEC OC-6).
func openCodeDenier(getenv func(string) string) workspace.Denier {
	home := homeOf(getenv)
	names := []string{"config.json", "opencode.json", "opencode.jsonc"}
	var always []string
	add := func(dir string) {
		for _, name := range names {
			always = append(always, filepath.Join(dir, name))
		}
	}
	if settings, err := OpenCodeSettings(getenv); err == nil {
		add(filepath.Dir(settings))
	}
	if home != "" {
		add(filepath.Join(home, ".opencode"))
	}
	if file := getenv("OPENCODE_CONFIG"); filepath.IsAbs(file) {
		always = append(always, filepath.Clean(file))
	}
	if dir := getenv("OPENCODE_CONFIG_DIR"); filepath.IsAbs(dir) {
		add(dir)
	}
	for _, dir := range openCodeManaged(getenv) {
		add(dir)
	}
	return workspace.Denier{
		Agent: OpenCode, Label: "opencode", Always: always,
		Beside: []string{"opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"},
		Read: func(data []byte, _, _ string) ([]workspace.Denial, error) {
			return openCodeDenials(data, home)
		},
	}
}

// openCodeDenials reads a configuration. What opencode does not load is an error, because its user wanted something by it.
func openCodeDenials(data []byte, home string) ([]workspace.Denial, error) {
	data = bytes.TrimSpace(settingsfile.Relaxed(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	if len(data) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(data, new(any)); err != nil { // the depth is bounded here
		return nil, fmt.Errorf("is not as opencode needs it: %w; mend it", err)
	}
	config, ok := members(data)
	if !ok {
		return nil, fmt.Errorf("is not as opencode needs it: it must be one JSON object; mend it")
	}
	var all []workspace.Denial
	for _, m := range config {
		switch m.name {
		case "tools": // the older form, weaker than permission
			if tools, ok := members(m.value); ok {
				for _, tool := range tools {
					if tool.name != "read" && tool.name != "*" {
						continue
					}
					all = append(all, workspace.Denial{Deny: string(tool.value) == "false", Tool: tool.name, Pattern: "*", Whole: true})
				}
			}
		case "agent", "mode":
			agents, _ := members(m.value)
			for _, a := range agents {
				options, _ := members(a.value)
				for _, o := range options {
					if o.name == "permission" {
						rules, err := permissions(o.value, m.name+" "+a.name, home)
						if err != nil {
							return nil, err
						}
						all = append(all, rules...)
					}
				}
			}
		}
	}
	for _, m := range config {
		if m.name == "permission" {
			rules, err := permissions(m.value, "", home)
			if err != nil {
				return nil, err
			}
			all = append(all, rules...)
		}
	}
	return all, nil
}

// permissions reads the value of permission: an action for all tools, or an action or patterns with actions for each.
func permissions(value json.RawMessage, chain, home string) (all []workspace.Denial, err error) {
	tools, ok := members(value)
	if !ok {
		tools = []member{{"*", value}}
	}
	for _, tool := range tools {
		if !workspace.FitsWhole(tool.name, "read") {
			continue
		}
		patterns, ok := members(tool.value)
		if !ok {
			patterns = []member{{"*", tool.value}}
		}
		for _, p := range patterns {
			var action string
			if json.Unmarshal(p.value, &action) != nil || !slices.Contains([]string{"allow", "ask", "deny"}, action) {
				return nil, fmt.Errorf("says %.40s in permission, which is not allow, ask or deny; mend it", p.value)
			}
			all = append(all, workspace.Denial{
				Deny: action == "deny", Chain: chain, Tool: tool.name, Pattern: expandHome(p.name, home), Whole: true,
			})
		}
	}
	return all, nil
}

// expandHome replaces the home folder at the beginning of a pattern.
func expandHome(pattern, home string) string {
	pattern = strings.ReplaceAll(pattern, `\`, "/")
	for _, name := range []string{"~", "$HOME"} {
		if rest, ok := strings.CutPrefix(pattern, name); ok && home != "" && (rest == "" || rest[0] == '/') {
			return filepath.ToSlash(home) + rest
		}
	}
	return pattern
}

// A member is one member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of an object in their order. Of several with one name there is the last value, at the place of the first. ok is false
// when value is no object.
func members(value json.RawMessage) (list []member, ok bool) {
	d := json.NewDecoder(bytes.NewReader(value))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return nil, false
		}
		text, _ := name.(string)
		if i := slices.IndexFunc(list, func(m member) bool { return m.name == text }); i >= 0 {
			list[i].value = value
			continue
		}
		list = append(list, member{text, value})
	}
	return list, true
}
