//go:build unix

package conform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pollux-companion/pollux/internal/client/clienttest"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
)

// A hand plays the user on a companion in this process. Use it from one goroutine.
type hand struct {
	c *clienttest.Companion
	// change lets a test corrupt what the user does. It returns true when it handled the line itself.
	change func(h *hand, line string) bool
	// trusts means that the editor has workspace trust.
	trusts bool
	// buffers are the editor's own texts of files.
	buffers map[string]string
}

// handLine is one line of the driver's protocol.
type handLine struct {
	Reset, Reject, Touch, Close bool
	Report                      *state.Report
	Accept, Trust               json.RawMessage
	Edit, Policy                *string
	Type, Save, Holds           *handText
	Views                       *int
}

type handText struct{ Path, Content string }

func (h *hand) Do(_ context.Context, line string) error {
	if h.change != nil && h.change(h, line) {
		return nil
	}
	var do handLine
	if err := json.Unmarshal([]byte(line), &do); err != nil {
		return err
	}
	switch {
	case do.Reset:
		return h.reset()
	case do.Report != nil:
		h.c.Store.Report("window", *do.Report)
		return nil
	case do.Touch:
		h.c.Store.Touch()
		return nil
	case do.Policy != nil:
		h.c.Registry.SetRule(review.Rule{Mode: review.Mode(*do.Policy)})
		return nil
	case do.Trust != nil && h.trusts:
		var trusted *bool
		err := json.Unmarshal(do.Trust, &trusted)
		h.c.Store.SetTrust(trusted)
		return err
	case do.Views != nil:
		for deadline := time.Now().Add(patience); len(h.c.Registry.Pending()) != *do.Views; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				return fmt.Errorf("%d views are open", len(h.c.Registry.Pending()))
			}
		}
		return nil
	case do.Type != nil, do.Save != nil, do.Holds != nil:
		return h.buffer(do)
	}
	return h.decide(do)
}

// reset returns once the closing of all files has been sent; otherwise the next session would begin with it.
func (h *hand) reset() error {
	for _, d := range h.c.Registry.Pending() {
		_ = h.c.Registry.Reject(d.ID())
	}
	h.c.Store.Leave("window")
	h.c.Store.SetTrust(nil)
	h.c.Registry.SetRule(review.Rule{Mode: review.Ask})
	h.buffers = map[string]string{}
	for deadline := time.Now().Add(patience); h.c.Store.Waiting(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return errors.New("the store does not publish")
		}
	}
	return nil
}

// patience bounds the wait for something that must happen, on a busy machine.
const patience = 60 * time.Second

// buffer handles a line about the editor's own text of a file.
func (h *hand) buffer(do handLine) error {
	switch {
	case do.Type != nil:
		h.buffers[do.Type.Path] = do.Type.Content
	case do.Save != nil:
		h.buffers[do.Save.Path] = do.Save.Content
		return os.WriteFile(do.Save.Path, []byte(do.Save.Content), 0o600)
	case h.buffers[do.Holds.Path] != do.Holds.Content:
		return fmt.Errorf("the editor's text is %q", h.buffers[do.Holds.Path])
	}
	return nil
}

func (h *hand) decide(do handLine) error {
	pending := h.c.Registry.Pending()
	if len(pending) == 0 {
		if do.Reject || do.Accept != nil || do.Edit != nil || do.Close {
			return errors.New("no diff is open")
		}
		return ErrUnsupported
	}
	id := pending[0].ID()
	switch {
	case do.Reject, do.Close:
		return h.c.Registry.Reject(id)
	case do.Edit != nil:
		_, err := h.c.Registry.Edit(id, review.Edit{Text: *do.Edit})
		return err
	case do.Accept != nil:
		var content *string
		if err := json.Unmarshal(do.Accept, &content); err != nil {
			return err
		}
		return h.c.Registry.Accept(id, pending[0].Now().Seen, content)
	}
	return ErrUnsupported
}
