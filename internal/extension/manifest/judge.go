package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/words"
)

// semver is the form of https://semver.org, with the optional leading v that the CLI tolerates.
var semver = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
})

// whole checks what concerns several fields.
func (c *checker) whole(n *node) {
	lists := []struct{ list, field, what string }{
		{"tools", "name", "tool"}, {"docs", "name", "document"}, {"settings", "envVar", "variable"}, {"themes", "name", "theme"},
	}
	for _, l := range lists {
		if list := n.get(l.list); list != nil {
			c.inField(l.list, func() { c.unique(list, l.field, l.what) })
		}
	}
	tools := n.get("tools")
	if tools != nil && len(tools.items) > 0 && n.get("permissions") == nil {
		c.inField("tools", func() {
			c.say(Note, tools.start, tools.start, "there is no \"permissions\" block, so the tools may touch no files of the user's and no network", "")
		})
	}
	if d := n.get("description"); (d == nil || d.text == "") && (tools != nil || n.get("docs") != nil) {
		c.say(Note, n.start, n.start, "there is no description; the model learns from it when to use the extension", `add "description": "…"`)
	}
}

func (c *checker) name(n *node) {
	switch {
	case !nameForm().MatchString(n.text): // reported by the shape
	case strings.HasPrefix(n.text, "-"):
		c.about(Warning, n, "the name begins with a dash, so commands take it for an option", "begin it with a letter")
	case Passes(n.text) && !c.own:
		c.about(Error, n, passing("extension", n.text), "choose another")
	case reserved(n.text):
		c.about(Error, n, fmt.Sprintf("Windows reserves the name %q", n.text), "choose another")
	case n.text != strings.ToLower(n.text):
		c.about(Warning, n, "the name has capital letters; on some disks it is the same as one without", fmt.Sprintf("write %q", strings.ToLower(n.text)))
	}
}

func (c *checker) version(n *node) {
	if n.text == "" {
		c.about(Error, n, "the version is empty, and Gemini CLI does not load the extension", `write "1.0.0"`)
	} else if !semver().MatchString(n.text) {
		c.about(Warning, n, fmt.Sprintf("the version %q is no semantic version, so nothing can tell which of two is newer", n.text), "write it like 1.0.0")
	}
}

func (c *checker) filesystem(n *node) {
	read, write := n.get("read"), n.get("write")
	if write == nil || write.kind != kindString {
		return
	}
	w, err := permission.ParseAccess(write.text)
	r := permission.None
	if read != nil && read.kind == kindString {
		var bad error
		if r, bad = permission.ParseAccess(read.text); bad != nil {
			return
		}
	}
	if err == nil && w > r {
		c.inField("write", func() {
			c.about(Warning, write, "who may change files may read them: this grants reading as well", fmt.Sprintf(`write "read": %q too, so that it can be seen`, w))
		})
	}
}

func (c *checker) host(n *node) {
	h, err := permission.ParseHost(n.text)
	if err != nil {
		c.about(Error, n, err.Error(), permission.HostFix(n.text))
		return
	}
	if h.Local() {
		c.about(Note, n, fmt.Sprintf("%q is this machine or its own network: the extension can reach services that the internet cannot", n.text), "")
	}
}

func (c *checker) argName(n *node) {
	if n.text == "wait_for_previous" {
		c.about(Error, n, `Gemini CLI adds an argument "wait_for_previous" to every tool for itself`, "choose another name")
	}
}

// argument checks that an argument's default, type and required agree.
func (c *checker) argument(n *node) {
	value, required := n.get("default"), n.get("required")
	if value == nil {
		return
	}
	if truth(required) {
		c.inField("required", func() {
			c.about(Error, required, "an argument with a default is never missing, so it cannot be required", `remove "required", or the default`)
		})
	}
	want := str(n.get("type"))
	ok := false
	switch want {
	case "string":
		ok = value.kind == kindString && !strings.ContainsRune(value.text, 0)
	case "boolean":
		ok = value.kind == kindBool
	case "number":
		ok = value.kind == kindNumber
	case "integer":
		ok = value.kind == kindNumber && !strings.ContainsAny(value.text, ".eE")
	case "array":
		ok = value.kind == kindArray
	case "object":
		ok = value.kind == kindObject
	default:
		return // the wrong type is already reported
	}
	c.inField("default", func() {
		if !ok {
			c.about(Error, value, fmt.Sprintf("the default is %s, and the type is %q", value.kind, want), "write a value of the type, or remove it")
		} else if value.end-value.start > maxDefault {
			c.about(Error, value, fmt.Sprintf("the default has %d bytes and may have %d", value.end-value.start, maxDefault), "shorten it")
		}
	})
}

