package companion

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/core/review"
)

type view struct{}

func (view) Show(context.Context, *review.Diff) error             { return nil }
func (view) Close(*review.Diff, review.Outcome)                   {}
func (view) Content(context.Context, *review.Diff) (string, bool) { return "", false }

type stranger struct{}

func (*stranger) Label() string                        { return "somebody" }
func (*stranger) Settled(*review.Diff, review.Outcome) {}

// Diffs that are decided at once never touch the disk, and those of owners that could not be found again neither.
func TestJournalSparesDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "j")
	synctest.Test(t, func(t *testing.T) {
		reg := review.New(review.Options{View: view{}})
		j := newJournal(dir, nil)
		j.follow(reg)
		for range 100 {
			d, err := reg.Open(t.Context(), &stranger{}, review.Proposal{Key: "k", Path: "/f"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(newAfter / 2)
			reg.Reject(d.ID())
		}
		if _, err := reg.Open(t.Context(), &stranger{}, review.Proposal{Key: "k", Path: "/f"}, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * editsEvery)
		if _, err := os.Stat(dir); err == nil {
			t.Error("something was written")
		}
		reg.Shut()
		j.close()
	})
}

// What does not belong there, or is damaged, is removed and not restored.
func TestJournalReadsOdd(t *testing.T) {
	dir := t.TempDir()
	j := newJournal(dir, nil)
	for name, text := range map[string]string{
		"good.json":  `{"id":"good","session":"s","text":"t"}`,
		"other.json": `{"id":"../other"}`,
		"cut.json":   `{"id":"cut`,
		"x.tmp":      ``,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	os.Symlink(filepath.Join(dir, "good.json"), filepath.Join(dir, "link.json"))
	pages := j.read()
	if len(pages) != 1 || pages[0].ID != "good" || pages[0].Text != "t" {
		t.Errorf("%+v", pages)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	if pages := newJournal(filepath.Join(dir, "none"), nil).read(); pages != nil {
		t.Errorf("%v out of nothing", pages)
	}
}

// SPEC T-6, L-1: a CLI whose stream is down while the companion stops in good order hears of
// its outcomes from the one that comes back.
func TestUnheardOutcomes(t *testing.T) {
	o, dir, _ := options(t)
	o.Settings.DiffMode = string(review.AcceptAll)
	first := start(t, o)
	session := ""
	ask := func(c *Companion, method, body string) (http.Header, io.Reader) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		t.Cleanup(cancel)
		r, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("http://127.0.0.1:%d/mcp", c.Info().Port), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+c.Connection().Token)
		r.Header.Set("Content-Type", "application/json")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %v", method, res, err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res.Header, res.Body
	}
	header, _ := ask(first, "POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`)
	session = header.Get("Mcp-Session-Id")
	path, _ := json.Marshal(filepath.Join(dir, "a"))
	ask(first, "POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":%s,"newContent":"x"}}}`, path))
	// The rule accepts a moment after the answer; what the stop finds open it rejects.
	for deadline := time.Now().Add(within); len(first.reg.Pending()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the proposal is not accepted")
		}
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := start(t, o)
	_, stream := ask(second, "GET", "")
	heard := ""
	for in := bufio.NewScanner(stream); in.Scan(); {
		heard += in.Text() + "\n"
		if strings.Contains(in.Text(), "ide/diffAccepted") {
			for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				left, _ := filepath.Glob(filepath.Join(o.Dirs.State, "resume", "*.diffs", "*"))
				if len(left) == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("left: %v", left)
				}
			}
			return
		}
	}
	t.Errorf("the outcome is lost; resumed: %v; heard:\n%s", second.Info().Resumed, heard)
}

// SPEC L-3, F-12: an edited diff that no companion may take over any more is a past proposal, with the edits.
func TestLostDiffIsKept(t *testing.T) {
	o, dir, _ := options(t)
	journal := discovery.NewResume(o.Dirs.State, "pollux", []string{dir}).Journal()
	if err := os.MkdirAll(journal, 0o700); err != nil {
		t.Fatal(err)
	}
	page, err := json.Marshal(journalPage{Session: "s", ID: "lost", Key: "k", Path: filepath.Join(dir, "f"), Title: "f", Opened: time.Now(), Old: "old", New: "new", Text: "mine"})
	if err == nil {
		err = os.WriteFile(filepath.Join(journal, "lost.json"), page, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	first := start(t, o) // there is no record that it could resume
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	e, err := start(t, o).kept.Get("lost")
	if err != nil || e.Final != "mine" || e.Old != "old" || e.New != "new" || !e.Edited || e.Outcome != review.Withdrawn {
		t.Errorf("%+v, %v", e, err)
	}
}
