package consent

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
)

// A Kind is a kind of capability.
type Kind string

// The kinds, in the order of their display.
const (
	Permission  Kind = "permission"
	Tool        Kind = "tool"
	Server      Kind = "MCP server"
	Hook        Kind = "hook"
	ContextFile Kind = "context file"
	Excluded    Kind = "core tool that it switches off"
	Command     Kind = "slash command"
	Skill       Kind = "skill"
	SubAgent    Kind = "sub-agent"
	Policy      Kind = "policy"
	Setting     Kind = "setting"
	Plans       Kind = "folder of plans"
	Unknown     Kind = "field that pollux does not know"
)

// Capabilities are what an extension may do, and what it makes Gemini CLI do: everything that a user agrees to at an install or
// update. Mere descriptions are left out. CapabilitiesOf makes them; they are read-only.
type Capabilities struct {
	permissions manifest.Permissions
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
		c.add(Tool, t.Name, t)
	}
	for _, s := range m.MCPServers {
		s.Description = ""
		text := s.JSON
		s.JSON = ""
		c.add(Server, s.Name, []any{s, working(text)}) // as pollux reads it, with every field of a newer CLI
	}
	for _, h := range m.Found.HookEntries {
		c.add(Hook, h.Event, []any{h.Event, h.Matcher, parsed(h.JSON)})
	}
	if m.Found.Hooks && len(m.Found.HookEntries) == 0 {
		c.add(Hook, "", m.Found.HookCommands)
	}
	for _, s := range m.Settings {
		c.add(Setting, s.EnvVar, s)
	}
	for kind, names := range map[Kind][]string{
		ContextFile: m.Found.ContextFiles, Excluded: m.ExcludeTools, Command: m.Found.Commands, Skill: m.Found.Skills,
		SubAgent: m.Found.Agents, Policy: m.Found.Policies,
	} {
		for _, name := range names {
			c.add(kind, name, name)
		}
	}
	if m.PlanDirectory != "" {
		c.add(Plans, m.PlanDirectory, m.PlanDirectory)
	}
	for name, text := range m.Unknown {
		c.add(Unknown, name, parsed(text))
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

// Kinds returns all kinds, in the order of their display.
func Kinds() []Kind {
	return []Kind{Permission, Tool, Server, Hook, ContextFile, Excluded, Command, Skill, SubAgent, Policy, Setting, Plans, Unknown}
}

// Beyond lists what c has and agreed lacks: wider rights, and capabilities that are new or changed. When the list is empty, a
// user who agreed to agreed has agreed to c (SPEC S-2).
func (c Capabilities) Beyond(agreed Capabilities) []Addition {
	var out []Addition
	if !agreed.permissions.Covers(c.permissions) {
		for _, sentence := range c.permissions.Compare(agreed.permissions).Wider {
			out = append(out, Addition{Permission, sentence})
		}
		if len(out) == 0 {
			out = append(out, Addition{Permission, ""})
		}
	}
	for _, kind := range Kinds() {
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
