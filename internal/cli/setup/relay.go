package setup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/cli/console"
)

// setupRelay writes or removes the file by which an agent starts pollux relay, if asked to.
func setupRelay(ctx context.Context, con *console.Console, one agent.Agent, f setupFlags) (setupReport, error) {
	switch {
	case f.relay && f.noRelay:
		return setupReport{}, console.Usage(errors.New("--relay and --no-relay are opposites; use one of them"))
	case f.noRelay:
		return undoRelay(ctx, con, one, f)
	case !f.relay && f.only != "relay":
		if yes, err := wantsRelay(con, one, f); err != nil {
			return setupReport{}, err
		} else if !yes {
			return setupReport{}, errNothingSetUp
		}
	}
	program, err := con.Lasting(f.dryRun)
	if err != nil {
		return setupReport{}, err
	}
	changed, path, err := one.Relay.Put(program, f.dryRun)
	if err != nil {
		return setupReport{}, err
	}
	r := setupReport{Action: "changed", Path: path, Text: "A " + one.Label + " that finds no editor of its own starts pollux relay: " + path}
	if !changed {
		r.Action = "kept"
	}
	return r, nil
}

// wantsRelay asks whether an agent shall start the relay, where it does not and a person can be asked. Anything but yes means no.
func wantsRelay(con *console.Console, one agent.Agent, f setupFlags) (bool, error) {
	in := console.Terminal(con.In)
	if in == nil || console.Terminal(con.Err) == nil || f.dryRun || f.jsonOut || f.only != "" {
		return false, nil
	}
	if there, _, err := one.Relay.Remove(true); err != nil || there {
		return false, err
	}
	fmt.Fprintf(con.Err, "%s looks for an editor when it starts, and not later. Should one that finds none start pollux relay,\n"+
		"which connects it to the editor that comes? [y/N]: ", one.Label)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		fmt.Fprintln(con.Err)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return false, err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

// undoRelay removes that file.
func undoRelay(_ context.Context, con *console.Console, one agent.Agent, f setupFlags) (setupReport, error) {
	removed, path, err := one.Relay.Remove(f.dryRun)
	if err != nil {
		return setupReport{}, err
	}
	r := setupReport{Action: "removed", Path: path, Text: "No " + one.Label + " starts pollux relay by itself any more: " + path + " is gone."}
	if !removed {
		if f.undo {
			return setupReport{}, errNothingSetUp
		}
		r.Action, r.Text = "kept", "No "+one.Label+" starts pollux relay by itself: there is no "+path
	}
	return r, nil
}
