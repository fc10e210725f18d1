// Package tools holds what the extension commands share, and the commands that run tools: what is installed, what the
// user has agreed to, who asks the user, and the sandbox in which a tool runs.
package tools

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pollux-companion/pollux/internal/cli/confine"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/extension/ask"
	"github.com/pollux-companion/pollux/internal/extension/audit"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/runner"
	"github.com/pollux-companion/pollux/internal/extension/source"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/sandbox"
	"github.com/pollux-companion/pollux/internal/words"
)

// A Kit is the shared state of the extension commands in one run of the command line.
type Kit struct {
	*console.Console
	// Answered is set when the user has answered a consent question permanently. Any goroutine may use it.
	Answered atomic.Bool
	// Pool holds ready processes for a command that runs many tools; nil otherwise.
	Pool *sandbox.Pool
}

// Coded adds the exit code to an error of the extension packages: wrong usage, a negative answer, or a failure.
func Coded(err error) error {
	var unknown *store.NotFoundError
	var invalid *manifest.InvalidError
	switch {
	case errors.Is(err, source.ErrUsage):
		return console.Usage(err)
	case errors.As(err, &unknown), errors.As(err, &invalid), errors.Is(err, source.ErrRefused), errors.Is(err, store.ErrExists):
		return console.No(err)
	}
	return err
}

// Store opens the user's extensions.
func (kit *Kit) Store() (*store.Store, error) {
	return store.Open(&store.Options{Warn: kit.Note})
}

// Installed lists the extensions of the user's store.
func (kit *Kit) Installed() (s *store.Store, list []*store.Extension, err error) {
	if s, err = kit.Store(); err == nil {
		list, err = s.List()
	}
	return s, list, err
}

// Find finds an extension of the user's store by its name.
func (kit *Kit) Find(name string) (s *store.Store, x *store.Extension, err error) {
	if s, err = kit.Store(); err == nil {
		x, err = s.Get(name)
	}
	return s, x, err
}

// Runner returns a runner of tools; by is the caller, "" for the user.
func (kit *Kit) Runner(by string, asker consent.Asker) (*runner.Runner, error) {
	s, err := kit.Store()
	if err != nil {
		return nil, err
	}
	return runner.New(runner.Options{
		Store: s, Consent: kit.Consent(), Asker: asker, Audit: kit.Audit(), Sandbox: kit.Sandbox(kit.Settings.Tools.Reduced),
		Limits: kit.limits(), By: by, Log: kit.Log,
	}), nil
}

// Painted says whether the standard output appears on a screen.
func (kit *Kit) Painted() bool { return confine.Painted(kit.Out) }

// Consent opens the user's consents.
func (kit *Kit) Consent() *consent.Store { return consent.Open(kit.Dirs.State) }

// Audit opens the log of runs and answers.
func (kit *Kit) Audit() *audit.Log { return audit.Open(kit.Dirs.State) }

// limits returns the limits of tools in the user's settings.
func (kit *Kit) limits() sandbox.Limits {
	t := kit.Settings.Tools
	return sandbox.Limits{Time: time.Duration(t.Seconds) * time.Second, Memory: t.Memory, Output: t.Output, Processes: t.Processes}
}

// KnownRoots returns the folders that companions serve.
func (kit *Kit) KnownRoots(ctx context.Context) []string {
	var roots []string
	for _, c := range control.List(ctx, kit.Dirs.Run) {
		roots = append(roots, c.Status.Roots...)
		c.Close()
	}
	return roots
}

// Asker returns an asker that finds, for each question, who can answer it: the person at this terminal, unless a
// model types there, or else the editor.
func (kit *Kit) Asker() consent.Asker {
	return askerFunc(func(ctx context.Context, q consent.Question) (consent.Answer, error) {
		answer, err := kit.askUser(ctx, q)
		if answer == consent.Always || answer == consent.Never {
			kit.Answered.Store(true)
		}
		return answer, err
	})
}

type askerFunc func(context.Context, consent.Question) (consent.Answer, error)

func (f askerFunc) Ask(ctx context.Context, q consent.Question) (consent.Answer, error) {
	return f(ctx, q)
}

func (kit *Kit) askUser(ctx context.Context, q consent.Question) (consent.Answer, error) {
	if in := console.Terminal(kit.In); in != nil && kit.terminalErr() {
		answer, err := (&ask.Terminal{In: in, Out: kit.Err, Dirs: kit.Dirs.Run}).Ask(ctx, q)
		if !errors.Is(err, consent.ErrAgent) {
			return answer, err
		}
	}
	folder, err := console.Here(".")
	if err != nil {
		return "", err
	}
	return (&ask.Editor{Dirs: kit.Dirs.Run, Folder: folder, Asking: func(editor string) {
		fmt.Fprintf(kit.Err, "pollux: you are asked in your editor (%s) whether this may run\n", words.Printable(editor))
	}}).Ask(ctx, q)
}

// terminalErr reports whether the user sees standard error.
func (kit *Kit) terminalErr() bool {
	return console.Terminal(kit.Err) != nil
}

// Sandbox returns the sandbox for tools.
func (kit *Kit) Sandbox(reduced bool) *sandbox.Sandbox {
	return confine.New(kit.Console, reduced, kit.Settings.Tools.UseProxy, kit.Pool)
}
