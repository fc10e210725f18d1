package consent

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/permission"
)

// A Kind is a kind of capability.
type Kind string

// The kinds, in the order of their display.
const (
	kindPermission  Kind = "permission"
	kindTool        Kind = "tool"
	kindServer      Kind = "MCP server"
	kindHook        Kind = "hook"
	kindContextFile Kind = "context file"
	kindExcluded    Kind = "core tool that it switches off"
	kindCommand     Kind = "slash command"
	kindSkill       Kind = "skill"
	kindSubAgent    Kind = "sub-agent"
	kindPolicy      Kind = "policy"
	kindSetting     Kind = "setting"
	kindPlans       Kind = "folder of plans"
	kindUnknown     Kind = "field that pollux does not know"
)

// Capabilities are what an extension may do, and what it makes Gemini CLI do: everything that a user agrees to at an install or
// update. Mere descriptions are left out. CapabilitiesOf makes them; they are read-only.
type Capabilities struct {
	permissions permission.Permissions
	// items holds for each kind every capability, by its name, in a form in which equal capabilities are equal.
	items map[Kind]map[string][]string
}

// An Addition is a capability of a new version that the old one lacked in this form.
type Addition struct {
	Kind Kind
	Name string
}

// CapabilitiesOf reads them from the manifest and the files in the folder beside it.
func CapabilitiesOf(m *manifest.Manifest) Capabilities {
	c := Capabilities{permissions: m.Permissions, items: map[Kind]map[string][]string{}}
	for _, t := range m.Tools {
		c.add(kindTool, t.Name, t)
	}
	for _, s := range m.MCPServers {
		s.Description = ""
		text := s.JSON
		s.JSON = ""
		c.add(kindServer, s.Name, []any{s, working(text)}) // as pollux reads it, with every field of a newer CLI
	}
	for _, h := range m.Found.HookEntries {
		c.add(kindHook, h.Event, []any{h.Event, h.Matcher, parsed(h.JSON)})
	}
	if m.Found.Hooks && len(m.Found.HookEntries) == 0 {
		c.add(kindHook, "", m.Found.HookCommands)
	}
	for _, s := range m.Settings {
		c.add(kindSetting, s.EnvVar, s)
	}
	for kind, names := range map[Kind][]string{
		kindContextFile: m.Found.ContextFiles, kindExcluded: m.ExcludeTools, kindCommand: m.Found.Commands, kindSkill: m.Found.Skills,
		kindSubAgent: m.Found.Agents, kindPolicy: m.Found.Policies,
	} {
		for _, name := range names {
			c.add(kind, name, name)
		}
	}
	if m.PlanDirectory != "" {
		c.add(kindPlans, m.PlanDirectory, m.PlanDirectory)
	}
	for name, text := range m.Unknown {
		c.add(kindUnknown, name, parsed(text))
	}
	return c
}

func (c *Capabilities) add(kind Kind, name string, whole any) {
	text, err := json.Marshal(whole)
	if err != nil {
		panic("consent: a plain value did not encode: " + err.Error()) // only text and what was read as JSON get here
	}
	if c.items[kind] == nil {
		c.items[kind] = map[string][]string{}
	}
	c.items[kind][name] = append(c.items[kind][name], string(text))
}

// parsed decodes JSON, so that blanks and the order of names make no difference. A text that is no JSON stands for itself.
func parsed(text string) any {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return text
	}
	return v
}

// working returns a server's object without the fields that only describe it, or that extensions must not set.
func working(text string) any {
	v := parsed(text)
	if object, ok := v.(map[string]any); ok {
		for _, name := range []string{"description", "trust", "timeout"} {
			delete(object, name)
		}
	}
	return v
}

// kinds returns all kinds, in the order of their display.
func kinds() []Kind {
	return []Kind{kindPermission, kindTool, kindServer, kindHook, kindContextFile, kindExcluded, kindCommand, kindSkill, kindSubAgent, kindPolicy, kindSetting, kindPlans, kindUnknown}
}

// Beyond lists what c has and agreed lacks: wider rights, and capabilities that are new or changed. When the list is empty, a
// user who agreed to agreed has agreed to c (SPEC S-2).
func (c Capabilities) Beyond(agreed Capabilities) []Addition {
	var out []Addition
	if !agreed.permissions.Covers(c.permissions) {
		for _, sentence := range c.permissions.Compare(agreed.permissions).Wider {
			out = append(out, Addition{kindPermission, sentence})
		}
		if len(out) == 0 {
			out = append(out, Addition{kindPermission, ""})
		}
	}
	for _, kind := range kinds() {
		for _, name := range slices.Sorted(maps.Keys(c.items[kind])) {
			left := slices.Clone(agreed.items[kind][name])
			for _, whole := range c.items[kind][name] {
				i := slices.Index(left, whole)
				if i < 0 {
					out = append(out, Addition{kind, name})
					break
				}
				left = slices.Delete(left, i, i+1)
			}
		}
	}
	return out
}
