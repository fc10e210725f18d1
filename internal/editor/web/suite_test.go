package web_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/attach"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/editor/web"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// SPEC F-2 … F-10: the page is a view like every other.
func TestViewSuite(t *testing.T) {
	reviewtest.Suite(t, func(t *testing.T, r *review.Registry) reviewtest.Subject {
		ws, err := workspace.New([]string{t.TempDir()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		store := state.New(nil)
		t.Cleanup(store.Shut)
		server := web.New(attach.PageOptions{Registry: r, Store: store, Workspace: ws})
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go server.Serve(l)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = server.Shutdown(ctx)
		})
		address := ""
		for address == "" {
			address, _ = server.PageURL()
		}
		p := webtest.Open(t, address, "suite")

		// What a user types stands in the page before it is sent.
		var mu sync.Mutex
		typed := map[string]*string{}
		p.OnFlush(func(id string) *string {
			mu.Lock()
			defer mu.Unlock()
			return typed[id]
		})
		return reviewtest.Subject{
			View: server,
			Edit: func(d *review.Diff, text string) {
				p.Call("diff/read", obj{"id": d.ID()}, nil)
				mu.Lock()
				typed[d.ID()] = &text
				mu.Unlock()
				p.Notify("diff/edit", obj{"id": d.ID(), "text": text, "clientId": "suite"})
			},
			Accept: func(d *review.Diff) {
				mu.Lock()
				text := typed[d.ID()]
				mu.Unlock()
				if text != nil {
					_ = p.Try("diff/accept", obj{"id": d.ID(), "text": *text}, nil)
				} else {
					_ = p.Try("diff/accept", obj{"id": d.ID()}, nil)
				}
			},
			Reject: func(d *review.Diff) { _ = p.Try("diff/reject", obj{"id": d.ID()}, nil) },
		}
	})
}
