package companion

import (
	"context"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/mention"
)

// mention puts a mention into the prompt of a session.
func (c *Companion) mention(ctx context.Context, m control.Mention) (control.Mentioned, error) {
	sessions := c.everySession // who asks by pollux mcp is meant only by its number, or when there is nobody else
	if m.Session < 0 || len(sessions()) == 0 {
		sessions = c.everybody
	}
	to := mention.Mentioner{Sessions: sessions, Tell: c.agents.Mention, Lines: agent.LinesOf, May: c.work.MayMention, Denied: c.work.WhyDenied}
	if c.o.Editor != nil {
		to.Type = c.o.Editor.Type
	}
	return to.Mention(ctx, m)
}

func (b backend) Mention(ctx context.Context, m control.Mention) (control.Mentioned, error) {
	return b.c.mention(ctx, m)
}
