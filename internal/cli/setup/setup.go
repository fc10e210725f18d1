// Package setup holds the commands that prepare agents and editors for pollux, and undo that.
package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/cli/console"
)

// setupFlags are the flags of setup.
type setupFlags struct {
	only                  string
	undo, dryRun, jsonOut bool
	relay, noRelay        bool
}

// A setupPart is one thing that setup sets up for an agent. do and undo change nothing if f.dryRun is set, and report
// what they would do.
type setupPart struct {
	name     string
	agent    agent.Agent
	do, undo func(context.Context, agent.Agent, setupFlags) (setupReport, error)
}

// A setupReport is the result of a part.
type setupReport struct {
	Part   string   `json:"part"`
	Action string   `json:"action"` // changed, kept (already done), undone, removed, or left (the user changed it since)
	Path   string   `json:"path"`   // the file or folder concerned
	Keys   []string `json:"keys,omitempty"`
	Text   string   `json:"text"`  // what that means, for people
	Agent  string   `json:"agent"` // gemini, claude, qwen
}

// Setup makes pollux setup; bridge is the agent's bridge to extensions.
func Setup(con *console.Console, bridge Bridge) *cobra.Command {
	var f setupFlags
	cmd := &cobra.Command{
		Use:   "setup [AGENT…]",
		Short: "Prepare agents: IDE mode, and the bridge to extensions",
		Long: `Prepares agents for pollux: gemini (Gemini CLI), claude (Claude Code) and qwen
(Qwen Code). Without AGENT it prepares every one that it finds on this machine.
The parts:

  ide      switches IDE mode on in the agent's own settings (ide.enabled and
           ide.hasSeenNudge in .gemini/settings.json, .qwen/settings.json; the
           variable CLAUDE_CODE_AUTO_CONNECT_IDE in .claude/settings.json), so
           that it looks for a companion by itself. Comments, order and all
           other settings stay. GitHub Copilot CLI (copilot) needs no switch
  bridge   gemini only: writes the extension by which the CLI uses what your
           extensions offer
  relay    an agent that finds no editor starts pollux relay, and an editor that
           comes later is found. In a terminal setup asks about it; --relay and
           --no-relay answer beforehand, and scripts are asked nothing

A second setup changes nothing. --undo takes back exactly the changes of setup,
except where you have changed them since.`,
		Example: `  pollux setup
  pollux setup qwen
  pollux setup qwen --relay
  pollux setup --only ide
  pollux setup --dry-run    what would be changed
  pollux setup --undo       as it was before`,
		ValidArgs: agent.Names(nil),
		RunE:      func(cmd *cobra.Command, agents []string) error { return setUp(cmd.Context(), con, agents, bridge, f) },
	}
	cmd.Flags().StringVar(&f.only, "only", "", "set up this `PART` alone: "+strings.Join(setupNames(setupParts(con, agent.All()[:1], bridge)), ", "))
	cmd.Flags().BoolVar(&f.undo, "undo", false, "take back what setup changed")
	cmd.Flags().BoolVar(&f.relay, "relay", false, "let an agent that finds no editor of its own start pollux relay")
	cmd.Flags().BoolVar(&f.noRelay, "no-relay", false, "take that back")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show what would be done")
	cmd.Flags().BoolVar(&f.jsonOut, "json", false, "print JSON")
	return cmd
}

// setupParts returns the parts for agents, in order; undo reverses it.
func setupParts(con *console.Console, agents []agent.Agent, bridge Bridge) (parts []setupPart) {
	for _, s := range agents {
		parts = append(parts, setupPart{"ide", s, func(p context.Context, one agent.Agent, f setupFlags) (setupReport, error) {
			return setupIDE(p, con, one, f)
		}, func(p context.Context, one agent.Agent, f setupFlags) (setupReport, error) {
			return undoIDE(p, con, one, f)
		}})
		if s.Bridge {
			parts = append(parts, bridgePart(s, bridge))
		}
		if s.Relay != nil {
			parts = append(parts, setupPart{"relay", s, func(ctx context.Context, one agent.Agent, f setupFlags) (setupReport, error) {
				return setupRelay(ctx, con, one, f)
			}, func(p context.Context, one agent.Agent, f setupFlags) (setupReport, error) {
				return undoRelay(p, con, one, f)
			}})
		}
	}
	return parts
}

func setupNames(parts []setupPart) (names []string) {
	for _, p := range parts {
		if !slices.Contains(names, p.name) {
			names = append(names, p.name)
		}
	}
	return names
}

// errNothingSetUp: there is nothing to undo.
var errNothingSetUp = errors.New("setup has changed nothing that could be taken back")

func setUp(ctx context.Context, con *console.Console, names []string, bridge Bridge, f setupFlags) error {
	agents, err := agentsFor(names, f.undo)
	if err != nil {
		return err
	}
	parts := setupParts(con, agents, bridge)
	if f.only != "" {
		known := setupNames(parts)
		parts = slices.DeleteFunc(parts, func(p setupPart) bool { return p.name != f.only })
		if len(parts) == 0 {
			return console.Usage(fmt.Errorf("--only %s: setup has these parts: %s", f.only, strings.Join(known, ", ")))
		}
	}
	if f.undo {
		slices.Reverse(parts)
	}
	reports, errs := []setupReport{}, []error(nil)
	for _, p := range parts {
		run := p.do
		if f.undo {
			run = p.undo
		}
		r, err := run(ctx, p.agent, f)
		if errors.Is(err, errNothingSetUp) {
			continue
		}
		if err != nil {
			errs = append(errs, notWritable(p.name, err))
			continue
		}
		r.Part, r.Agent = p.name, p.agent.Name
		reports = append(reports, r)
		if !f.jsonOut {
			fmt.Fprintln(con.Out, r.Text)
		}
	}
	if f.jsonOut {
		errs = append(errs, json.NewEncoder(con.Out).Encode(reports))
	} else if f.dryRun && len(reports) > 0 {
		fmt.Fprintln(con.Out, "nothing was changed (--dry-run)")
	}
	if f.undo && len(reports) == 0 && errors.Join(errs...) == nil {
		return console.No(errNothingSetUp)
	}
	return errors.Join(errs...)
}

// notWritable adds advice to a part's error if permissions are the cause.
func notWritable(part string, err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%s: %w; nothing was changed: make that folder yours and writable, and run setup again", part, err)
	}
	return fmt.Errorf("%s: %w", part, err)
}
