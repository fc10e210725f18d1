package prompt

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/capability"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/permission"
)

// The budget of everything about extensions in each request, as Tokens counts it: the summary, which stays in the
// conversation, and the declared functions, which every request repeats. Above EverythingBudget pollux declares a
// gateway instead of every tool, and other tools when the model asks.
const (
	EverythingBudget = 2400
	// With a gateway: gatewaySummary is the summary's part, gatewayFunctions that of tools declared beside the
	// gateway.
	gatewaySummary   = 700
	gatewayFunctions = 650
	// ownFunctions is the cost of pollux's own functions.
	ownFunctions = 500
)

// Schema is the part of JSON Schema that describes arguments.
type Schema struct {
	Type        string             `json:"type,omitempty"`
	Description string             `json:"description,omitempty"`
	Properties  map[string]*Schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Additional  *bool              `json:"additionalProperties,omitempty"`
	Items       *Schema            `json:"items,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
	Default     json.RawMessage    `json:"default,omitempty"`
}

// Strict returns an object schema with these properties and no others.
func Strict(properties map[string]*Schema, required ...string) *Schema {
	no := false
	return &Schema{Type: "object", Properties: properties, Required: required, Additional: &no}
}

// Arguments returns the schema of a tool's arguments. It allows no others.
func Arguments(t manifest.Tool) *Schema {
	properties := map[string]*Schema{}
	var required []string
	for _, a := range t.Args {
		s := &Schema{Type: a.Type, Description: Line(a.Description, 400)}
		if a.Type == "array" {
			s.Items = &Schema{}
		}
		if a.Default != "" {
			s.Default = json.RawMessage(DataJSON(a.Default))
		}
		properties[a.Name] = s
		if !a.Optional {
			required = append(required, a.Name)
		}
	}
	return Strict(properties, required...)
}

// Description says in one line what a tool does and may do.
func Description(t capability.Tool) string {
	text := Line(t.Description, 300)
	if text == "" {
		text = t.Name
	}
	return fmt.Sprintf("%s [extension %s; %s]", text, t.Extension.Name, mayWords(t.Extension.Permissions))
}

// mayWords describes permissions in a few words.
func mayWords(p permission.Permissions) string {
	where := [...]string{permission.None: "no files", permission.Workspace: "the workspace", permission.Home: "the home folder", permission.Full: "all files"}
	words := []string{"reads " + where[p.EffectiveRead()]}
	if p.Write != permission.None {
		words = append(words, "changes "+where[p.Write])
	}
	if len(p.Hosts) == 0 {
		return strings.Join(append(words, "no network"), ", ")
	}
	var hosts []string
	for i, h := range p.Hosts {
		if i == 3 {
			hosts = append(hosts, fmt.Sprintf("%d more hosts", len(p.Hosts)-i))
			break
		}
		hosts = append(hosts, Line(h.String(), 80))
	}
	return strings.Join(append(words, "contacts "+strings.Join(hosts, ", ")), ", ")
}

// functionTokens returns what a tool's declaration costs in each request.
func functionTokens(t capability.Tool) int {
	return DeclarationTokens(t.Callable, Description(t), Arguments(t.Tool))
}

// DeclarationTokens returns what a function costs in each request of Gemini CLI, including the argument that the CLI
// adds. Other agents send less.
func DeclarationTokens(name, description string, schema any) int {
	const added = `"wait_for_previous":{"type":"boolean","description":"Set to true to wait for all previously requested tools in this turn to complete before starting. Set to false (or omit) to run in parallel. Use true when this tool depends on the output of previous tools."}`
	data, err := json.Marshal(map[string]any{"name": "mcp_" + capability.Bridge + "-abcdef_" + name, "description": description, "parametersJsonSchema": schema})
	if err != nil {
		return 0 // cannot fail for these types
	}
	return Tokens(string(data) + added)
}

// Fit returns a style and a summary's budget so that everything about a set fits EverythingBudget, or the budget
// itself if that is wider. Every tool is a function if that fits; otherwise the gateway is used. A budget of 0 is no
// bound.
func (s Style) Fit(set *capability.Set, budget int) (Style, int) {
	if budget <= 0 || everything(set, s, budget) <= max(budget, EverythingBudget) {
		return s, budget
	}
	s.gateway = true
	return s, min(budget, gatewaySummary)
}

// everything returns what a set costs in each request if every tool is a function, in tokens.
func everything(set *capability.Set, style Style, budget int) int {
	sum := Summarize(set, &SummaryOptions{Style: style, Budget: budget}).Tokens + ownFunctions
	for _, t := range set.Tools() {
		sum += functionTokens(t)
	}
	return sum
}

// IsGateway says whether a summary was written for the gateway. No author's words stand at the beginning of a line.
func IsGateway(text string) bool { return strings.Contains(text, gatewayFoot) }

// IsGateway says whether the style is for the gateway.
func (s Style) IsGateway() bool { return s.gateway }

// Gateway returns the style for the gateway.
func (s Style) Gateway() Style {
	s.gateway = true
	return s
}

// Declared returns the tools that are functions beside the gateway: all that the user pinned, whatever they cost,
// then as many wanted ones as fit, in order. Both lists name a tool by extension.tool, or all tools of an extension.
func Declared(set *capability.Set, pinned, wanted []string) []capability.Tool {
	var out []capability.Tool
	seen := map[string]bool{}
	left := gatewayFunctions
	add := func(name string, always bool) {
		for _, t := range set.Tools() {
			if seen[t.Qualified()] || name != t.Qualified() && name != t.Extension.Name {
				continue
			}
			cost := functionTokens(t)
			if cost > left && !always {
				continue
			}
			seen[t.Qualified()] = true
			out = append(out, t)
			left -= cost
		}
	}
	for _, name := range pinned {
		add(name, true)
	}
	for _, name := range wanted {
		add(name, false)
	}
	return out
}
