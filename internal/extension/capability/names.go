package capability

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// MaxName is the longest name of a tool, in characters. Gemini CLI calls it mcp_pollux-abcdef_<name> and cuts names
// longer than 63 (SPEC P-3).
const MaxName = 45

// pollux's own tools, which a model gets beside those of extensions. No extension's tool may have these names.
const (
	ReadDoc  = "read_doc"
	Describe = "describe_extension"
	// RunTool runs any tool by name. It is the gateway to tools that are not declared one by one.
	RunTool = "run_extension_tool"
	// AskUser asks the user about the extensions that wait for consent.
	AskUser = "request_consent"
)

// reserved lists the names that no extension's tool may have: pollux's own tools, and the editor's, which an MCP
// client may get from the same server.
func reserved() []string {
	return []string{
		ReadDoc, Describe, RunTool, AskUser, "checkDocumentDirty", "getCurrentSelection", "getDiagnostics", "getLatestSelection",
		"getOpenEditors", "getWorkspaceFolders", "openDiff", "openFile",
	}
}

// Reserved says whether a name is closed to extensions' tools.
func Reserved(name string) bool {
	return slices.ContainsFunc(reserved(), func(r string) bool { return strings.EqualFold(r, name) })
}

// names counts how many extensions use each name.
type names struct {
	tools, docs map[string]int
}

func newNames(all []Candidate) *names {
	n := &names{tools: map[string]int{}, docs: map[string]int{}}
	for _, name := range reserved() {
		n.tools[strings.ToLower(name)] = 1
	}
	for _, c := range all {
		for _, t := range c.Tools {
			n.tools[strings.ToLower(t.Name)]++
		}
		for _, d := range c.Docs {
			n.docs[strings.ToLower(d.Name)]++
		}
	}
	return n
}

// tool returns the callable name of a tool. A name with the prefix mcp_ is never used alone: Gemini CLI would take it
// for another server's tool.
func (n *names) tool(extension, tool string) string {
	if n.tools[strings.ToLower(tool)] <= 1 && len(tool) <= MaxName && !strings.HasPrefix(strings.ToLower(tool), "mcp_") {
		return tool
	}
	name := extension + "_" + tool
	if strings.HasPrefix(strings.ToLower(name), "mcp_") || name[0] == '-' {
		name = "ext_" + name
	}
	_, taken := n.tools[strings.ToLower(name)]
	if len(name) <= MaxName && !taken && !strings.Contains(tool, "_") {
		return name
	}
	// The name was cut, or is ambiguous (a_b of c equals b_c of a). A hash makes it unique.
	for salt := 0; ; salt++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s.%s.%d", extension, tool, salt))
		mark := "_" + hex.EncodeToString(sum[:6])
		marked := name[:min(len(name), MaxName-len(mark))] + mark
		if _, taken := n.tools[strings.ToLower(marked)]; !taken {
			return marked
		}
	}
}

func (n *names) doc(extension, doc string) string {
	if n.docs[strings.ToLower(doc)] <= 1 && !strings.Contains(doc, ".") {
		return doc
	}
	return extension + "." + doc
}
