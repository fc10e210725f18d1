package host

import (
	"encoding/json"
	"slices"

	"github.com/pollux-companion/pollux/internal/extension/capability"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
)

// maxWanted bounds how many described names are kept.
const maxWanted = 64

// gateway says whether some tools are not declared.
func (h *host) gateway(set *capability.Set) bool { return h.o.Gateway != nil && h.o.Gateway(set) }

// declared returns the tools that the client gets one by one. The caller holds mu.
func (h *host) declared(set *capability.Set) []capability.Tool {
	if !h.gateway(set) {
		return set.Tools()
	}
	var pinned, lately []string
	if h.o.Pinned != nil {
		pinned = h.o.Pinned()
	}
	if h.o.Lately != nil {
		lately = h.o.Lately()
	}
	return prompt.Declared(set, pinned, slices.Concat(h.wanted, lately))
}

// want makes what the model has described a function at the next sync, the newest first.
func (h *host) want(args json.RawMessage) {
	var a struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(args, &a) != nil || a.Name == "" {
		return
	}
	set := h.o.Dispatcher.Set()
	name := ""
	if t, err := set.Tool(a.Name); err == nil {
		name = t.Qualified()
	} else if x, err := set.Extension(a.Name); err == nil {
		name = x.Name
	}
	if name == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wanted = slices.Insert(slices.DeleteFunc(h.wanted, func(n string) bool { return n == name }), 0, name)
	h.wanted = h.wanted[:min(len(h.wanted), maxWanted)]
}

// A Cost is what a server's functions cost each request of Gemini CLI.
type Cost struct {
	// Gateway says that some tools are not declared.
	Gateway bool `json:"gateway"`
	// Declared is how many of Tools are functions at the start of a session.
	Declared int `json:"declared"`
	Tools    int `json:"tools"`
	// Tokens estimates the cost of all functions, including pollux's own.
	Tokens int `json:"tokens"`
}

// CostOf returns what a server with these options would declare of a set at the start of a session.
func CostOf(o Options, set *capability.Set) Cost {
	h := &host{o: o}
	declared := h.declared(set)
	c := Cost{Gateway: h.gateway(set), Declared: len(declared), Tools: len(set.Tools())}
	all := append(h.ownTools(set), readTool())
	for _, t := range declared {
		all = append(all, declaration(t))
	}
	for _, t := range all {
		c.Tokens += prompt.DeclarationTokens(t.Name, t.Description, t.InputSchema)
	}
	return c
}
