package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/conform"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
	"github.com/pollux-companion/pollux/internal/proc"
)

// A pageDriver plays the user on the editor page's side of its protocol.
type pageDriver struct {
	page *webtest.Page
	open []string
	last state.Report
}

func (d *pageDriver) Do(_ context.Context, line string) error {
	var do struct {
		Reset, Reject, Close, Touch bool
		Report                      *state.Report
		Accept                      json.RawMessage
		Edit, Policy                *string
		Views                       *int
		Save                        *struct{ Path, Content string }
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
	case do.Touch:
		return d.report(d.last)
	case do.Policy != nil:
		return d.page.Try("policy/set", map[string]any{"mode": *do.Policy}, nil)
	case do.Views != nil:
		return d.views(*do.Views)
	case do.Save != nil:
		return d.page.Try("file/save", map[string]any{"path": do.Save.Path, "content": do.Save.Content, "baseVersion": "", "force": true}, nil)
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

// views waits until so many diffs are open.
func (d *pageDriver) views(n int) error {
	for deadline := time.Now().Add(second(15)); len(d.diffs()) != n; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d diffs are open", len(d.diffs()))
		}
	}
	return nil
}

func (d *pageDriver) report(r state.Report) error {
	d.last = r
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
	c := b.serveApart("--allow-write-file", "--container", "127.0.0.9")
	data, err := os.ReadFile(c.DiscoveryFile)
	if err != nil {
		t.Fatal(err)
	}
	f, err := discovery.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	// This process plays the CLI. The page is nobody's child, as a browser.
	origin, key := webtest.Login(t, c.Page)
	u, err := url.Parse(origin)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	page := webtest.ConnectBy(t, &http.Client{Transport: agent.Apart(t, port, "setsid", "--fork")}, origin, key)
	page.Call("hello", map[string]any{"clientId": "conform"}, nil)
	all, err := conform.Run(t.Context(), conform.Target{
		Addr: fmt.Sprintf("127.0.0.1:%d", c.Port), Token: f.Token, Dir: b.dir, File: c.DiscoveryFile, Wait: second(20), With: []string{"writeFile", "extraHost", "nul"},
		Driver: &pageDriver{page: page},
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
		if c.Result == conform.Skip {
			t.Logf("left out: %s: %s", c.Name, c.Evidence)
		}
	}
	t.Logf("%d checks: %v", len(all), tally)
	if tally[conform.Pass] < 340 || tally[conform.Skip] > 20 {
		t.Errorf("only %v", tally)
	}
}

// Whoever reads the report may stop: the companion that was started ends all the same, and its folder goes.
func TestConformPiped(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"companion": "#!/bin/sh\necho $$ >\"$MARK\"\nexec \"$@\"\n"})
	if err := os.Chmod(b.path("companion"), 0o700); err != nil {
		t.Fatal(err)
	}
	mark := b.path("pid")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `"$@" | head -n 1`, "sh",
		shared.pollux, "conform", "--all", "--", b.path("companion"), shared.pollux, "serve", "--no-open")
	cmd.Dir, cmd.Env = b.dir, b.home.Env("MARK="+mark)
	out, err := cmd.Output()
	if err != nil || strings.Count(string(out), "\n") != 1 {
		t.Fatalf("%v %q", err, out)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(b.read("pid")))
	if err != nil {
		t.Fatal(err)
	}
	b.until("the end of the companion", func() bool { return !proc.Alive(pid) })
	b.until("the end of its folder", func() bool {
		left, err := filepath.Glob(filepath.Join(b.home.Tmp, "px*"))
		return err == nil && len(left) == 0
	})
}
