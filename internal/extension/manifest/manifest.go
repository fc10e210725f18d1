// Package manifest reads gemini-extension.json in both of its forms, reports all its faults at once, keeps unknown
// fields, and measures the folder around it: the files that it names, and their hashes.
package manifest

import (
	"strings"

	"github.com/pollux-companion/pollux/internal/permission"
)

// FileName is the manifest's name inside an extension's folder.
const FileName = "gemini-extension.json"

// InstallFileName is the install metadata that Gemini CLI and pollux write beside the manifest. It is not part of an
// extension's content.
const InstallFileName = ".gemini-extension-install.json"

// Manifest is one gemini-extension.json (SPEC E-1), with the old and the new fields. Values are as written: variables
// such as ${extensionPath} are not replaced, and paths are relative to the extension with forward slashes. It is
// read-only after Parse or Load and safe for concurrent use.
type Manifest struct {
	Name        string
	Version     string // a number keeps its text
	Description string

	// The old form.
	MCPServers    []MCPServer // in the file's order
	ContextFiles  []string    // contextFileName; a string becomes a list of one; nil if absent
	ExcludeTools  []string
	Settings      []Setting
	Themes        []Theme
	PlanDirectory string // plan.directory
	MigratedTo    string

	// The new form.
	Permissions    permission.Permissions
	HasPermissions bool // whether the file has the block; without it everything is denied
	Tools          []Tool
	Docs           []Doc
	Examples       []Example

	// Unknown holds the fields that no version documents: name → JSON text (SPEC E-1: kept and reported).
	Unknown map[string]string

	// Found is what the folder holds by convention; only Load fills it.
	Found Found
}

// MCPServer is an MCP server that the CLI starts or contacts for the extension. It runs outside the sandbox, with all
// of the user's rights.
type MCPServer struct {
	Name        string
	Description string
	Command     string // empty for a remote server
	Args        []string
	Env         map[string]string
	Cwd         string
	URL         string // httpUrl or url, or tcp; with it the CLI starts no Command
	Headers     map[string]string
	SignIn      string // authProviderType: which of the user's credentials the CLI sends to URL
	JSON        string // the whole object as the file has it
}

// Theme is one theme of the CLI's user interface.
type Theme struct {
	Name string
	JSON string // the whole object as the file has it
}

// Setting is a value that the user gives an extension. MCP servers and tools get it in the environment variable
// EnvVar.
type Setting struct {
	Name, Description, EnvVar string
	Sensitive                 bool // kept in the keychain, never printed
}

// Tool is a program of the extension that a model may call (SPEC E-3).
type Tool struct {
	Name, Description string
	Executable        string // relative to the extension, forward slashes
	Runtime           string // node, python or shell
	Output            string // json or string; string when absent
	Args              []Arg
}

// Arg is one named argument of a Tool.
type Arg struct {
	Name, Type, Description string // Type: string, number, integer, boolean, array or object
	// Optional says that a call may omit it. An argument with a Default is optional.
	Optional bool
	// Default is the value if a call omits it, as JSON text; "" for none.
	Default string
}

// Doc is a document that the model can read on demand.
type Doc struct {
	Name, Description string
	File              string // relative to the extension, forward slashes
}

// Example shows a request and the tool call that answers it.
type Example struct {
	Prompt, ToolCall string
}

// Calls says whether the example is a call of that tool.
func (e Example) Calls(tool string) bool {
	name, _, ok := strings.Cut(e.ToolCall, "(")
	return ok && strings.TrimSpace(name) == tool
}

// Found lists what the CLI takes from an extension's folder by convention, relative with forward slashes, sorted.
type Found struct {
	ContextFiles []string // files that go into the first prompt: the named ones, or GEMINI.md
	Commands     []string // commands/**/*.toml, as typed by the user: /name or /dir:name
	Skills       []string // folders in skills/ that have a SKILL.md
	Agents       []string // agents/*.md, without the extension
	Policies     []string // policies/*.toml
	Hooks        bool     // hooks/hooks.json exists: commands that the CLI runs by itself
	HookCommands []string // its commands in the file's order, such as "SessionStart: node start.js"
	HookEntries  []Hook   // its hooks in full
}

// Hook is one hook of hooks/hooks.json: a command that Gemini CLI runs at an event.
type Hook struct {
	Event, Matcher string
	JSON           string // the whole object as in the file; with an empty Event, the whole unreadable file
}

// Signature returns the tool as a model reads it: lintFile(file: string).
func (t Tool) Signature() string {
	s := t.Name + "("
	for i, a := range t.Args {
		if i > 0 {
			s += ", "
		}
		s += a.signature()
	}
	return s + ")"
}

// signature returns an argument as a model reads it: depth: integer = 3, or note?: string.
func (a Arg) signature() string {
	switch {
	case len(a.Default) > maxShownDefault:
		return a.Name + ": " + a.Type + " = …"
	case a.Default != "":
		return a.Name + ": " + a.Type + " = " + a.Default
	case a.Optional:
		return a.Name + "?: " + a.Type
	}
	return a.Name + ": " + a.Type
}

// maxShownDefault is the longest default in a signature, in bytes.
const maxShownDefault = 40

// Tool finds a tool by its exact name.
func (m *Manifest) Tool(name string) (Tool, bool) {
	for _, t := range m.Tools {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// Doc finds a document by its exact name.
func (m *Manifest) Doc(name string) (Doc, bool) {
	for _, d := range m.Docs {
		if d.Name == name {
			return d, true
		}
	}
	return Doc{}, false
}
