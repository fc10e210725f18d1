package dispatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/capability"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
	"github.com/pollux-companion/pollux/internal/permission"
)

// describeArgs are the arguments of capability.Describe.
type describeArgs struct {
	Name   string `json:"name"`
	Script bool   `json:"script"`
}

func (d *Dispatcher) describeCall(args json.RawMessage) Reply {
	var a describeArgs
	if err := strictly(args, &a); err != nil {
		return failed(capability.Describe, fmt.Errorf("%s takes name, the name of an extension, tool or document, and perhaps script, true or false; without a name it lists everything", capability.Describe))
	}
	return d.describe(a.Name, a.Script)
}

// describe describes a tool, a document or an extension; with a tool's script, when that is wanted. Without a name it lists
// everything that is offered.
func (d *Dispatcher) describe(name string, script bool) Reply {
	set, err := d.Refresh()
	if err != nil {
		return failed(capability.Describe, err)
	}
	if name == "" {
		text := listing(set)
		if d.o.Ends && len(text) > pageBytes { // there is no second page
			text = nameList(set)
		}
		return Reply{Name: capability.Describe, Text: d.firstPage(text)}
	}
	if tool, err := set.Tool(name); err == nil {
		text := describeTool(tool) + "\n" + describeRights(tool.Extension)
		if script {
			content, refused, err := d.content(tool.Extension, tool.Executable)
			if err != nil {
				return Reply{Name: name, Text: prompt.Data(err.Error()), Failed: true, Refused: refused}
			}
			text += "\nits script:\n" + prompt.Data(content)
		}
		return Reply{Name: name, Text: d.firstPage(text)}
	} else if many := new(capability.AmbiguousError); errors.As(err, &many) {
		return failed(name, err)
	}
	if x, err := set.Extension(name); err == nil {
		return Reply{Name: name, Text: d.firstPage(describeExtension(set, x))}
	}
	if doc, err := set.Doc(name); err == nil {
		return Reply{Name: name, Text: d.firstPage(describeDoc(doc) + describeRights(doc.Extension))}
	}
	_, err = set.Tool(name)
	return failed(name, err)
}

// listing returns everything that is offered, one line each.
func listing(set *capability.Set) string {
	if len(set.Extensions()) == 0 {
		text := "No extension is offered here."
		if n := len(set.Waiting()); n > 0 {
			text += fmt.Sprintf(" %d installed wait for the user's consent; %s() asks them", n, capability.AskUser)
		}
		return text
	}
	var b strings.Builder
	for _, x := range set.Extensions() {
		fmt.Fprintf(&b, "%s %s: %s\n", x.Name, prompt.Line(x.Version, 40), prompt.Line(x.Description, 300))
		for _, t := range set.ToolsOf(x) {
			fmt.Fprintf(&b, "  tool %s: %s\n", called(t), prompt.Line(t.Description, 200))
		}
		for _, doc := range set.DocsOf(x) {
			fmt.Fprintf(&b, "  doc %s: %s\n", doc.Readable, prompt.Line(doc.Description, 200))
		}
	}
	if n := len(set.Waiting()); n > 0 {
		fmt.Fprintf(&b, "%d more wait for the user's consent; %s() asks them\n", n, capability.AskUser)
	}
	return b.String()
}

// nameList is listing without descriptions and arguments.
func nameList(set *capability.Set) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The names alone, because there is much; %s(name=\"…\") tells the rest of each.\n", capability.Describe)
	for _, x := range set.Extensions() {
		b.WriteString(x.Name)
		for _, t := range set.ToolsOf(x) {
			b.WriteString("; tool " + t.Callable)
		}
		for _, doc := range set.DocsOf(x) {
			b.WriteString("; doc " + doc.Readable)
		}
		b.WriteByte('\n')
	}
	if n := len(set.Waiting()); n > 0 {
		fmt.Fprintf(&b, "%d more wait for the user's consent; %s() asks them\n", n, capability.AskUser)
	}
	return b.String()
}

// called is a tool's signature under its callable name.
func called(t capability.Tool) string {
	named := t.Tool
	named.Name = t.Callable
	return prompt.Line(named.Signature(), 0)
}

// describeTool describes one tool.
func describeTool(t capability.Tool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "tool %s\n", called(t))
	fmt.Fprintf(&b, "of the extension %s %s: %s\n", t.Extension.Name, prompt.Line(t.Extension.Version, 40), prompt.Line(t.Extension.Description, 0))
	fmt.Fprintf(&b, "what it does: %s\n", prompt.Line(t.Description, 0))
	if len(t.Args) == 0 {
		b.WriteString("arguments: none\n")
	} else {
		b.WriteString("arguments:\n")
	}
	for _, a := range t.Args {
		need := "required"
		switch {
		case a.Default != "":
			need = a.Default + " when left out"
		case a.Optional:
			need = "may be left out"
		}
		fmt.Fprintf(&b, "  %s (%s, %s): %s\n", prompt.Line(a.Name, 0), prompt.Line(a.Type, 0), prompt.Line(need, 400), prompt.Line(a.Description, 0))
	}
	answer := "text"
	if t.Output == "json" {
		answer = "JSON"
	}
	fmt.Fprintf(&b, "answers: %s\nscript: %s, run by %s\n", answer, prompt.Line(t.Executable, 0), prompt.Line(t.Runtime, 0))
	for _, e := range t.Extension.Examples {
		if e.Calls(t.Name) {
			fmt.Fprintf(&b, "example: %s: %s\n", prompt.Line(e.Prompt, 300), prompt.Line(e.ToolCall, 300))
		}
	}
	return b.String()
}

func describeDoc(doc capability.Doc) string {
	return fmt.Sprintf("document %s (%s)\nwhat it is about: %s\n", doc.Readable, doc.URI(), prompt.Line(doc.Description, 0))
}

// describeRights describes what the sandbox lets the extension's tools do.
func describeRights(x *capability.Extension) string {
	return "permissions:\n  " + strings.Join(rights(x.Permissions), "\n  ") + "\n"
}

func rights(p permission.Permissions) []string {
	var out []string
	for _, s := range p.Sentences() {
		out = append(out, prompt.Line(s, 0))
	}
	return out
}

// describeExtension is everything about one extension.
func describeExtension(set *capability.Set, x *capability.Extension) string {
	var b strings.Builder
	fmt.Fprintf(&b, "extension %s %s: %s\n", x.Name, prompt.Line(x.Version, 40), prompt.Line(x.Description, 0))
	b.WriteString(describeRights(x))
	for _, t := range set.ToolsOf(x) {
		b.WriteString("\n" + describeTool(t))
	}
	for _, doc := range set.DocsOf(x) {
		b.WriteString("\n" + describeDoc(doc))
	}
	return b.String()
}
