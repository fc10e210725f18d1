package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pollux-companion/pollux/internal/extension/consent"
)

// sessionKey is the context key of the session that makes a call.
type sessionKey struct{}

func withSession(ctx context.Context, s *mcp.ServerSession) context.Context {
	return context.WithValue(ctx, sessionKey{}, s)
}

// An Elicitor asks the person at the client that made the call, through MCP elicitation. Its zero value is ready.
type Elicitor struct{}

// Ask implements [consent.Asker]. It returns ErrNobody if the client cannot ask.
func (Elicitor) Ask(ctx context.Context, q consent.Question) (consent.Answer, error) {
	session, _ := ctx.Value(sessionKey{}).(*mcp.ServerSession)
	if session == nil {
		return "", consent.ErrNobody
	}
	if init := session.InitializeParams(); init == nil || init.Capabilities == nil || init.Capabilities.Elicitation == nil {
		return "", fmt.Errorf("%w: this client cannot ask its user", consent.ErrNobody)
	}
	var labels []any
	for _, c := range q.Choices() {
		labels = append(labels, c.Label)
	}
	r, err := session.Elicit(ctx, &mcp.ElicitParams{
		Message: q.Title() + "\n" + strings.Join(q.Lines(), "\n"),
		RequestedSchema: map[string]any{
			"type":       "object",
			"properties": map[string]any{"answer": map[string]any{"type": "string", "title": "Answer", "enum": labels}},
			"required":   []string{"answer"},
		},
	})
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fmt.Errorf("%w: %w", consent.ErrNobody, err)
	case r.Action != "accept":
		return "", nil
	}
	label, _ := r.Content["answer"].(string)
	return q.AnswerOf(label), nil
}
