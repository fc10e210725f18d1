package editors

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/child"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// browse puts a stand-in for the browser's command into the user's PATH: it
// keeps the page that it is given.
func (b *bench) browse() {
	b.Helper()
	bin := filepath.Join(b.root, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte("#!/bin/sh\ncp \"$1\" \"$HOME/opened.part\" && mv \"$HOME/opened.part\" \"$HOME/opened\"\n"), 0o700); err != nil {
		b.Fatal(err)
	}
	b.env = append(b.env, "DISPLAY=:0", "PATH="+bin+":"+filepath.Dir(binary())+":"+os.Getenv("PATH"))
}

// page waits for the page that was opened and connects to it.
func (b *bench) page() *webtest.Page {
	b.Helper()
	var address string
	b.until("the page", func() bool {
		data, err := os.ReadFile(filepath.Join(b.root, "opened"))
		address = regexp.MustCompile(`http://127\.0\.0\.1:\d+/#code=[\w-]+`).FindString(string(data))
		return err == nil && address != ""
	})
	return webtest.Open(b, address, "test")
}

// acceptOn takes the only diff on the page.
func (b *bench) acceptOn(p *webtest.Page) {
	b.Helper()
	var hello struct{ Diffs []struct{ ID string } }
	p.Call("hello", map[string]any{"clientId": "test"}, &hello)
	if len(hello.Diffs) != 1 {
		b.Fatalf("%d diffs on the page", len(hello.Diffs))
	}
	p.Call("diff/accept", map[string]any{"id": hello.Diffs[0].ID}, nil)
}

// A Vim that cannot hold the text says so, and the page takes the diff.
func TestVimLatin1(t *testing.T) {
	f := vim(t)
	start := f.start
	f.start = func(t *testing.T, b *bench, files []string) []string {
		return append(start(t, b, files), "--cmd", "let g:latin = 1", "-c", "set encoding=latin1")
	}
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.browse()
	b.open("a")
	a := b.connect()
	a.OpenDiff(b.path("a"), "emoji 😀\n")
	page := b.page()
	b.ex("Pollux status")
	b.says("on the page (:Pollux page)") // and in no queue of Vim's
	b.acceptOn(page)
	b.accepted(a, "a", "emoji 😀\n")
	b.is("&diff . tabpagenr('$')", "01")
}

// A plain LSP client in both framings: context by what LSP has, diffs on the page.
func TestPlainClient(t *testing.T) {
	for _, framing := range []rpc.Framing{rpc.Headers, rpc.Lines} {
		b := newBench(t, flavour{}, map[string]string{"a.txt": "a\n"})
		b.browse()
		cmd := exec.Command(binary(), "lsp")
		cmd.Dir, cmd.Env, cmd.Stderr = b.project, b.env, os.Stderr
		in, out := child.Start(t, cmd)
		client := rpc.NewPeer(rpc.NewQueue(rpc.NewChannel(out, in, &rpc.Options{First: framing})), rpc.PeerOptions{
			Handle: func(context.Context, string, json.RawMessage) (any, error) { return nil, nil }, // null, as eglot answers
		})
		go func() { _ = client.Run(t.Context()) }()
		call := func(method string, params any) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := client.Call(ctx, method, params, nil); err != nil {
				t.Fatal(err)
			}
		}
		doc := map[string]any{"uri": "file://" + b.path("a.txt")}
		call("initialize", map[string]any{"processId": os.Getpid(), "clientInfo": map[string]any{"name": "Helix"}, "rootUri": "file://" + b.project})
		if data, err := os.ReadFile(b.file()); err != nil || !strings.Contains(string(data), `"displayName":"Helix"`) || b.pid() != os.Getpid() {
			t.Errorf("%s, %v", data, err)
		}
		client.Notify("textDocument/didOpen", map[string]any{"textDocument": doc})
		call("textDocument/documentHighlight", map[string]any{"textDocument": doc, "position": map[string]any{"line": 0, "character": 1}})
		a := b.connect()
		b.sees(a, "a.txt 1:2")
		a.OpenDiff(b.path("a.txt"), "new\n")
		b.acceptOn(b.page())
		b.accepted(a, "a.txt", "new\n")
		in.Close() // without shutdown
		watch := pace.Start(t)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		if took := watch.Took(); took > pace.Slack*time.Second || len(b.files()) != 0 {
			t.Errorf("the end took %v and left %v", took, b.files())
		}
	}
}
