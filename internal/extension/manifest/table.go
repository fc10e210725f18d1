package manifest

import (
	"regexp"
	"sync"

	"github.com/pollux-companion/pollux/internal/permission"
)

// shape describes what a value in a manifest may be. The table of shapes is the only place that knows the format:
// checks use it, and the JSON Schema and the documentation's field tables are generated from it.
type shape struct {
	kind    kind
	orList  bool // a list of such values is allowed too
	any     bool // any kind of value is allowed
	soft    bool // a value of another kind is only a warning
	doc     string
	enum    []string
	pattern func() *regexp.Regexp // compiled on first use
	hint    string                // the pattern in words
	max     int                   // characters of a string, entries of a list or object; 0: only the parser's bounds
	fields  []field
	strict  bool   // an unknown field is an error: it may be a misspelt permission
	free    bool   // unknown fields are ignored
	values  *shape // for an object with free names
	items   *shape
	// judge checks what a shape cannot express; n has the right kind.
	judge func(c *checker, n *node)
}

// field is one name of an object.
type field struct {
	name     string
	required bool
	shape    *shape
}

// The forms of names. A tool's name is a function for the model and becomes mcp_pollux_<tool> in the CLI, which
// allows 63 characters (SPEC P-3). An argument's name becomes a command-line flag, so it cannot begin with a dash.
var (
	nameForm     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9-]+$`) })
	toolForm     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]*$`) })
	docForm      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*$`) })
	variableForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`) })
)

const (
	maxName      = 128 // of an extension, in characters
	nameHint     = "letters, digits and dashes"
	toolHint     = "letters, digits, _ and -, beginning with a letter or _"
	docHint      = "letters, digits, dots, _ and -, beginning with a letter or digit"
	variableHint = "letters, digits and _, not beginning with a digit"
)

func text(doc string) *shape { return &shape{kind: kindString, doc: doc, max: 16_384} }

// told is a text by which a model decides.
func told(doc string) *shape {
	s := text(doc)
	s.judge = (*checker).described
	return s
}

func soft(s *shape) *shape {
	s.soft = true
	return s
}

func texts(doc string) *shape {
	return &shape{kind: kindArray, doc: doc, max: 1024, items: text("One entry.")}
}

func list(doc string, max int, item *shape) *shape {
	return &shape{kind: kindArray, doc: doc, max: max, items: item}
}

func object(doc string, fields ...field) *shape {
	return &shape{kind: kindObject, doc: doc, fields: fields}
}

func file(doc string, use fileUse) *shape {
	s := text(doc)
	s.judge = func(c *checker, n *node) { c.file(n, use) }
	return s
}

// table returns the whole format (SPEC E-1, E-2, E-3). It is read-only.
var table = sync.OnceValue(manifestShape)

func manifestShape() *shape {
	return &shape{
		kind: kindObject,
		doc:  "A Gemini CLI extension: what it is, what it brings, and what its tools may do.",
		fields: []field{
			{"$schema", false, text("Where this schema stands, for editors. Ignored otherwise.")},
			{"name", true, &shape{kind: kindString, doc: "The extension's name, and that of its folder: letters, digits and dashes.", pattern: nameForm, hint: nameHint, max: maxName, judge: (*checker).name}},
			{"version", true, &shape{kind: kindString, doc: "The version, such as 1.0.0.", max: 128, judge: (*checker).version}},
			{"description", false, text("What the extension is for, in a sentence. The model reads it at session start.")},
			{"permissions", false, permissionsShape()},
			{"tools", false, list("Programs that the model may call.", 256, toolShape())},
			{"docs", false, list("Documents that the model can read when it wants to.", 256, docShape())},
			{"examples", false, list("Requests and the tool calls that answer them.", 256, exampleShape())},
			{"mcpServers", false, &shape{kind: kindObject, doc: "MCP servers by name. Gemini CLI starts them outside any sandbox, with all your rights.", max: 64, values: serverShape()}},
			{"contextFileName", false, contextShape()},
			{"excludeTools", false, texts("Core tools of the CLI to switch off for the whole session.")},
			{"settings", false, list("Values that the user gives the extension.", 256, settingShape())},
			{"themes", false, list("Colour themes of the CLI.", 64, &shape{kind: kindObject, doc: "One theme.", free: true, fields: []field{{"name", true, text("The theme's name.")}}})},
			{"plan", false, object("Settings of the CLI's plan mode.", field{"directory", false, file("Where plans are kept, relative to the workspace.", useText)})},
			{"migratedTo", false, text("The address where the extension lives now; updates follow it.")},
		},
		judge: (*checker).whole,
	}
}

