package cli

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/agent/gemini/told"
	"github.com/pollux-companion/pollux/internal/control"
)

// contextFlags choose the form in which context prints.
type contextFlags struct {
	watch, json, raw bool
}

func (a *app) contextCommand() *cobra.Command {
	var f contextFlags
	cmd := &cobra.Command{
		Use:   "context [DIR]",
		Short: "Show what the CLI would tell its model about your editor",
		Long: `Shows, word by word, what a Gemini CLI that is connected to the companion of the
current folder (or of DIR) would tell its model with the next prompt: the open
files, and where the cursor is in the one that has the focus and what is
selected there.

With --watch it goes on: after the whole context come the changes, as the CLI
tells them with later prompts, until Ctrl-C. (The CLI tells them only when you
send a prompt, and several changes as one.)`,
		Example: `  pollux context                  the text that goes into the prompt
  pollux context --watch          and then what changes
  pollux context --json           only the object in it, one line
  pollux context --raw            what the companion sends: the parameters of ide/contextUpdate`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.json && f.raw {
				return usageError{errors.New("--json and --raw are two forms of the same; use one of them")}
			}
			return a.context(cmd.Context(), dirOf(args), f)
		},
	}
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "go on with the changes")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON objects without the sentences around them, one a line")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "print what the companion sends, one object a line")
	return cmd
}

func (a *app) context(ctx context.Context, dir string, f contextFlags) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	c, err := a.find(ctx, dir)
	if err != nil {
		return err
	}
	defer c.Close()
	p := teller{a: a, f: f}
	seen := ""
	for {
		params, err := toldWithin(ctx, c, seen)
		switch {
		case ctx.Err() != nil && f.watch:
			return nil // Ctrl-C is how one ends it
		case err != nil && seen != "" && !errors.Is(err, control.ErrStopped):
			return fmt.Errorf("the companion has gone (%w); start it again, and this command with it", err)
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

// toldWithin asks once, and does not wait for a companion that is stopped.
func toldWithin(ctx context.Context, c *control.Client, seen string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return c.Told(ctx, seen)
}

// A teller prints one context after the other.
type teller struct {
	a    *app
	f    contextFlags
	last *told.Context // nil before the first
}

func (p *teller) print(params []byte) error {
	if p.f.raw {
		_, err := fmt.Fprintf(p.a.stdout, "%s\n", params)
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
		_, err = fmt.Fprintf(p.a.stdout, "%s\n", told.JSON(object, ""))
	case p.f.json:
	case ok && first:
		_, err = fmt.Fprintf(p.a.stdout, "%s\n", words)
	case ok:
		_, err = fmt.Fprintf(p.a.stdout, "\n%s\n", words)
	case first:
		fmt.Fprintln(p.a.stderr, "pollux: no file is open in the editor; the CLI would say nothing")
	}
	return err
}
