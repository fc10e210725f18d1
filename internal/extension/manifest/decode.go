package manifest

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pollux-companion/pollux/internal/permission"
)

// decode fills a Manifest with the values of the right kind. Others are already reported and count as absent. This
// holds for permissions too: a level or host that is not understood grants nothing.
func decode(root *node, data []byte) *Manifest {
	m := &Manifest{
		Name:          str(root.get("name")),
		Version:       str(root.get("version")),
		Description:   str(root.get("description")),
		ContextFiles:  strs(root.get("contextFileName")),
		ExcludeTools:  strs(root.get("excludeTools")),
		PlanDirectory: str(root.get("plan").get("directory")),
		MigratedTo:    str(root.get("migratedTo")),
	}
	if v := root.get("version"); v != nil && v.kind == kindNumber {
		m.Version = v.text
	}
	raw := func(n *node) string { return string(data[n.start:n.end]) }
	if servers := root.get("mcpServers"); servers != nil {
		for _, s := range servers.members {
			m.MCPServers = append(m.MCPServers, decodeServer(s.name, s.value, raw(s.value)))
		}
	}
	each(root, "settings", func(n *node) {
		m.Settings = append(m.Settings, Setting{str(n.get("name")), str(n.get("description")), str(n.get("envVar")), truth(n.get("sensitive"))})
	})
	each(root, "themes", func(n *node) { m.Themes = append(m.Themes, Theme{str(n.get("name")), raw(n)}) })
	if p := root.get("permissions"); p != nil {
		m.HasPermissions, m.Permissions = true, decodePermissions(p)
	}
	each(root, "tools", func(n *node) { m.Tools = append(m.Tools, decodeTool(n, raw)) })
	each(root, "docs", func(n *node) {
		m.Docs = append(m.Docs, Doc{str(n.get("name")), str(n.get("description")), str(n.get("file"))})
	})
	each(root, "examples", func(n *node) {
		m.Examples = append(m.Examples, Example{str(n.get("prompt")), str(n.get("tool_call"))})
	})
	m.Unknown = unknownFields(root, raw)
	return m
}

func unknownFields(root *node, raw func(*node) string) map[string]string {
	var out map[string]string
	if root.kind != kindObject {
		return nil
	}
	for _, m := range root.members {
		if !slices.ContainsFunc(table().fields, func(f field) bool { return f.name == m.name }) {
			if out == nil {
				out = map[string]string{}
			}
			out[m.name] = raw(m.value)
		}
	}
	return out
}

func decodeServer(name string, n *node, raw string) MCPServer {
	s := MCPServer{
		Name: name, JSON: raw, Description: str(n.get("description")), Command: str(n.get("command")),
		Args: strs(n.get("args")), Cwd: str(n.get("cwd")), URL: str(n.get("httpUrl")),
	}
	if s.URL == "" {
		s.URL = str(n.get("url"))
	}
	if s.URL == "" && s.Command == "" {
		s.URL = str(n.get("tcp"))
	}
	s.Env, s.Headers, s.SignIn = textMap(n.get("env")), textMap(n.get("headers")), str(n.get("authProviderType"))
	return s
}

// textMap returns an object of texts, or nil if n is no object.
func textMap(n *node) map[string]string {
	if n == nil || n.kind != kindObject {
		return nil
	}
	m := make(map[string]string, len(n.members))
	for _, e := range n.members {
		m[e.name] = str(e.value)
	}
	return m
}

func decodeTool(n *node, raw func(*node) string) Tool {
	t := Tool{
		Name: str(n.get("name")), Description: str(n.get("description")),
		Executable: str(n.get("executable")), Runtime: str(n.get("runtime")), Output: str(n.get("output")),
	}
	if n.get("output") == nil {
		t.Output = "string"
	}
	each(n, "args", func(a *node) {
		arg := Arg{Name: str(a.get("name")), Type: str(a.get("type")), Description: str(a.get("description"))}
		if d := a.get("default"); d != nil {
			arg.Default = compact(raw(d))
		}
		required := a.get("required")
		arg.Optional = arg.Default != "" || required != nil && !truth(required)
		t.Args = append(t.Args, arg)
	})
	return t
}

// compact returns JSON text without whitespace between its parts. Other text stays unchanged.
func compact(text string) string {
	var out bytes.Buffer
	if json.Compact(&out, []byte(text)) != nil {
		return text
	}
	return out.String()
}

func decodePermissions(n *node) permission.Permissions {
	var p permission.Permissions
	files := n.get("filesystem")
	p.Read, _ = permission.ParseAccess(str(files.get("read")))
	p.Write, _ = permission.ParseAccess(str(files.get("write")))
	hosts := n.get("network").get("allowedHosts")
	if hosts == nil || hosts.kind != kindArray {
		return p
	}
	for _, text := range strs(hosts) {
		if h, err := permission.ParseHost(text); err == nil {
			p.Hosts = append(p.Hosts, h)
		}
	}
	return p
}

func str(n *node) string {
	if n == nil || n.kind != kindString {
		return ""
	}
	return n.text
}

func truth(n *node) bool { return n != nil && n.kind == kindBool && n.text == "true" }

// strs returns a list of strings; a single string becomes a list of one.
func strs(n *node) []string {
	if n == nil {
		return nil
	}
	if n.kind == kindString {
		return []string{n.text}
	}
	var out []string
	for _, i := range n.items {
		if i.kind == kindString {
			out = append(out, i.text)
		}
	}
	return out
}

// each calls f for the objects of a list.
func each(n *node, list string, f func(*node)) {
	l := n.get(list)
	if l == nil {
		return
	}
	for _, item := range l.items {
		if item.kind == kindObject {
			f(item)
		}
	}
}
