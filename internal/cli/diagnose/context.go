package diagnose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/gemini/told"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/reach"
	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/doctor"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// contextFlags choose the output format of context.
type contextFlags struct {
	watch, json, raw bool
	since, agent     string
}

// Context makes pollux context.
func Context(con *console.Console) *cobra.Command {
	var f contextFlags
	cmd := &cobra.Command{
		Use:   "context [DIR]",
		Short: "Show what an agent would tell its model about your editor",
		Long: `Shows, word by word, what a Gemini CLI in the current folder (or in DIR) would
tell its model with the next prompt: the open files, and the cursor and the
selection in the active file. If several companions serve the folder, it asks
the companion that the CLI would take, pollux's or not. pollux status marks that
companion by a star.

With --watch it first shows the whole context, and then each change, until
Ctrl-C. The CLI itself tells changes only when you send a prompt, and several of
them as one. --since does the same.

With --agent claude it shows what Claude Code would tell. Claude Code tells the
file, or the selected lines, anew with each prompt.

The exit code is 1 when the CLI would not connect.`,
		Example: `  pollux context                  the text that goes into the prompt
  pollux context --watch          and then what changes
  pollux context --agent claude
  pollux context --json           only the object in it, one line
  pollux context --raw            what the companion sends: the parameters of ide/contextUpdate
  pollux context --raw >then; …; pollux context --since then     what has changed since`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.json && f.raw {
				return console.Usage(errors.New("--json and --raw are two forms of the same; use one of them"))
			}
			if f.raw && f.since != "" {
				return console.Usage(errors.New("--since prints what the CLI tells its model, --raw what the companion sends; use one of them"))
			}
			one, ok := agent.Find(f.agent)
			switch {
			case !ok || !one.Tells():
				return console.Usage(fmt.Errorf("--agent %s: it is known what these tell their model: %s", f.agent, strings.Join(tellers(), ", ")))
			case one.Told != nil && (f.json || f.since != ""):
				return console.Usage(fmt.Errorf("--json and --since are about Gemini CLI; what %s tells is one text", one.Label))
			case one.Told != nil:
				return printContextOf(cmd.Context(), con, one, console.DirOf(args), f)
			}
			return printContext(cmd.Context(), con, console.DirOf(args), f)
		},
	}
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "go on with the changes")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON objects without the sentences around them, one a line")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "print what the companion sends, one object a line")
	cmd.Flags().StringVar(&f.agent, "agent", agent.Default, "what the agent `NAME` tells its model: "+strings.Join(tellers(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("agent", cobra.FixedCompletions(tellers(), cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&f.since, "since", "", "tell only what has changed since this `FILE` was written by --raw")
	return cmd
}

func printContext(ctx context.Context, con *console.Console, dir string, f contextFlags) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	p := teller{con: con, f: f, quiet: func() string { return quiet(ctx, con, dir, agent.Default) }}
	if f.since != "" {
		before, err := readContext(f.since)
		if err != nil {
			return err
		}
		p.last = &before
	}
	c, err := chosen(ctx, con, dir)
	if err != nil {
		return err
	}
	defer c.Close()
	seen := ""
	for {
		params, err := toldWithin(ctx, c, seen)
		switch {
		case ctx.Err() != nil && f.watch:
			return nil // Ctrl-C is the normal end
		case err != nil && seen != "" && !errors.Is(err, control.ErrStopped):
			return fmt.Errorf("the companion has gone (%w); start it again, then this command", err)
		case err != nil:
			return err
		}
		if string(params) != seen {
			if err := p.print(params); err != nil {
				return err
			}
		}
		seen = string(params)
		if !f.watch {
			return nil
		}
	}
}

// tellers returns the agents for which pollux knows what they tell their model.
func tellers() []string {
	return agent.Names(agent.Agent.Tells)
}

// printContextOf prints what an agent with its own discovery and wording would tell its model. It joins the companion
// as the agent does.
func printContextOf(ctx context.Context, con *console.Console, one agent.Agent, dir string, f contextFlags) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	folder, err := console.Here(dir)
	if err != nil {
		return err
	}
	joining, cancel := context.WithTimeout(ctx, reach.AskTimeout)
	defer cancel()
	l, err := joinAs(joining, one, folder)
	if err != nil {
		return err
	}
	defer l.Close()
	for seen := "-"; ; { // a value that no text equals
		waiting := ctx
		if seen == "-" {
			waiting = joining
		}
		params, err := l.Context(waiting)
		switch {
		case err != nil && ctx.Err() != nil && f.watch:
			return nil // Ctrl-C is the normal end
		case err != nil:
			return fmt.Errorf("the companion has said nothing of what the user looks at: %w; see: pollux doctor %s", err, one.Name)
		}
		text := string(params)
		if !f.raw {
			if text, err = one.Told(params); err != nil {
				return err
			}
		}
		if text != "" && text != seen {
			fmt.Fprintln(con.Out, text)
		}
		if text == "" && !f.watch {
			fmt.Fprintln(con.Err, "pollux: "+quiet(ctx, con, folder, one.Name)+"; "+one.Label+" would say nothing")
		}
		if !f.watch {
			return nil
		}
		seen = text
	}
}

// joinAs joins the companion that an agent started in a folder would join.
func joinAs(ctx context.Context, one agent.Agent, folder string) (agent.Listener, error) {
	door := agent.DoorHere(folder)
	if one.Choose != nil {
		c, err := doctor.Choose(one, &client.World{Dir: folder})
		switch {
		case err != nil:
			return nil, err
		case c.Taken < 0:
			return nil, console.No(fmt.Errorf("a %s that is started in %q finds no companion; see: pollux doctor %s", one.Label, folder, one.Name))
		}
		door = c.Candidates[c.Taken].Lock.Door()
	}
	l, err := one.Listen(ctx, door)
	if err != nil {
		return nil, console.No(fmt.Errorf("the companion that %s takes does not let it in: %w; see: pollux doctor %s", one.Label, err, one.Name))
	}
	return l, nil
}

// quiet says why an agent is told of no file in dir: the user has paused sharing, or keeps it from the agent, or no file is open.
func quiet(ctx context.Context, con *console.Console, dir, name string) string {
	ctx, cancel := context.WithTimeout(ctx, reach.AskTimeout)
	defer cancel()
	none := "no file is open in the editor"
	folder, err := console.Here(dir)
	if err != nil {
		return none
	}
	c, err := control.Find(ctx, con.Dirs.Run, folder)
	if err != nil {
		return none
	}
	defer c.Close()
	for _, s := range c.Status.Shares {
		if s.Agent == name && s.Mode != "always" {
			return fmt.Sprintf("%s is not told what you look at (pollux share says %q)", s.Label, s.Mode)
		}
	}
	if slices.ContainsFunc(c.Status.Troubles, func(t control.Trouble) bool { return t.ID == control.PausedTrouble }) {
		return "sharing is paused (pollux resume ends that)"
	}
	return none
}

// readContext reads the output of --raw.
func readContext(file string) (told.Context, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return told.Context{}, fmt.Errorf("%q cannot be read: %w", file, safefile.Cause(err))
	}
	c, err := told.Parse(data)
	if err != nil {
		return c, fmt.Errorf("%q is not output of pollux context --raw: %w", file, err)
	}
	return c, nil
}

