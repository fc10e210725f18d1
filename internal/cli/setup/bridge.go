package setup

import (
	"context"

	"github.com/pollux-companion/pollux/internal/agent"
)

// A Bridge is the extension through which an agent uses what other extensions offer.
type Bridge interface {
	// SetUp writes it to path, and describes that in text; changed is false if it was already there. With dryRun it
	// only says what it would do.
	SetUp(ctx context.Context, dryRun bool) (path, text string, changed bool, err error)
	// TakeAway removes it from path; removed is false if there was none.
	TakeAway(ctx context.Context, dryRun bool) (path string, removed bool, err error)
}

// bridgePart returns the bridge as a part of setup.
func bridgePart(one agent.Agent, b Bridge) setupPart {
	do := func(ctx context.Context, _ agent.Agent, f setupFlags) (setupReport, error) {
		path, text, changed, err := b.SetUp(ctx, f.dryRun)
		r := setupReport{Action: "kept", Path: path, Text: text}
		if changed {
			r.Action = "changed"
		}
		return r, err
	}
	undo := func(ctx context.Context, _ agent.Agent, f setupFlags) (setupReport, error) {
		path, removed, err := b.TakeAway(ctx, f.dryRun)
		if err == nil && !removed {
			err = errNothingSetUp
		}
		return setupReport{Action: "removed", Path: path, Text: "the bridge to Gemini CLI is taken away"}, err
	}
	return setupPart{"bridge", one, do, undo}
}
