package companion

import (
	"errors"
	"os"

	"github.com/pollux-companion/pollux/internal/agent/codex"
)

// serveCodex answers Codex where Codex has been used (SPEC CX-1). When another companion answers it already, serveCodex tries again
// with the next touch. The caller holds c.mu.
func (c *Companion) serveCodex() {
	home, err := os.UserHomeDir()
	if c.codex != nil || err != nil || !codex.Used(os.Getenv, home) {
		return
	}
	s, err := codex.Serve(os.TempDir(), c.store.Snapshot, c.o.Log)
	switch {
	case errors.Is(err, codex.ErrTaken): // Codex hears from the other companion
	case err != nil:
		c.o.Log.Info("codex is not answered", "err", err)
	default:
		c.codex = s
	}
}
