// Package tui is pollux's reviewer for terminals: the queue of proposals, each as a diff that can be taken hunk by
// hunk, edited, accepted and rejected, the policy, and the history with undo. It works beside any other editor of
// the same companion, over the control channel.
//
// A model (model.go) is changed by messages (update.go, keys.go) and drawn (view.go); commands.go holds
// what it asks of the companion, feed.go what the companion says by itself. All but the last two is pure.
package tui

import (
	"context"
	"errors"
	"io"

	tea "charm.land/bubbletea/v2"

	"github.com/pollux-companion/pollux/internal/control"
)

// A Companion is what the reviewer needs of one; control.Client is one. Its methods may be called from any goroutine.
type Companion interface {
	Attach(ctx context.Context) error
	Watch(ctx context.Context, seen uint64) (control.Queue, error)
	Texts(ctx context.Context, id string) (control.Texts, error)
	Text(ctx context.Context, id string) (text string, version int, err error)
	Edit(ctx context.Context, id, text string, from *int) (version int, err error)
	Resolve(ctx context.Context, id string, seen control.Seen, theirs bool) error
	Decide(ctx context.Context, d control.Decision) error
	SetRule(ctx context.Context, r control.Rule) error
	History(ctx context.Context) ([]control.Entry, error)
	Entry(ctx context.Context, id string) (control.Texts, error)
	Undo(ctx context.Context, id string) error
	Close()
}

var _ Companion = (*control.Client)(nil)

// Options configure a reviewer.
type Options struct {
	// Join connects to the companion. It is called again, about once a second, when there is none or it has gone.
	Join func(ctx context.Context) (Companion, error)
	// Folder is the workspace's, as it is shown.
	Folder string
	// Editor is the command line of the user's editor ("vi", "code --wait"); "" when there is none.
	Editor string
	// Theme is "light" or "dark", whatever the terminal says of its background; "" believes the terminal or, as long as it says nothing, Env's COLORFGBG.
	Theme string
	// NoColor shows without colours (NO_COLOR).
	NoColor bool
	// Input and Output are the terminal; the process's own when nil.
	Input  io.Reader
	Output io.Writer
	// Env is the environment, from which the terminal's abilities are read; the process's own when nil.
	Env []string
	// UntilDone ends the reviewer when nothing waits any more, as one that has only taken the screen for a while.
	UntilDone bool
	// Kept is told, a sentence each, of edits that no companion has taken, and where they are kept. It is called when
	// the reviewer has left the screen; nil tells nobody.
	Kept func(sentence string)
}

// Run shows the reviewer until the user leaves it, or ctx ends. It returns an error when the terminal fails, or when
// the companion refuses a reviewer.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var options []tea.ProgramOption
	if o.Input != nil {
		options = append(options, tea.WithInput(o.Input))
	}
	if o.Output != nil {
		options = append(options, tea.WithOutput(o.Output))
	}
	if o.Env != nil {
		options = append(options, tea.WithEnvironment(o.Env))
	}
	p := tea.NewProgram(program{newModel(o)}, append(options, tea.WithContext(ctx))...)
	f := &feed{join: o.Join, send: func(msg any) { p.Send(msg) }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.run(ctx)
	}()
	final, err := p.Run()
	cancel()
	<-done
	if last, ok := final.(program); ok {
		for _, sentence := range last.m.leftovers() {
			if o.Kept != nil {
				o.Kept(sentence)
			}
		}
		if last.m.fatal != nil {
			return last.m.fatal
		}
	}
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil || errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}
