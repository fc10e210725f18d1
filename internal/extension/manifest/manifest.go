// Package manifest reads gemini-extension.json in both of its forms, says
// everything that is wrong with it at once, keeps what it does not know, and
// measures the tree around it: which files it names, and what they hash to.
package manifest

import "strings"

// FileName is the manifest's name inside an extension's folder.
const FileName = "gemini-extension.json"

// InstallFileName is the install metadata that Gemini CLI and pollux write
// beside the manifest; it is no part of an extension's content.
const InstallFileName = ".gemini-extension-install.json"

// Manifest is one gemini-extension.json (SPEC E-1): the old fields and the
// new ones. Values are as written: variables such as ${extensionPath} are not
// replaced, paths are relative to the extension with forward slashes. It is
// read-only after Parse or Load and safe for concurrent use.
type Manifest struct {
	Name        string
	Version     string // a number in the file is kept as its text
	Description string

	// The old form.
	MCPServers    []MCPServer // in the file's order
	ContextFiles  []string    // contextFileName, a string there counts as a list of one; nil when absent
	ExcludeTools  []string
	Settings      []Setting
	Themes        []Theme
	PlanDirectory string // plan.directory
	MigratedTo    string

	// The new form.
	Permissions    Permissions
	HasPermissions bool // whether the file has the block at all; without it everything is denied
	Tools          []Tool
	Docs           []Doc
	Examples       []Example

	// Unknown holds the fields that no version documents, by name, as the JSON
	// text of the file (SPEC E-1: kept and reported).
	Unknown map[string]string

	// Found is what lies in the folder by convention; only Load fills it.
	Found Found
}

// MCPServer is an MCP server that the CLI starts or contacts for the
// extension: outside the sandbox, with all rights of the user.
type MCPServer struct {
	Name        string
	Description string
	Command     string // empty for a remote server
	Args        []string
	Env         map[string]string
	Cwd         string
	URL         string // httpUrl or url; the CLI then starts no Command
	Headers     map[string]string
	SignIn      string // authProviderType: whose credentials of the user's the CLI sends to URL
	JSON        string // the whole object as the file has it
}

// Theme is one theme of the CLI's user interface.
type Theme struct {
	Name string
	JSON string // the whole object as the file has it
}

// Setting is a value that the user gives an extension. It reaches the MCP
// servers and tools as the environment variable EnvVar.
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
	// Optional says that a call may leave it out. One with a Default is optional.
	Optional bool
	// Default is what the program gets where it is left out, as the JSON text of the file; "" for nothing.
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

// Calls says whether the example is one of the tool of a name.
func (e Example) Calls(tool string) bool {
	name, _, ok := strings.Cut(e.ToolCall, "(")
	return ok && strings.TrimSpace(name) == tool
}

// Found lists what the CLI takes from an extension's folder by convention,
// relative with forward slashes, sorted.
type Found struct {
	ContextFiles []string // files that go into the first prompt: those named, or GEMINI.md
	Commands     []string // commands/**/*.toml, as the user types them: /name or /dir:name
	Skills       []string // folders of skills/ with a SKILL.md
	Agents       []string // agents/*.md, without the ending
	Policies     []string // policies/*.toml
	Hooks        bool     // hooks/hooks.json is there: commands that the CLI runs by itself
	HookCommands []string // those commands in the file's order, such as "SessionStart: node start.js"
	HookEntries  []Hook   // the same in full
}

// Hook is one hook of hooks/hooks.json: a command that Gemini CLI runs at an event.
type Hook struct {
	Event, Matcher string
	JSON           string // the whole object as the file has it; with an empty Event the whole file, which could not be read
}

// Signature is the tool as a model reads it: lintFile(file: string).
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

// signature is an argument as a model reads it: depth: integer = 3, or note?: string.
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
