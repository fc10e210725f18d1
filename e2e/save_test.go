package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/e2e/browser"
	"github.com/pollux-companion/pollux/internal/agent/claude"
)

// saving connects as Claude Code does, by a process of its own: this one is the user. save calls saveDocument and returns the answer.
func (b *bench) saving() (save func(name string) string, end func()) {
	b.t.Helper()
	var lock struct{ AuthToken string }
	var port int
	b.until("Claude Code's lock", func() bool {
		locks, _ := filepath.Glob(filepath.Join(b.home.Dir, ".claude", "ide", "*.lock"))
		if len(locks) != 1 {
			return false
		}
		port, _ = strconv.Atoi(strings.TrimSuffix(filepath.Base(locks[0]), ".lock"))
		data, err := os.ReadFile(locks[0])
		return err == nil && json.Unmarshal(data, &lock) == nil
	})
	conn, _, err := websocket.Dial(b.t.Context(), fmt.Sprintf("ws://127.0.0.1:%d/", port), &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: agent.Apart(b.t, port)}, HTTPHeader: http.Header{claude.TokenHeader: {lock.AuthToken}}, Subprotocols: []string{"mcp"},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	send := func(message string) {
		b.t.Helper()
		if err := conn.Write(b.t.Context(), websocket.MessageText, []byte(message)); err != nil {
			b.t.Fatal(err)
		}
	}
	send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"claude-code","version":"1"}}}`)
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	asked := 0
	return func(name string) string {
		b.t.Helper()
		asked++
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"saveDocument","arguments":{"filePath":%q}}}`, asked, b.path(name)))
		ctx, cancel := context.WithTimeout(b.t.Context(), second(60))
		defer cancel()
		for {
			_, data, err := conn.Read(ctx)
			if err != nil {
				b.t.Fatal(err)
			}
			var m struct{ ID *int }
			if json.Unmarshal(data, &m) == nil && m.ID != nil && *m.ID == asked {
				return string(data)
			}
		}
	}, func() { _ = conn.Close(websocket.StatusNormalClosure, "") }
}

// savesFor plays what an agent's saveDocument does to a file that the user has open and changes by typing (SPEC CC-17). dirty and clean wait for
// the editor's mark of unsaved changes.
func (b *bench) savesFor(name string, typed func(text string), dirty, clean func()) {
	b.t.Helper()
	save, end := b.saving()
	defer end()
	is := func(want string, parts ...string) {
		b.t.Helper()
		got := save(name)
		for _, part := range append(parts, `\"saved\":`+want) {
			if !strings.Contains(got, part) {
				b.t.Errorf("saveDocument says %s, without %s", got, part)
			}
		}
	}
	b.until("the file is known to be open", func() bool { return !strings.Contains(save(name), "not open") })
	is("true")
	typed("mine ")
	dirty()
	is("true")
	clean()
	saved := b.read(name)
	if !strings.HasPrefix(saved, "mine ") {
		b.t.Errorf("the file holds %q", saved)
	}
	typed("more ")
	dirty()
	b.write(name, "the text of others\n")
	is("false", "changed on disk")
	dirty()
	if got := b.read(name); got != "the text of others\n" {
		b.t.Errorf("what others wrote is gone: %q", got)
	}
}

// TestPageSaves: an agent has the page save, but never over what others have written.
func TestPageSaves(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "one\n", "b.txt": "two\n"})
	b.usesClaude()
	d := b.desk(b.serve())
	d.open("a.txt")
	d.open("b.txt") // a file behind another is saved as well
	b.savesFor("a.txt", func(text string) {
		d.Click(d.tab("a.txt"))
		d.cursor(1, 1, 0)
		d.Type(text)
		d.Click(d.tab("b.txt"))
	}, func() { d.Wait(d.tab("a.txt") + ".dirty") }, func() { d.Gone(d.tab("a.txt") + ".dirty") })
	d.Click(d.tab("a.txt"))
	d.WaitText("#conflict", "has changed on disk")
	d.WaitText(browser.ID("editor-content"), "more mine one")
}
