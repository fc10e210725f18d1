package clisettings

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

// Servers is what a CLI's settings of all levels say about MCP servers. Every list keeps the file that it comes from.
type Servers struct {
	// Defined are the servers in mcpServers, by name: a CLI takes them over those of extensions.
	Defined []Named
	// Allowed are the lists in mcp.allowed; a server must be in each of them. Admin are the names in admin.mcp.config; when
	// there are any, a server must be one of them. Excluded are the names in mcp.excluded. Disabled are the servers that
	// /mcp disable switched off.
	Allowed                   []List
	Admin, Excluded, Disabled []Named
	// Off is the file that switches all servers off with admin.mcp.enabled; "" when none does.
	Off string
	// Broken are the files that cannot be read; with one, a CLI does not start.
	Broken []error
}

// Named is a name and the file that it comes from.
type Named struct{ Name, File string }

// List is one list of names and the file that it comes from.
type List struct {
	Names []string
	File  string
}

// serverSettings is the part of settings.json about MCP servers.
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

// ReadServers reads what a CLI with these variables would follow. user is its user's settings file, as Path returns it; workspace is
// its working folder, "" for one whose settings do not count.
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

// A Block says why a CLI does not start a server.
type Block struct {
	// Setting names the setting, such as mcp.excluded, and File its file.
	Setting, File string
}

// Blocks returns the settings that keep an extension's server, by its name, from being started.
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
