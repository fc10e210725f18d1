package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pollux-companion/pollux/internal/core/state"
)

// Open shows a file in the page that the user last used. at is the position to go to, or nil; takeFocus asks for the
// keyboard. It fails when no page is open.
func (s *Server) Open(path string, at *state.Position, takeFocus bool) error {
	p := s.frontPage()
	if p == nil {
		return errNoPage
	}
	p.Notify("open", struct {
		Path      string          `json:"path"`
		Position  *state.Position `json:"position,omitempty"`
		TakeFocus bool            `json:"takeFocus"`
	}{path, at, takeFocus})
	return nil
}

// saveWithin bounds how long a page may take to save a file.
const saveWithin = 5 * time.Second

// Save has the pages write the unsaved changes of a file that they have open. It fails, and says why, when others have written the file since,
// when a page does not answer, and when no page has the file open.
func (s *Server) Save(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, saveWithin)
	defer cancel()
	open := false
	for _, p := range s.everyPage() {
		var out struct {
			Open  bool   `json:"open"`
			Saved bool   `json:"saved"`
			Why   string `json:"why"`
		}
		if err := p.Call(ctx, "file/saveOpen", map[string]string{"path": path}, &out); err != nil {
			return fmt.Errorf("the page did not save %q: %w", path, err)
		}
		if out.Open && !out.Saved {
			return fmt.Errorf("the page did not save %q: %s", path, cmp.Or(out.Why, "it does not say why"))
		}
		open = open || out.Open
	}
	if !open {
		return fmt.Errorf("no page has %q open: %w", path, errNotOpen)
	}
	return nil
}

var errNotOpen = errors.New("there is nothing to save")

// Ask shows a question in the page that the user last used, and waits for the answer or the end of ctx. choice is one
// of choices, the labels of the buttons, or "" when the user dismissed it. Ask fails when no page is open or the page goes.
func (s *Server) Ask(ctx context.Context, title, message string, choices []string) (choice string, err error) {
	p := s.frontPage()
	if p == nil {
		return "", errNoPage
	}
	var out struct {
		Choice *string `json:"choice"`
	}
	if err := p.Call(ctx, "ask", map[string]any{"title": title, "message": message, "choices": choices}, &out); err != nil {
		return "", err
	}
	if out.Choice == nil || !slices.Contains(choices, *out.Choice) {
		return "", nil
	}
	return *out.Choice, nil
}

// frontPage returns the page that the user last used, or any other.
func (s *Server) frontPage() *page {
	pages := s.everyPage()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.front != nil && s.front.greeted {
		return s.front
	}
	if len(pages) == 0 {
		return nil
	}
	return pages[0]
}
