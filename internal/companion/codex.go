package companion

import (
	"errors"
	"os"

	"github.com/pollux-companion/pollux/internal/agent/codex"
)

// serveCodex answers Codex where it has been used, unless another companion does: then it tries again with the next touch (SPEC CX-1).
// c.mu is held.
func (c *Companion) serveCodex() {
	home, err := os.UserHomeDir()
	if c.codex != nil || err != nil || !codex.Used(os.Getenv, home) {
		return
	}
	s, err := codex.Serve(os.TempDir(), c.store.Snapshot, c.o.Log)
	switch {
	case errors.Is(err, codex.ErrTaken): // it hears from that one
	case err != nil:
		c.o.Log.Info("codex is not answered", "err", err)
	default:
		c.codex = s
	}
}
