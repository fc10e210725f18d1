// Package attach is what a companion gives the editor and the pages that are attached to it, so that it names neither.
package attach

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/history"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// A Fallback is pollux's own reviewer in the browser, for diffs that the editor cannot show.
type Fallback interface {
	// Show also opens the page in the browser, when nobody has it open.
	review.View
	// Bring opens the page for the user.
	Bring(ctx context.Context) error
}

// A FileWatcher reports changes of the files that it was set to. After Close it is silent.
type FileWatcher interface {
	Set(files, dirs []string)
	Close()
}

// A Core is what an editor works on.
type Core struct {
	Store    *state.Store
	Registry *review.Registry
	Page     Fallback
	// Watch makes a FileWatcher that watches nothing yet; it calls changed with absolute paths. With nil, nothing is watched.
	Watch func(changed func(files []string)) FileWatcher
	// History lists past proposals, newest first. Past returns one of them, and Undo takes it back (SPEC F-12).
	History func() (any, error)
	Past    func(id string) (old, final string, err error)
	Undo    func(id string) error
	// Keep adds a text of the user's that no open diff has; nil where nothing is kept.
	Keep func(history.Entry)
	// Whole returns when every diff of an earlier companion is open again or given up; nil when there was none.
	Whole func()
	// Mention puts a mention into an agent's prompt, and returns how it got there. With nil, mentions are refused.
	Mention func(context.Context, control.Mention) (control.Mentioned, error)
}

// History gives the page the kept proposals. Its methods may be called from any
// goroutine.
type History interface {
	// List returns the entries, newest first.
	List() ([]history.Info, error)
	// Get returns one entry. The error wraps fs.ErrNotExist when the entry is not kept.
	Get(id string) (history.Entry, error)
	// Undo takes an entry's change back; an error like Get's, or a *workspace.ConflictError where the file holds something else.
	Undo(id string) error
}

// PageOptions are what the page of a companion works on.
type PageOptions struct {
	Registry  *review.Registry         // required
	Store     *state.Store             // required
	Workspace *workspace.Workspace     // required
	History   History                  // nil: no history
	Sessions  func() []control.Session // nil: there are none; called from any goroutine
	Troubles  func() []control.Trouble // nil: there are none; called from any goroutine
	// Mention is Core's.
	Mention func(context.Context, control.Mention) (control.Mentioned, error)
	// Decides says, for the ends of a page's connection, why the process that holds it may not decide for the user; nil when it may.
	// It is asked when a page comes in, and again for each decision. It may be called from any goroutine; nil: everybody may.
	Decides func(ctx context.Context, page, server netip.AddrPort) error
	// Keys are the keys of earlier companions, newest first, as the last one's page returned them.
	Keys [][]byte
	// Expected says that pages of the companion before this one are coming back. Until then diffs count as shown, as for a page
	// that is reloading.
	Expected bool
	// Name and Version are the product's, PID the companion's process and
	// AgentPort the port that agents connect to, all for the page to show.
	Name, Version  string
	PID, AgentPort int
	Log            *slog.Logger // nil discards
}
