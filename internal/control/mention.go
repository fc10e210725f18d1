package control

import "context"

// A Mention is a place that the user points an agent at.
type Mention struct {
	// Session is the number of the session, 0 for the only one.
	Session int `json:"session,omitempty"`
	// Agent limits the choice to the sessions of one agent, by its name; "" for all.
	Agent string `json:"agent,omitempty"`
	// Path is a file or folder, absolute.
	Path string `json:"path"`
	// First and Last are lines, 1-based; 0 for the whole file.
	First int `json:"first,omitempty"`
	Last  int `json:"last,omitempty"`
	// Terminal is the first process of a terminal of the companion's editor that is meant; 0 for none.
	Terminal int `json:"-"`
	// Words follow the mention in the prompt, one line; "" for none.
	Words string `json:"words,omitempty"`
}

// A Mentioned says what became of a Mention.
type Mentioned struct {
	// Session is the label of the session that got it.
	Session string `json:"session"`
	// By says how: "protocol", "editor", or the program that typed it.
	By string `json:"by"`
	// Text is the typed text; "" when the protocol carried the mention.
	Text string `json:"text,omitempty"`
}

type mentionParams struct {
	Mention

	InAgent bool `json:"inAgent,omitempty"`
}

// Mention puts a mention into the prompt of one of the companion's sessions. A model's shell gets ErrFromAgent.
func (c *Client) Mention(ctx context.Context, m Mention) (v Mentioned, err error) {
	return v, c.call(ctx, methodMention, mentionParams{m, inAgent()}, &v)
}

// mention writes into a person's prompt, so it refuses a model's shell.
func (p *peer) mention(ctx context.Context, in mentionParams) (Mentioned, error) {
	if err := p.trusted(ctx, in.InAgent); err != nil {
		return Mentioned{}, err
	}
	return p.b.Mention(ctx, in.Mention)
}