// maxDefault bounds a default value, in bytes of the file.
const maxDefault = 16 << 10

// toolCall checks an example against the tools: its name and argument names.
func (c *checker) toolCall(n *node) {
	name, rest, ok := strings.Cut(strings.TrimSpace(n.text), "(")
	if !ok || !strings.HasSuffix(rest, ")") {
		c.about(Warning, n, "this is no call that the model could make", `write it like lintFile(file="src/index.js")`)
		return
	}
	var known []string
	name = strings.TrimSpace(name)
	for _, t := range items(c.root.get("tools")) {
		if str(t.get("name")) == name {
			c.callArgs(n, t, argNames(strings.TrimSuffix(rest, ")")))
			return
		}
		known = append(known, str(t.get("name")))
	}
	fix := "name one of the tools"
	if near, ok := words.Closest(name, known, words.Third(name)); ok {
		fix = fmt.Sprintf("did you mean %q?", near)
	}
	c.about(Warning, n, fmt.Sprintf("the extension has no tool %q", name), fix)
}

// callArgs checks the argument names in an example's call of a tool.
func (c *checker) callArgs(n, tool *node, given []string) {
	var known, needed []string
	for _, a := range items(tool.get("args")) {
		known = append(known, str(a.get("name")))
		if required := a.get("required"); a.get("default") == nil && (required == nil || truth(required)) {
			needed = append(needed, str(a.get("name")))
		}
	}
	for _, name := range given {
		if !slices.Contains(known, name) {
			fix := "remove it"
			if near, ok := words.Closest(name, known, words.Third(name)); ok {
				fix = fmt.Sprintf("did you mean %q?", near)
			}
			c.about(Warning, n, fmt.Sprintf("the tool %q has no argument %q", str(tool.get("name")), name), fix)
		}
	}
	for _, name := range needed {
		if !slices.Contains(given, name) {
			c.about(Warning, n, fmt.Sprintf("the call lacks the argument %q of %q", name, str(tool.get("name"))), fmt.Sprintf("add %s=…", name))
		}
	}
}

// argNames returns the names before "=" in the arguments of a call, in order. An argument without "=" is returned
// whole.
func argNames(text string) []string {
	var names []string
	depth, start, quote := 0, 0, rune(0)
	take := func(piece string) {
		if name, _, _ := strings.Cut(piece, "="); strings.TrimSpace(piece) != "" {
			names = append(names, strings.TrimSpace(name))
		}
	}
	escaped := false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case quote != 0 && r == '\\':
			escaped = true
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '[' || r == '{':
			depth++
		case r == ']' || r == '}':
			depth--
		case r == ',' && depth == 0:
			take(text[start:i])
			start = i + 1
		}
	}
	take(text[start:])
	return names
}

// described checks a text by which a model decides.
func (c *checker) described(n *node) {
	if strings.TrimSpace(n.text) == "" {
		c.about(Warning, n, c.what()+" is empty, and the model decides by it", "say in a sentence what it is for")
	}
}

// maxScript bounds how much of a script is checked, in bytes.
const maxScript = 64 << 10

