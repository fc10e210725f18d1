package capability

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// MaxName is the longest name of a tool, in characters: Gemini CLI knows it as
// mcp_pollux-abcdef_<name> and cuts what is longer than 63 (SPEC P-3).
const MaxName = 45

// pollux's own tools, which a model gets beside those of extensions; no extension's tool may go by their names.
const (
	ReadDoc  = "read_doc"
	Describe = "describe_extension"
	// RunTool runs any tool by its name: the gateway to tools that are not declared one by one.
	RunTool = "run_extension_tool"
	// AskUser has the user asked about the extensions that wait for consent.
	AskUser = "request_consent"
)

// reserved are all names that no extension's tool goes by: pollux's own, and those of the editor's tools, which
// an MCP client may get from the same server.
func reserved() []string {
	return []string{
		ReadDoc, Describe, RunTool, AskUser, "checkDocumentDirty", "getCurrentSelection", "getDiagnostics", "getLatestSelection",
		"getOpenEditors", "getWorkspaceFolders", "openDiff", "openFile",
	}
}

// Reserved says whether no extension's tool may go by a name.
func Reserved(name string) bool {
	return slices.ContainsFunc(reserved(), func(r string) bool { return strings.EqualFold(r, name) })
}

// names knows which names several extensions share.
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

// tool is the callable name of a tool. A name that begins with mcp_ is never
// used bare: Gemini CLI would take it for the tool of another server.
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
	// Cut, or not unique by itself (a_b of c is b_c of a): the hash makes it so.
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
