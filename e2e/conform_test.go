package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/conform"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
)

// A pageDriver plays the user on the editor page's side of its protocol.
type pageDriver struct {
	page *webtest.Page
	open []string
}

func (d *pageDriver) Do(_ context.Context, line string) error {
	var do struct {
		Reset, Reject, Close bool
		Report               *state.Report
		Accept               json.RawMessage
		Edit, Policy         *string
	}
	if err := json.Unmarshal([]byte(line), &do); err != nil {
		return err
	}
	switch {
	case do.Reset:
		for _, id := range d.diffs() {
			_ = d.page.Try("diff/reject", map[string]any{"id": id}, nil)
		}
		_ = d.page.Try("policy/set", map[string]any{"mode": "ask"}, nil)
		return d.report(state.Report{Open: []string{}})
	case do.Report != nil:
		return d.report(*do.Report)
	case do.Policy != nil:
		return d.page.Try("policy/set", map[string]any{"mode": *do.Policy}, nil)
	}
	ids := d.diffs()
	asked := do.Reject || do.Close || do.Edit != nil || do.Accept != nil
	switch {
	case !asked:
		return conform.ErrUnsupported
	case len(ids) == 0:
		return errors.New("no diff is open")
	case do.Reject, do.Close:
		return d.page.Try("diff/reject", map[string]any{"id": ids[0]}, nil)
	case do.Edit != nil:
		return d.page.Try("diff/edit", map[string]any{"id": ids[0], "text": *do.Edit}, nil)
	}
	var text *string
	if err := json.Unmarshal(do.Accept, &text); err != nil {
		return err
	}
	return d.page.Try("diff/accept", map[string]any{"id": ids[0], "text": text}, nil)
}

// diffs are the open ones, oldest first.
func (d *pageDriver) diffs() (ids []string) {
	var hello struct{ Diffs []struct{ ID string } }
	if d.page.Try("hello", map[string]any{"clientId": "conform"}, &hello) != nil {
		return nil
	}
	for _, diff := range hello.Diffs {
		ids = append(ids, diff.ID)
	}
	return ids
}

func (d *pageDriver) report(r state.Report) error {
	if r.Open != nil {
		d.open = r.Open
	}
	if r.Active != "" && !slices.Contains(d.open, r.Active) {
		d.open = append(d.open, r.Active)
	}
	in := map[string]any{"focused": true, "open": d.open, "dirty": r.Dirty}
	if r.Active != "" {
		in["active"] = map[string]any{"path": r.Active, "cursor": r.Cursor, "selections": r.Selections}
	}
	return d.page.Try("context/update", in, nil)
}

// The companion of the editor page, driven on its side, against the whole contract: nothing fails.
func TestPageConforms(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "old\n"})
	c := b.serve()
	data, err := os.ReadFile(c.DiscoveryFile)
	if err != nil {
		t.Fatal(err)
	}
	f, err := discovery.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	all, err := conform.Run(t.Context(), conform.Target{
		Addr: fmt.Sprintf("127.0.0.1:%d", c.Port), Token: f.Token, Dir: b.dir, File: c.DiscoveryFile, Wait: second(20),
		Driver: &pageDriver{page: webtest.Open(t, c.Page, "conform")},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tally := map[conform.Result]int{}
	for _, c := range all {
		tally[c.Result]++
		if c.Result == conform.Fail {
			t.Errorf("%s: %s\n%s", c.Name, c.About, c.Evidence)
		}
	}
	t.Logf("%d checks: %v", len(all), tally)
	if tally[conform.Pass] < 200 {
		t.Errorf("only %v", tally)
	}
}