// tool checks a tool's program together with its runtime.
func (c *checker) tool(n *node) {
	program := n.get("executable")
	if c.folder == nil || str(n.get("runtime")) != "shell" || CheckPath(str(program)) != nil {
		return
	}
	real, err := c.folder.file(program.text)
	if err != nil {
		return // already reported
	}
	f, err := c.folder.open(real)
	if err != nil {
		return
	}
	defer f.Close()
	if data, err := io.ReadAll(io.LimitReader(f, maxScript)); err == nil && bytes.Contains(data, []byte("\r\n")) {
		c.inField("executable", func() {
			c.about(Warning, program, fmt.Sprintf("lines of %q end as on Windows (CR LF), and sh takes the CR for part of each command", program.text), "save it with LF alone")
		})
	}
}

func (c *checker) trust(n *node) {
	if n.text == "true" {
		c.about(Warning, n, "an extension cannot make its server trusted; Gemini CLI ignores this", "remove it")
	}
}

func (c *checker) server(n *node) {
	name := strings.TrimPrefix(c.path[len(c.path)-1], ".")
	if Passes(name) && !c.own {
		c.about(Error, n, passing("server", name), "choose another name")
	}
	if strings.Contains(name, "_") {
		c.about(Warning, n, fmt.Sprintf("the server's name %q has an underscore, at which Gemini CLI's policies cut it", name), "use dashes")
	}
	c.serverPaths(n)
	for _, f := range []string{"command", "url", "httpUrl", "tcp"} {
		if n.get(f) != nil {
			return
		}
	}
	c.about(Error, n, fmt.Sprintf("the server %q can be neither started nor reached", name), `add "command", or "httpUrl"`)
}

// serverPaths checks the extension's files that a server's command line names with ${extensionPath}. They run with
// all of the user's rights.
func (c *checker) serverPaths(n *node) {
	words := []*node{n.get("command"), n.get("cwd")}
	if args := n.get("args"); args != nil {
		words = append(words, args.items...)
	}
	for _, w := range words {
		rest, ours := strings.CutPrefix(str(w), "${extensionPath}")
		rest = strings.TrimPrefix(strings.ReplaceAll(strings.ReplaceAll(rest, "${/}", "/"), "${pathSeparator}", "/"), "/")
		if !ours || rest == "" || strings.Contains(rest, "$") {
			continue
		}
		err := CheckPath(rest)
		if err == nil && c.folder != nil {
			_, _, err = c.folder.resolve(rest)
		}
		switch {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist):
			c.about(Warning, w, fmt.Sprintf("there is no %q in the extension", rest), "build or add it, or correct the path")
		default:
			c.about(Error, w, fmt.Sprintf("%q cannot be used: %v", rest, err), "name a file inside the extension")
		}
	}
}

// variable warns of settings that would change how programs start.
func (c *checker) variable(n *node) {
	name := strings.ToUpper(n.text)
	switch {
	case slices.Contains([]string{"PATH", "HOME", "SHELL", "IFS", "ENV", "BASH_ENV", "NODE_OPTIONS", "PERL5OPT", "RUBYOPT"}, name),
		strings.HasPrefix(name, "LD_"), strings.HasPrefix(name, "DYLD_"), strings.HasPrefix(name, "PYTHON"), strings.HasPrefix(name, "GIT_"):
		c.about(Error, n, fmt.Sprintf("%s decides how other programs start; a setting may not", n.text), "choose a variable of the extension's own")
	case strings.HasPrefix(name, "GEMINI_CLI_"):
		c.about(Warning, n, fmt.Sprintf("%s belongs to Gemini CLI", n.text), "choose a variable of the extension's own")
	}
}

// ErrName marks a name that an extension cannot have.
var ErrName = errors.New("not a name for an extension")

// CheckName says what is wrong with an extension's name, or returns nil. Gemini CLI accepts the same letters; pollux
// also refuses reserved names and a leading dash.
func CheckName(name string) error {
	var why string
	switch {
	case !nameForm().MatchString(name):
		why = "it may have only " + nameHint
	case len(name) > maxName:
		why = fmt.Sprintf("it may have at most %d characters", maxName)
	case reserved(name):
		why = "Windows reserves it"
	case Passes(name):
		why = "it is reserved for pollux itself"
	case name[0] == '-':
		why = "commands would take it for an option"
	default:
		return nil
	}
	return fmt.Errorf("%q is %w: %s", name, ErrName, why)
}
