package cli

import (
	"context"
	"errors"

	"github.com/pollux-companion/pollux/internal/relay"
)

// setupRelay writes or removes the relay's discovery file, when it is asked for.
func (a *app) setupRelay(ctx context.Context, f setupFlags) (setupReport, error) {
	switch {
	case f.relay && f.noRelay:
		return setupReport{}, usageError{errors.New("--relay and --no-relay are opposites; use one of them")}
	case f.noRelay:
		return a.undoRelay(ctx, f)
	case !f.relay && f.only != "relay":
		return setupReport{}, errNothingSetUp
	}
	program, err := a.lasting(f.dryRun)
	if err != nil {
		return setupReport{}, err
	}
	in, err := relay.Install(program, f.dryRun)
	if err != nil {
		return setupReport{}, err
	}
	r := setupReport{Action: "changed", Path: in.Path, Text: "A Gemini CLI that finds no editor of its own starts pollux relay: " + in.Path}
	if !in.Changed {
		r.Action = "kept"
	}
	return r, nil
}

// undoRelay removes it.
func (a *app) undoRelay(_ context.Context, f setupFlags) (setupReport, error) {
	in, err := relay.Remove(f.dryRun)
	if err != nil {
		return setupReport{}, err
	}
	r := setupReport{Action: "removed", Path: in.Path, Text: "No Gemini CLI starts pollux relay by itself any more: " + in.Path + " is gone."}
	if !in.Changed {
		if f.undo {
			return setupReport{}, errNothingSetUp
		}
		r.Action, r.Text = "kept", "No Gemini CLI starts pollux relay by itself: there is no "+in.Path
	}
	return r, nil
}
