package extensions

import (
	"errors"

	"github.com/pollux-companion/pollux/internal/extension/prompt"
)

// A Kind says what a block asks for.
type Kind string

// The kinds of blocks.
const (
	ToolCode Kind = "tool_code" // <tool_code>name(argument="value")</tool_code>
	ReadDoc  Kind = "read_doc"  // <read_doc>name</read_doc>
)

// A Block is one <tool_code> or <read_doc> in a model's text.
type Block struct {
	Kind Kind
	// Start and End are the bytes of the whole text that the block covers, tags included.
	Start, End int
	// Call is the call of a ToolCode block, Doc the name in a ReadDoc block.
	Call *Call
	Doc  string
	// Err says why the block cannot be understood; Call and Doc are then empty.
	Err *SyntaxError
	// Inert says why the block must not be run, such as "in a code fence"; "" when it may. Start and End are then its opening tag.
	Inert string
}

// A Call is one call of a tool.
type Call struct {
	// Name is the tool's, with the extension and a dot in front where the model wrote them.
	Name string
	// Args are in the order of the text. No name stands twice.
	Args []Arg
}

// An Arg is one named argument. Value is a string, json.Number, bool, nil, []any or map[string]any of such values.
type Arg struct {
	Name  string
	Value any
}

// Map returns the arguments by name.
func (c *Call) Map() map[string]any {
	m := make(map[string]any, len(c.Args))
	for _, a := range c.Args {
		m[a.Name] = a.Value
	}
	return m
}

// A SyntaxError says where a text stops being a call, and what should stand there.
type SyntaxError struct {
	// Offset is in bytes from the beginning of the whole text. Line and Column are 1-based; Column counts characters.
	Offset, Line, Column int
	// Expected is what should stand there, Found what stands there; both are for people.
	Expected, Found string
}

// Error names the place, what was expected and what was found.
func (e *SyntaxError) Error() string { return (*prompt.SyntaxError)(e).Error() }

// Parse finds the blocks of a whole text. The grammar is in docs/extensions-calls.md.
func Parse(text string) []Block { return blocksOf(prompt.Parse(text)) }

// ParseCall reads a text that is exactly one call. The error is a *SyntaxError.
func ParseCall(text string) (*Call, error) {
	c, err := prompt.ParseCall(text)
	var syntax *prompt.SyntaxError
	if errors.As(err, &syntax) {
		return nil, (*SyntaxError)(syntax)
	}
	return callOf(c), err
}

// A Scanner finds blocks in a text that arrives in pieces. It finds the same blocks
// however the text is cut, and returns each as soon as it is complete. It is for one
// goroutine.
type Scanner struct{ inner *prompt.Scanner }

// NewScanner begins a text.
func NewScanner() *Scanner { return &Scanner{prompt.NewScanner()} }

// Feed takes the next piece and returns the blocks that it completes.
func (s *Scanner) Feed(piece string) []Block { return blocksOf(s.inner.Feed(piece)) }

// Close ends the text and returns the blocks that were still open. The scanner must not be used afterwards.
func (s *Scanner) Close() []Block { return blocksOf(s.inner.Close()) }

// Result delimits a tool's output for a model. Nothing in text can end the delimited part or begin a
// block: the < of tags that mean something in prompts becomes &lt;, and invisible characters are left out.
func Result(tool, status, text string) string { return prompt.Result(tool, status, text) }

// Document delimits the text of a document, as Result does.
func Document(name, text string) string { return prompt.Document(name, text) }

func blocksOf(all []prompt.Block) []Block {
	var out []Block
	for _, b := range all {
		out = append(out, blockOf(b))
	}
	return out
}

func blockOf(b prompt.Block) Block {
	return Block{Kind: Kind(b.Kind), Start: b.Start, End: b.End, Call: callOf(b.Call), Doc: b.Doc, Err: (*SyntaxError)(b.Err), Inert: b.Inert}
}

func callOf(c *prompt.Call) *Call {
	if c == nil {
		return nil
	}
	out := &Call{Name: c.Name}
	for _, a := range c.Args {
		out.Args = append(out.Args, Arg(a))
	}
	return out
}
