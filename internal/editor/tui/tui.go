// Package tui is pollux's reviewer for terminals. It shows the queue of proposals, each as a diff to take hunk by
// hunk, edit, accept or reject; the policy; and the history with undo. It works beside any other editor of the same
// companion, over the control channel.
//
// Messages (update.go, keys.go) change a model (model.go), which view.go draws. commands.go holds the calls to the
// companion, feed.go its messages. Everything but these last two files is pure.
package tui

import (
	"context"
	"errors"
	"io"

	tea "charm.land/bubbletea/v2"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
)

// A Companion is what the reviewer needs from the companion; control.Client implements it. Its methods may be called
// from any goroutine.
type Companion interface {
	Attach(ctx context.Context) error
	Watch(ctx context.Context, seen uint64) (control.Queue, error)
	Texts(ctx context.Context, id string) (control.Texts, error)
	Text(ctx context.Context, id string) (text string, version int, err error)
	Edit(ctx context.Context, id, text string, from *int) (version int, err error)
	Resolve(ctx context.Context, id string, seen control.Seen, theirs bool) error
	Decide(ctx context.Context, d control.Decision) error
	SetRule(ctx context.Context, r review.Rule) error
	Pause(ctx context.Context, paused bool) error
	History(ctx context.Context) ([]control.PastProposal, error)
	PastTexts(ctx context.Context, id string) (control.Texts, error)
	Undo(ctx context.Context, id string) error
	Close()
}

var _ Companion = (*control.Client)(nil)

// Options configure a reviewer.
type Options struct {
	// Join connects to the companion. It is called about once a second while there is no connection.
	Join func(ctx context.Context) (Companion, error)
	// Folder is the name of the workspace, for display.
	Folder string
	// Editor is the command line of the user's editor ("vi", "code --wait"); "" for none.
	Editor string
	// Theme is "light" or "dark" and overrides the terminal. "" follows the terminal's answer and, until it comes,
	// Env's COLORFGBG.
	Theme string
	// NoColor draws without colours (NO_COLOR).
	NoColor bool
	// Input and Output are the terminal; nil means the process's own.
	Input  io.Reader
	Output io.Writer
	// Env is the environment that describes the terminal; nil means the process's own.
	Env []string
	// UntilDone ends the reviewer when nothing waits any more.
	UntilDone bool
	// Kept receives one sentence for each edit that no companion has taken, naming the file that keeps it. It is
	// called after the reviewer has left the screen; nil ignores them.
	Kept func(sentence string)
}

// Run shows the reviewer until the user leaves it or ctx ends. It returns an error when the terminal fails, or when
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
