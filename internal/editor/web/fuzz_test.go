package web

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/attach"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/rpc"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// owner is an agent that listens to nothing.
type owner struct{}

func (owner) Label() string                        { return "fuzz" }
func (owner) Settled(*review.Diff, review.Outcome) {}

// shown is a view that shows everything.
type shown struct{}

func (shown) Show(context.Context, *review.Diff) error                  { return nil }
func (shown) Close(*review.Diff, review.Outcome)                        {}
func (shown) Content(context.Context, *review.Diff) (review.Edit, bool) { return review.Edit{}, false }

// Whatever a page says, no method panics, and what reaches the store conforms.
func FuzzMethods(f *testing.F) { // SPEC A-4, C-1
	for method, params := range map[string]string{
		"hello": `{"clientId":"x"}`, "tree/list": `{"path":"ROOT"}`, "tree/find": `{"query":"a","limit":-1}`, "file/read": `{"path":"ROOT/f"}`,
		"file/save": `{"path":"ROOT/f","content":"\r\n","baseVersion":"","force":true}`, "file/rename": `{"from":"ROOT/f","to":"ROOT/g"}`,
		"context/update": `{"focused":true,"active":{"path":"ROOT/f","cursor":{"line":1,"character":-1},"selections":[{"text":"x"}]},"open":["ROOT/f",""],"dirty":null}`,
		"diff/read":      `{"id":"DIFF"}`, "diff/edit": `{"id":"DIFF","text":"\r\u0000"}`, "diff/accept": `{"id":"DIFF","text":null}`,
		"policy/set": `{"mode":"accept","pattern":"[**"}`, "history/read": `{"id":"../x"}`, "nothing": `[[`,
	} {
		f.Add(method, params)
	}
	root, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, params string) {
		ws, err := workspace.New([]string{root}, nil)
		if err != nil {
			t.Fatal(err)
		}
		store := state.New(nil)
		defer store.Shut()
		registry := review.New(review.Options{View: shown{}})
		defer registry.Shut()
		d, err := registry.Open(t.Context(), owner{}, review.Proposal{Key: "k", Path: root + "/f", New: "x\r\n"}, func(*review.Diff) {})
		if err != nil {
			t.Fatal(err)
		}
		s := New(attach.PageOptions{Registry: registry, Store: store, Workspace: ws})
		defer s.watch.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wire := &wire{ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1)}
		p := &page{Peer: rpc.NewPeer(wire, rpc.PeerOptions{}), wire: wire, s: s, known: map[string]string{}, diffs: map[string]*pageDiff{}, window: "w", greeted: true}
		s.pages[p] = true

		params = strings.NewReplacer("ROOT", root, "DIFF", d.ID()).Replace(params)
		result, err := p.method(ctx, method, json.RawMessage(params))
		var failed *rpc.Error
		if err != nil && (!errors.As(err, &failed) || failed.Message == "") {
			t.Errorf("%s %s: %+v", method, params, err)
		}
		if _, err := json.Marshal(result); err != nil {
			t.Errorf("%s %s: %v", method, params, err)
		}
		for _, file := range store.Snapshot().Files {
			if !filepath.IsAbs(file.Path) {
				t.Errorf("the store has %q", file.Path)
			}
		}
	})
}
