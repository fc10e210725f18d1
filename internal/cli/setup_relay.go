package cli

import (
	"context"
	"errors"
)

// setupRelay writes or removes the file by which an agent starts pollux relay, when it is asked for.
func (a *app) setupRelay(ctx context.Context, agent setupAgent, f setupFlags) (setupReport, error) {
	switch {
	case f.relay && f.noRelay:
		return setupReport{}, usageError{errors.New("--relay and --no-relay are opposites; use one of them")}
	case f.noRelay:
		return a.undoRelay(ctx, agent, f)
	case !f.relay && f.only != "relay":
		return setupReport{}, errNothingSetUp
	}
	program, err := a.lasting(f.dryRun)
	if err != nil {
		return setupReport{}, err
	}
	in, err := agent.install(program, f.dryRun)
	if err != nil {
		return setupReport{}, err
	}
	r := setupReport{Action: "changed", Path: in.Path, Text: "A " + agent.label + " that finds no editor of its own starts pollux relay: " + in.Path}
	if !in.Changed {
		r.Action = "kept"
	}
	return r, nil
}

// undoRelay removes it.
func (a *app) undoRelay(_ context.Context, agent setupAgent, f setupFlags) (setupReport, error) {
	in, err := agent.remove(f.dryRun)
	if err != nil {
		return setupReport{}, err
	}
	r := setupReport{Action: "removed", Path: in.Path, Text: "No " + agent.label + " starts pollux relay by itself any more: " + in.Path + " is gone."}
	if !in.Changed {
		if f.undo {
			return setupReport{}, errNothingSetUp
		}
		r.Action, r.Text = "kept", "No "+agent.label+" starts pollux relay by itself: there is no "+in.Path
	}
	return r, nil
}
