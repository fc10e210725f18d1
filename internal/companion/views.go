package companion

import (
	"context"
	"net"

	"github.com/pollux-companion/pollux/internal/attach"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
)

// An Editor is the user's own editor, on the standard input and output of this process.
type Editor interface {
	review.View
	Attach(core attach.Core)
	// Full says that it has a plugin of pollux's, and Shows that it shows diffs or asks about them.
	Full() bool
	Shows() bool
	// StillShown returns the text of a diff of an earlier companion that it still shows.
	StillShown(id string) (text string, ok bool)
	OpenDocument(ctx context.Context, path string, at *state.Position, takeFocus bool) error
	SaveDocument(ctx context.Context, path string) error
	Ask(ctx context.Context, title, message string, choices []string) (choice string, err error)
	// Type types into the process of one of its terminals.
	Type(ctx context.Context, pid int, text string) (typed bool, err error)
	Complain(message string)
	SessionsChanged()
}

// A Page is pollux's own editor in the browser.
type Page interface {
	server
	review.View
	ShowNow(*review.Diff) error
	// Shows says that a page is open or coming back, and Pages how many are open.
	Shows() bool
	Pages() int
	// PageURL returns a fresh address, and Keys what the next companion's page needs to know its pages.
	PageURL() (string, error)
	Keys() [][]byte
	Open(path string, at *state.Position, takeFocus bool) error
	Save(ctx context.Context, path string) error
	Ask(ctx context.Context, title, message string, choices []string) (choice string, err error)
	SessionsChanged()
	TroublesChanged()
	HistoryChanged()
	RootsChanged()
}

// PageOptions are what the page works on.
type PageOptions = attach.PageOptions

// A server answers on listeners until it is shut down.
type server interface {
	// Serve returns nil after Shutdown.
	Serve(net.Listener) error
	Shutdown(context.Context) error
}
