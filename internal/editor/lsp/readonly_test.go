package lsp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
)

// SPEC GC-3: an editor is told why a proposal cannot be edited; one that edits it all the same decides nothing by that, is told so, and
// accepts it as it is afterwards.
func TestReadOnlyGC3(t *testing.T) {
	e := full(t)
	owner := &reviewtest.Owner{Name: "a"}
	d, err := e.open(owner, review.Proposal{Key: "k", Path: "/p/x.go", Old: before, New: after, Title: "t", ReadOnly: "the agent takes no edits"})
	if err != nil {
		t.Fatal(err)
	}
	var p struct{ ReadOnly string }
	if err := json.Unmarshal(e.last("pollux/openDiff"), &p); err != nil || p.ReadOnly != "the agent takes no edits" {
		t.Errorf("%+v, %v", p, err)
	}
	e.types(d, 1, "mine\n")
	e.accepts(d)
	e.until("the user hears why", func() bool { return strings.Contains(string(e.last("window/showMessage")), "takes no edits") })
	if text, _ := d.Text(); text != after || len(owner.Told()) > 0 {
		t.Errorf("%q, %v", text, owner.Told())
	}
	e.peer.Notify("pollux/diffResolved", obj{"diffId": d.ID(), "outcome": "accepted", "content": after})
	if got := owner.ExpectTold(t, review.Accepted)[0].Outcome; got.Edited || got.Content != after {
		t.Errorf("%+v", got)
	}
}
