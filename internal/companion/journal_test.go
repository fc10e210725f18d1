package companion

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/attach"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/journal"
)

type view struct{}

func (view) Show(context.Context, *review.Diff) error                  { return nil }
func (view) Close(*review.Diff, review.Outcome)                        {}
func (view) Content(context.Context, *review.Diff) (review.Edit, bool) { return review.Edit{}, false }

type stranger struct{}

func (*stranger) Label() string                        { return "somebody" }
func (*stranger) Settled(*review.Diff, review.Outcome) {}

// A plainCLI is a session without a stream.
type plainCLI struct{ session string }

func (p *plainCLI) ask(t *testing.T, c *Companion, method, body string) (http.Header, io.Reader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("http://127.0.0.1:%d/mcp", c.Info().Port), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.Connection().Token)
	r.Header.Set("Content-Type", "application/json")
	if p.session != "" {
		r.Header.Set("Mcp-Session-Id", p.session)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v, %v", method, res, err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res.Header, res.Body
}

// leaveUnheard has a companion that accepts everything end with an outcome that its CLI has not heard.
func leaveUnheard(t *testing.T, c *Companion, dir string) *plainCLI {
	t.Helper()
	p := &plainCLI{}
	header, _ := p.ask(t, c, "POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`)
	p.session = header.Get("Mcp-Session-Id")
	path, _ := json.Marshal(filepath.Join(dir, "a"))
	p.ask(t, c, "POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":%s,"newContent":"x"}}}`, path))
	// The rule accepts a moment after the answer; what the stop finds open it rejects.
	for deadline := time.Now().Add(within); len(c.reg.Pending()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the proposal is not accepted")
		}
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// SPEC T-6, L-1, L-3: what is decided as soon as a diff is open again comes behind the outcomes that wait for the session, with a
// number of its own: a CLI that has heard one with that number would never hear it.
func TestDecidedWhileComingBack(t *testing.T) {
	o, dir, _ := options(t)
	o.Settings.DiffMode = string(review.AcceptAll)
	session := leaveUnheard(t, start(t, o), dir)
	left := journal.Open(discovery.NewResume(o.Dirs.State, "pollux", []string{dir}, 0).Journal(), nil, func(err error) { t.Error(err) })
	reg := review.New(review.Options{View: view{}})
	const open = 30
	for i := range open {
		p := review.Proposal{Key: fmt.Sprint(i), Path: filepath.Join(dir, fmt.Sprint(i)), New: "x"}
		if _, err := reg.Open(t.Context(), &stranger{}, p, func(d *review.Diff) { left.Opened(session.session, d) }); err != nil {
			t.Fatal(err)
		}
	}
	left.Close() // as if by a kill: its diffs are open
	o.Editor = &hasty{}
	_, stream := session.ask(t, start(t, o), "GET", "")
	ids := map[string]bool{}
	for in := bufio.NewScanner(stream); len(ids) < 1+open && in.Scan(); {
		if id, is := strings.CutPrefix(in.Text(), "id: "); is {
			if ids[id] {
				t.Fatalf("two outcomes with the number %s, after %d", id, len(ids))
			}
			ids[id] = true
		}
	}
	if len(ids) < 1+open {
		t.Errorf("%d outcomes are heard: %v", len(ids), ids)
	}
}

// hasty is an editor whose user rejects whatever is shown, at once.
type hasty struct {
	Editor
	core attach.Core
}

func (h *hasty) Attach(core attach.Core)                  { h.core = core }
func (h *hasty) Full() bool                               { return true }
func (h *hasty) Shows() bool                              { return true }
func (h *hasty) StillShown(string) (text string, ok bool) { return "", false }
func (h *hasty) Complain(string)                          {}
func (h *hasty) SessionsChanged()                         {}
func (h *hasty) Show(_ context.Context, d *review.Diff) error {
	go func() { _ = h.core.Registry.Reject(d.ID()) }()
	return nil
}
func (h *hasty) Close(*review.Diff, review.Outcome) {}
func (h *hasty) Content(context.Context, *review.Diff) (review.Edit, bool) {
	return review.Edit{}, false
}

// SPEC T-6, L-1: a CLI whose stream is down while the companion stops in good order hears of
// its outcomes from the one that comes back.
func TestUnheardOutcomes(t *testing.T) {
	o, dir, _ := options(t)
	o.Settings.DiffMode = string(review.AcceptAll)
	session := leaveUnheard(t, start(t, o), dir)
	second := start(t, o)
	_, stream := session.ask(t, second, "GET", "")
	heard := ""
	for in := bufio.NewScanner(stream); in.Scan(); {
		heard += in.Text() + "\n"
		if strings.Contains(in.Text(), "ide/diffAccepted") {
			if err := second.Stop(t.Context()); err != nil { // the stream has taken it
				t.Fatal(err)
			}
			if left, _ := filepath.Glob(filepath.Join(o.Dirs.State, "resume", "*.diffs", "*")); len(left) > 0 {
				t.Fatalf("left: %v", left)
			}
			return
		}
	}
	t.Errorf("the outcome is lost; resumed: %v; heard:\n%s", second.Info().Resumed, heard)
}

// SPEC L-3, F-12: an edited diff that no companion may take over any more is a past proposal, with the edits.
func TestLostDiffIsKept(t *testing.T) {
	o, dir, _ := options(t)
	lost := journal.Open(discovery.NewResume(o.Dirs.State, "pollux", []string{dir}, 0).Journal(), nil, func(err error) { t.Error(err) })
	reg := review.New(review.Options{View: view{}})
	d, err := reg.Open(t.Context(), &stranger{}, review.Proposal{Key: "k", Path: filepath.Join(dir, "f"), Title: "f – Claude Code #2", Old: "old", New: "new"}, func(d *review.Diff) {
		lost.Opened("s", d)
	})
	if err != nil {
		t.Fatal(err)
	}
	lost.Follow(reg)
	if _, err := reg.Edit(d.ID(), review.Edit{Text: "mine"}); err != nil {
		t.Fatal(err)
	}
	lost.Close()         // as if by a kill: its diffs are open
	first := start(t, o) // there is no record that it could resume
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	e, err := start(t, o).kept.Get(d.ID())
	if err != nil || e.Final != "mine" || e.Old != "old" || e.New != "new" || !e.Edited || e.Outcome != review.Withdrawn || e.Owner != "Claude Code #2" {
		t.Errorf("%+v, %v", e, err)
	}
}

// SPEC L-3: what is missing of the journal of the companion before this one is said.
func TestMissingIsSaid(t *testing.T) {
	for what, pattern := range map[string]string{"a text": "*.text", "the records": "log"} {
		o, dir, _ := options(t)
		_ = start(t, o).Stop(t.Context()) // leaves the record
		at := discovery.NewResume(o.Dirs.State, "pollux", []string{dir}, 0).Journal()
		left := journal.Open(at, nil, func(err error) { t.Error(err) })
		reg := review.New(review.Options{View: view{}})
		if _, err := reg.Open(t.Context(), &stranger{}, review.Proposal{Key: "k", Path: filepath.Join(dir, "f"), New: strings.Repeat("x", 1<<20)}, func(d *review.Diff) {
			left.Opened("s", d)
		}); err != nil {
			t.Fatal(err)
		}
		left.Close()
		files, _ := filepath.Glob(filepath.Join(at, pattern))
		if len(files) != 1 {
			t.Fatalf("%s: %v", what, files)
		}
		data, err := os.ReadFile(files[0])
		if err == nil {
			data[len(data)/2] ^= 1
			err = os.WriteFile(files[0], data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		c := start(t, o)
		c.whole()
		if !c.Info().Resumed || !hasTrouble(c, "lost") {
			t.Errorf("%s is damaged; resumed: %v, said: %v", what, c.Info().Resumed, c.troubles())
		}
	}
}

// SPEC L-3: proposals that are lost because the record beside their journal is damaged are said, with the record's name. The next start has
// a good record.
func TestDamagedRecordIsSaid(t *testing.T) {
	for what, open := range map[string]bool{"a proposal": true, "nothing": false} {
		o, dir, _ := options(t)
		_ = start(t, o).Stop(t.Context()) // leaves the record
		if open {
			left := journal.Open(discovery.NewResume(o.Dirs.State, "pollux", []string{dir}, 0).Journal(), nil, func(err error) { t.Error(err) })
			reg := review.New(review.Options{View: view{}})
			if _, err := reg.Open(t.Context(), &stranger{}, review.Proposal{Key: "k", Path: filepath.Join(dir, "f"), New: "x"}, func(d *review.Diff) {
				left.Opened("s", d)
			}); err != nil {
				t.Fatal(err)
			}
			left.Close()
		}
		records, _ := filepath.Glob(filepath.Join(o.Dirs.State, "resume", "*.json"))
		if len(records) != 1 {
			t.Fatalf("%v", records)
		}
		if err := os.WriteFile(records[0], []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		c := start(t, o)
		c.whole()
		said := c.lost()
		if c.Info().Resumed || hasTrouble(c, "lost") != open || hasTrouble(c, "record") {
			t.Errorf("with %s open: resumed: %v, said: %v", what, c.Info().Resumed, c.troubles())
		}
		if open && !strings.Contains(fmt.Sprint(said), records[0]) {
			t.Errorf("said: %v", said)
		}
		_ = c.Stop(t.Context())
		if again := start(t, o); !again.Info().Resumed || hasTrouble(again, "lost") {
			t.Errorf("the next start: resumed: %v, said: %v", again.Info().Resumed, again.troubles())
		}
	}
}

// A journal that cannot be written is said, and keeps nobody from proposing and deciding.
func TestJournalTroubleIsSaid(t *testing.T) {
	o, dir, _ := options(t)
	at := discovery.NewResume(o.Dirs.State, "pollux", []string{dir}, 0).Journal()
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, nil, 0o600)); err != nil { // a file in the way
		t.Fatal(err)
	}
	c := start(t, o)
	defer backend{c}.Attach()()
	d, err := c.reg.Open(t.Context(), &stranger{}, review.Proposal{Key: "k", Path: filepath.Join(dir, "f"), IsNew: true, New: "x"}, func(d *review.Diff) { c.journal.Opened("s", d) })
	if err == nil {
		err = c.reg.Accept(d.ID(), d.Now().Seen, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(c.troubles(), func(t control.Trouble) bool { return t.ID == "journal" })
	if i < 0 || !strings.Contains(c.troubles()[i].What, at) {
		t.Errorf("it is not said: %+v", c.troubles())
	}
}
