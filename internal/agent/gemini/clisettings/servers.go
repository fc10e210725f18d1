package clisettings

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

// Servers is what the settings of a CLI say about MCP servers, of all levels together. Every list keeps the file that it stands in.
type Servers struct {
	// Defined are the servers in mcpServers, by name: a CLI takes them over those of extensions.
	Defined []Named
	// Allowed are the lists in mcp.allowed; where there are some, a server must be in each. Admin are the names in
	// admin.mcp.config; where there are some, a server must be one of them. Excluded are the names in mcp.excluded, and
	// Disabled are the servers that /mcp disable switched off.
	Allowed                   []List
	Admin, Excluded, Disabled []Named
	// Off is the file that switches all servers off with admin.mcp.enabled; "" where none does.
	Off string
	// Broken are the files that cannot be read; a CLI does not start with them.
	Broken []error
}

// Named is a name and the file that it stands in.
type Named struct{ Name, File string }

// List is one list of names and the file that it stands in.
type List struct {
	Names []string
	File  string
}

// serverSettings is the part of settings.json that is about MCP servers.
type serverSettings struct {
	MCPServers map[string]json.RawMessage `json:"mcpServers"`
	MCP        struct {
		Allowed  []string `json:"allowed"`
		Excluded []string `json:"excluded"`
	} `json:"mcp"`
	Admin struct {
		MCP struct {
			Enabled *bool                      `json:"enabled"`
			Config  map[string]json.RawMessage `json:"config"`
		} `json:"mcp"`
	} `json:"admin"`
}

// ReadServers reads what a CLI with these variables would go by. user are its user's settings, as Path gives them; workspace is
// the folder that it is started in, "" for one whose settings do not count.
func ReadServers(getenv func(string) string, user, workspace string) Servers {
	defaults, system := System(getenv)
	files := []string{defaults, user}
	if workspace != "" {
		if own := filepath.Join(workspace, ".gemini", "settings.json"); own != user {
			files = append(files, own)
		}
	}
	var s Servers
	for _, file := range append(files, system) {
		if file != "" {
			s.read(file)
		}
	}
	file := filepath.Join(filepath.Dir(user), "mcp-server-enablement.json")
	var states map[string]struct {
		Enabled *bool `json:"enabled"`
	}
	if err := Program.Decode(file, &states); err != nil {
		return s // the CLI takes it for an empty one
	}
	for name, state := range states {
		if state.Enabled != nil && !*state.Enabled {
			s.Disabled = append(s.Disabled, Named{name, file})
		}
	}
	return s
}

// read adds one file.
func (s *Servers) read(file string) {
	var set serverSettings
	if err := Program.Decode(file, &set); err != nil {
		s.Broken = append(s.Broken, err)
		return
	}
	s.Defined = append(s.Defined, named(set.MCPServers, file)...)
	s.Admin = append(s.Admin, named(set.Admin.MCP.Config, file)...)
	if set.MCP.Allowed != nil {
		s.Allowed = append(s.Allowed, List{set.MCP.Allowed, file})
	}
	for _, name := range set.MCP.Excluded {
		s.Excluded = append(s.Excluded, Named{name, file})
	}
	if on := set.Admin.MCP.Enabled; on != nil && !*on {
		s.Off = file
	}
}

func named(all map[string]json.RawMessage, file string) []Named {
	var out []Named
	for name := range all {
		out = append(out, Named{name, file})
	}
	slices.SortFunc(out, func(a, b Named) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// A Block is why a CLI does not start a server.
type Block struct {
	// Setting is what says so, such as mcp.excluded, and File where it stands.
	Setting, File string
}

// Blocks says which settings keep the server of an extension from being started, by its name.
func (s Servers) Blocks(server string) []Block {
	var out []Block
	is := func(n Named) bool { return strings.EqualFold(strings.TrimSpace(n.Name), server) }
	if s.Off != "" {
		out = append(out, Block{"admin.mcp.enabled", s.Off})
	}
	if len(s.Admin) > 0 && !slices.ContainsFunc(s.Admin, is) {
		out = append(out, Block{"admin.mcp.config", s.Admin[0].File})
	}
	for _, l := range s.Allowed {
		if len(l.Names) > 0 && !slices.ContainsFunc(l.Names, func(n string) bool { return is(Named{Name: n}) }) {
			out = append(out, Block{"mcp.allowed", l.File})
		}
	}
	if i := slices.IndexFunc(s.Excluded, is); i >= 0 {
		out = append(out, Block{"mcp.excluded", s.Excluded[i].File})
	}
	if i := slices.IndexFunc(s.Disabled, is); i >= 0 {
		out = append(out, Block{"enabled", s.Disabled[i].File})
	}
	return out
}
