package companion

import (
	"context"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/editor/lsp"
	"github.com/pollux-companion/pollux/internal/mention"
)

// mention puts a mention into the prompt of a session.
func (c *Companion) mention(ctx context.Context, m control.Mention) (control.Mentioned, error) {
	to := mention.Mentioner{Sessions: c.everySession, Tell: c.agents.Mention, Lines: agent.LinesOf, May: c.work.MayMention, Denied: c.work.WhyDenied}
	if c.o.Editor != nil {
		to.Type = c.o.Editor.Type
	}
	return to.Mention(ctx, m)
}

func (b backend) Mention(ctx context.Context, m control.Mention) (control.Mentioned, error) {
	return b.c.mention(ctx, m)
}

func (c *Companion) mentionFromEditor(ctx context.Context, m lsp.Mention) (session, by string, err error) {
	done, err := c.mention(ctx, control.Mention{Session: m.Session, Path: m.Path, First: m.First, Last: m.Last, Words: m.Words, Terminal: m.Terminal})
	return done.Session, done.By, err
}

func (c *Companion) mentionFromPage(ctx context.Context, m control.Mention) (session string, err error) {
	done, err := c.mention(ctx, m)
	return done.Session, err
}
