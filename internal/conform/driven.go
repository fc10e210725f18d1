package conform

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
	"github.com/pollux-companion/pollux/internal/client"
)

// driven has the user do some lines; without a driver the probe is left out.
func (r *run) driven(lines ...string) error {
	if r.t.Driver == nil {
		return skip("it needs a driver, or a person in front of the editor")
	}
	for _, line := range lines {
		if err := r.t.Driver.Do(r.ctx, line); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) doesNotWrite() error {
	if err := r.driven(`{"reset":true}`); err != nil {
		return err
	}
	return r.with("accepted\n", func(_ *client.Link, heard chan event, path string) error {
		if err := r.driven(`{"accept":null}`); err != nil {
			return err
		}
		if _, err := r.next(heard, wire.NotifyAccepted); err != nil {
			return err
		}
		if err := r.pause(settle); err != nil {
			return err
		}
		if data, err := os.ReadFile(path); err == nil {
			_ = os.Remove(path)
			return fmt.Errorf("it has written %d bytes", len(data))
		}
		return nil
	})
}

func (r *run) closedView() error {
	if err := r.driven(`{"reset":true}`); err != nil {
		return err
	}
	return r.with("x\n", func(_ *client.Link, heard chan event, _ string) error {
		if err := r.driven(`{"close":true}`); err != nil {
			return err
		}
		_, err := r.next(heard, wire.NotifyRejected)
		return err
	})
}

func (r *run) noFile() error {
	if err := r.driven(`{"reset":true}`); err != nil {
		return err
	}
	path := filepath.Join(r.dir, "focus.txt")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		return err
	}
	defer os.Remove(path)
	quoted, _ := json.Marshal(path)
	l, heard, err := r.link()
	if err != nil {
		return err
	}
	defer r.leave(l)
	if err := r.driven(fmt.Sprintf(`{"report":{"Active":%s,"Front":true}}`, quoted)); err != nil {
		return err
	}
	if err := r.comesTo(heard, func(c *client.Context) bool { return active(c) == path }); err != nil {
		return fmt.Errorf("the file is never active: %w", err)
	}
	if err := r.driven(`{"report":{"Active":"","Front":true}}`); err != nil {
		return err
	}
	if err := r.comesTo(heard, func(c *client.Context) bool { return active(c) == "" }); err != nil {
		return fmt.Errorf("the file stays active: %w", err)
	}
	return nil
}

func active(c *client.Context) string {
	if c.Workspace == nil || len(c.Workspace.Files) == 0 || !c.Workspace.Files[0].IsActive() {
		return ""
	}
	return c.Workspace.Files[0].Path
}

// comesTo waits for a context that fits.
func (r *run) comesTo(heard chan event, fits func(*client.Context) bool) error {
	for {
		e, err := r.next(heard, wire.NotifyContext)
		if err != nil {
			return err
		}
		c, err := client.ParseContext(e.params)
		if err != nil {
			return err
		}
		if fits(c) {
			return nil
		}
	}
}