func permissionsShape() *shape {
	access := func(doc string) *shape {
		return &shape{kind: kindString, doc: doc, enum: permission.AccessNames()}
	}
	filesystem := object("Files.",
		field{"read", false, access("Which files its tools may read.")},
		field{"write", false, access("Which files its tools may create, change and delete. Includes reading them.")})
	filesystem.strict, filesystem.judge = true, (*checker).filesystem
	network := object("Network.", field{"allowedHosts", false, list(
		"Hosts that its tools may contact. Empty: none.", 256,
		&shape{kind: kindString, max: 300, judge: (*checker).host, doc: "host (ports 443 and 80), scheme://host[:port], or *.domain."})})
	network.strict = true
	all := object("What the extension's tools may do. What is absent is denied.",
		field{"filesystem", false, filesystem}, field{"network", false, network})
	all.strict = true
	return all
}

func toolShape() *shape {
	arg := object("One argument.",
		field{"name", true, &shape{kind: kindString, doc: "The argument's name; the program gets --name value.", pattern: toolForm, hint: toolHint, max: 64, judge: (*checker).argName}},
		field{"type", true, &shape{kind: kindString, doc: "The type of the value. A boolean reaches the program as --name when it is true, a list or object as JSON text.", enum: []string{"string", "number", "integer", "boolean", "array", "object"}}},
		field{"description", false, text("What the argument means.")},
		field{"required", false, &shape{kind: kindBool, doc: "Whether every call must have it; true when absent, unless there is a default."}},
		field{"default", false, &shape{any: true, doc: "What the program gets when the call leaves it out: a value of the type."}})
	arg.judge = (*checker).argument
	args := list("The arguments, which reach the program as --name value, in this order.", 64, arg)
	args.judge = func(c *checker, n *node) { c.unique(n, "name", "argument") }
	s := object("One tool.",
		field{"name", true, &shape{kind: kindString, doc: "The name by which the model calls it.", pattern: toolForm, hint: toolHint, max: 52}},
		field{"description", true, told("What the tool does, for the model.")},
		field{"executable", true, file("The program's file, relative to the extension.", useRun)},
		field{"runtime", true, &shape{kind: kindString, doc: "What runs the file.", enum: []string{"node", "python", "shell"}}},
		field{"output", false, &shape{kind: kindString, doc: "What the program prints; string when absent.", enum: []string{"json", "string"}}},
		field{"args", false, args})
	s.judge = (*checker).tool
	return s
}

func docShape() *shape {
	return object("One document.",
		field{"name", true, &shape{kind: kindString, doc: "The name by which the model asks for it.", pattern: docForm, hint: docHint, max: 64}},
		field{"description", true, told("What the document is about, for the model.")},
		field{"file", true, file("The document's file, relative to the extension.", useRead)})
}

func exampleShape() *shape {
	call := text(`The call, such as lintFile(file="src/index.js").`)
	call.judge = (*checker).toolCall
	return object("One example.",
		field{"prompt", true, text("What the user asks.")},
		field{"tool_call", true, call})
}

func serverShape() *shape {
	s := object("One MCP server.",
		field{"command", false, text("The program to start.")},
		field{"args", false, texts("Its arguments.")},
		field{"env", false, &shape{kind: kindObject, doc: "Its environment variables.", max: 256, values: soft(text("The value."))}},
		field{"cwd", false, text("The folder to start it in.")},
		field{"timeout", false, soft(&shape{kind: kindNumber, doc: "How long a request may take, in milliseconds."})},
		field{"trust", false, &shape{kind: kindBool, doc: "Ignored in extensions: only the user can trust a server.", judge: (*checker).trust}},
		field{"description", false, text("What the server is for.")},
		field{"includeTools", false, texts("The only tools to offer.")},
		field{"excludeTools", false, texts("Tools to leave out.")},
		field{"url", false, text("The address of a remote server.")},
		field{"httpUrl", false, text("The address of a remote server that speaks Streamable HTTP.")},
		field{"tcp", false, text("The address of a WebSocket server.")},
		field{"type", false, &shape{kind: kindString, doc: "How url is spoken to.", enum: []string{"sse", "http", "stdio"}}},
		field{"headers", false, &shape{kind: kindObject, doc: "HTTP headers to send.", max: 256, values: soft(text("The value."))}},
		field{"oauth", false, &shape{kind: kindObject, doc: "OAuth settings.", free: true}},
		field{"authProviderType", false, text("How the CLI authenticates.")},
		field{"targetAudience", false, text("The OAuth client of an identity-aware proxy.")},
		field{"targetServiceAccount", false, text("The service account to impersonate.")})
	s.judge = (*checker).server
	return s
}

func contextShape() *shape {
	s := file("Files that go into the first prompt; GEMINI.md when absent.", useContext)
	s.orList, s.max = true, 1024
	return s
}

func settingShape() *shape {
	return object("One setting.",
		field{"name", true, text("What the user sees.")},
		field{"description", false, text("What the value is for.")},
		field{"envVar", true, &shape{kind: kindString, doc: "The environment variable that carries the value.", pattern: variableForm, hint: variableHint, max: 128, judge: (*checker).variable}},
		field{"sensitive", false, &shape{kind: kindBool, doc: "Whether the value is a secret: kept in the keychain, never printed."}})
}
