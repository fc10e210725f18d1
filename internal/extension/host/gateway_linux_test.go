package host

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pollux-companion/pollux/internal/extension/capability"
)

// SPEC P-3: the gateway runs every tool in one call. A tool that the model asks about is listed from then on, before
// the answer.
func TestGateway(t *testing.T) {
	w := newWorld(t, nil)
	w.options.Gateway = func(*capability.Set) bool { return true }
	w.options.Pinned = func() []string { return []string{"ext3"} }
	w.options.Lately = func() []string { return []string{"ext4.tool4", "gone.tool"} }
	for i := range 6 {
		name := fmt.Sprintf("ext%d", i)
		w.extension(name, map[string]string{fmt.Sprintf("tool%d", i): echo})
		w.allow(name)
	}
	c := w.serve()
	c.hello()
	if got, want := c.tools(1), "describe_extension read_doc run_extension_tool tool3 tool4"; got != want {
		t.Errorf("tools %q, want %q", got, want)
	}
	c.call(2, "run_extension_tool", `{"name":"tool1","arguments":{"a":"b"}}`)
	if got := text(t, c.answer(2)); !strings.Contains(got, "got --a b") {
		t.Errorf("by the gateway %s", got)
	}
	c.call(3, "run_extension_tool", `{"name":"ext2.tool2","arguments":"{\"a\":\"c\"}"}`)
	if got := text(t, c.answer(3)); !strings.Contains(got, "got --a c") {
		t.Errorf("with arguments as a text %s", got)
	}
	for i, bad := range []string{`{"name":"read_doc","arguments":{"name":"x"}}`, `{"name":"run_extension_tool","arguments":{}}`, `{"arguments":{}}`, `{"name":"tool9"}`, `{"name":"tool1","arguments":{"b":1}}`} {
		c.call(10+i, "run_extension_tool", bad)
		if a := c.answer(10 + i); !a.Result.IsError {
			t.Errorf("%s: %+v", bad, a.Result)
		}
	}
	c.call(4, "describe_extension", `{"name":"ext5"}`)
	id := 100
	c.await("the described tool", func() bool { id++; return strings.Contains(c.tools(id), "tool5") })
	c.call(6, "tool0", `{"a":"d"}`)
	if got := text(t, c.answer(6)); !strings.Contains(got, "got --a d") {
		t.Errorf("one that is not listed: %s", got)
	}
}

// A client that does not list the tools after a change is waited for once, until it lists them again.
func TestDeafClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		took := func() time.Duration {
			begun := time.Now()
			h.awaitList(t.Context())
			return time.Since(begun)
		}
		if d := took(); d != listWait {
			t.Errorf("the first wait took %v", d)
		}
		if d := took(); d != 0 {
			t.Errorf("the second took %v", d)
		}
		list := h.observe(func(context.Context, string, mcp.Request) (mcp.Result, error) { return nil, nil })
		if _, err := list(t.Context(), "tools/list", nil); err != nil {
			t.Fatal(err)
		}
		if d := took(); d != listPause {
			t.Errorf("after it listed the tools the wait took %v", d)
		}
		h.edited.Store(h.lists.Load())
		if d := took(); d != listWait {
			t.Errorf("after another change it took %v", d)
		}
	})
}
