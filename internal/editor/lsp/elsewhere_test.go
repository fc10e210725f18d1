package lsp_test

import (
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
)

// An edit made in another view reaches the editor, without its focus, and the editor's next one counts again (F-4, F-10).
func TestEditedElsewhere(t *testing.T) {
	e := full(t)
	owner := &reviewtest.Owner{Name: "a"}
	d, err := e.open(owner, proposal("/p/a"))
	if err != nil {
		t.Fatal(err)
	}
	e.types(d, 9, "in the editor\n")
	e.drain()
	if _, err := e.reg.Edit(d.ID(), review.Edit{Text: "elsewhere\n"}); err != nil {
		t.Fatal(err)
	}
	e.until("the edit", func() bool { return e.text(d.ID()) == "elsewhere\n" })
	if last := e.last("pollux/openDiff"); !strings.Contains(string(last), `"takeFocus":false`) {
		t.Errorf("%s", last)
	}
	e.types(d, 1, "and again\n")
	e.drain()
	if text, _ := d.Text(); text != "and again\n" {
		t.Errorf("the editor's next edit is lost: %q", text)
	}
	if o, err := e.reg.Withdraw(t.Context(), owner, "/p/a"); err != nil || o.Content != "and again\n" {
		t.Errorf("%+v, %v", o, err)
	}
}