// A contextSource returns contexts as a companion sends them.
type contextSource interface {
	Told(ctx context.Context, seen string) (json.RawMessage, error)
	Close()
}

// chosen joins the companion that a CLI started in dir would join (SPEC K-1): by the control channel if it is
// pollux's own, else as a CLI.
func chosen(ctx context.Context, con *console.Console, dir string) (contextSource, error) {
	folder, err := console.Here(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, reach.AskTimeout)
	defer cancel()
	w := client.Complete(&client.World{Dir: folder})
	choice := client.Choose(w)
	if err := choice.Refusal(w); err != nil {
		c, none := control.Find(ctx, con.Dirs.Run, folder)
		if none != nil {
			return nil, none
		}
		defer c.Close()
		return nil, console.No(fmt.Errorf("a companion serves %q (process %d), but a CLI that is started here does not connect to it; it says: %w; see: pollux doctor", folder, c.Status.PID, err))
	}
	ways := choice.Ways(w)
	var own *control.Client
	clients, silent := control.ListAll(ctx, con.Dirs.Run)
	for _, c := range clients {
		conn, err := c.Connection(ctx)
		if own == nil && err == nil && len(ways) > 0 && conn.Port == ways[0].Port {
			own = c
			continue
		}
		c.Close()
	}
	if own != nil {
		return own, nil
	}
	l, err := client.Listen(ctx, ways)
	if err != nil && len(silent) > 0 {
		return nil, control.SilentError(silent)
	}
	if err != nil {
		return nil, console.No(fmt.Errorf("the companion that the CLI takes does not let it in: %w; see: pollux doctor", err))
	}
	return l, nil
}

// toldWithin asks once, and does not wait for a suspended companion.
func toldWithin(ctx context.Context, c contextSource, seen string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, reach.AskTimeout)
	defer cancel()
	params, err := c.Told(ctx, seen)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the companion has not said within %v what the user looks at; see: pollux doctor", reach.AskTimeout)
	}
	return params, err
}

// A teller prints contexts one after another.
type teller struct {
	con   *console.Console
	f     contextFlags
	last  *told.Context // nil before the first
	gap   string        // printed between contexts
	quiet func() string // why nothing is told
}

func (p *teller) print(params []byte) error {
	if p.f.raw {
		_, err := fmt.Fprintf(p.con.Out, "%s\n", params)
		return err
	}
	now, err := told.Parse(params)
	if err != nil {
		return err
	}
	object, ok := now.Full()
	words, _ := now.FullWords()
	if p.last != nil {
		object, ok = now.Since(*p.last)
		words, _ = now.SinceWords(*p.last)
	}
	first := p.last == nil
	p.last = &now
	switch {
	case p.f.json && (ok || first):
		_, err = fmt.Fprintf(p.con.Out, "%s\n", told.JSON(object, ""))
	case p.f.json:
	case ok:
		_, err = fmt.Fprintf(p.con.Out, "%s%s\n", p.gap, words)
		p.gap = "\n"
	case first:
		fmt.Fprintln(p.con.Err, "pollux: "+p.quiet()+"; the CLI would say nothing")
	}
	return err
}
