package web

import (
	"context"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/rpc"
)

type mentioned struct {
	Session string `json:"session"`
}

// agentMention points an agent at what the user looks at, who is told why where that fails.
func agentMention(ctx context.Context, p *page, m control.Mention) (any, error) {
	if p.s.o.Mention == nil {
		return nil, rpc.Errorf(rpc.CodeNoMethod, "this companion mentions nothing")
	}
	done, err := p.s.o.Mention(ctx, m)
	if err != nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "%s", err)
	}
	return mentioned{done.Session}, nil
}

type pausing struct {
	Paused bool `json:"paused"`
}

// contextPause stops or resumes telling agents what the user looks at.
func contextPause(_ context.Context, p *page, in pausing) (any, error) {
	p.s.o.Store.Pause(in.Paused)
	return empty{}, nil
}
