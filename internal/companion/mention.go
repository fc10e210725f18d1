package companion

import (
	"context"
	"fmt"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/mention"
)

// mention puts a mention into the prompt of a session.
func (c *Companion) mention(ctx context.Context, m control.Mention) (control.Mentioned, error) {
	if keeper, session, err := c.keptFor(m); err != nil {
		return control.Mentioned{}, err
	} else if keeper != nil {
		m.Session = session
		return keeper.Mention(ctx, m)
	}
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

// keptFor returns the keeper whose session a mention is for, and the number that the session has there; nil when the mention is for one of
// this companion's. Without a number a kept session is meant when there is no other.
func (c *Companion) keptFor(m control.Mention) (*control.Client, int, error) {
	if m.Session != 0 || m.Terminal > 0 || len(c.everybody()) > 0 {
		keeper, session := c.keeperOf(m.Session)
		return keeper, session, nil
	}
	var labels []string
	var only control.Session
	for _, s := range c.keptSessions() {
		if m.Agent == "" || s.Agent == m.Agent {
			labels, only = append(labels, s.Label), s
		}
	}
	if len(labels) > 1 {
		return nil, 0, fmt.Errorf("%d sessions are connected; say which one: %s", len(labels), strings.Join(labels, ", "))
	}
	keeper, session := c.keeperOf(only.ID)
	return keeper, session, nil
}
