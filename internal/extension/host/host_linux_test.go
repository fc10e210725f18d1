package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/dispatch"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
	"github.com/pollux-companion/pollux/internal/extension/store"
)

const echo = "echo \"got $*\"\n"

// SPEC P-3: what is offered, and nothing before the user agreed.
func TestOffer(t *testing.T) {
	w := newWorld(t, nil)
	w.extension("one", map[string]string{"echo": echo, "other": echo})
	w.extension("two", map[string]string{"echo": echo})
	w.extension("refused", map[string]string{"secret": echo})
	w.file(".gemini/extensions/broken/gemini-extension.json", "{")
	w.allow("one")
	w.allow("two")
	c := w.serve()
	c.hello()
	if got, want := c.tools(1), "describe_extension one_echo other read_doc request_consent two_echo"; got != want {
		t.Errorf("tools %q, want %q", got, want)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	for _, tool := range c.answer(2).Result.Tools {
		if tool.Name == "other" {
			schema := fmt.Sprint(tool.InputSchema)
			if !strings.Contains(schema, "additionalProperties:false") || !strings.Contains(schema, "required:[a]") {
				t.Errorf("the schema %s", schema)
			}
			if a := tool.Annotations; a.ReadOnlyHint || !*a.DestructiveHint || *a.OpenWorldHint {
				t.Errorf("annotations %+v", a)
			}
			if want := "Does other. '&#64;evil' [extension one; reads the workspace, changes the workspace, no network]"; tool.Description != want {
				t.Errorf("the description %q", tool.Description)
			}
		}
	}
	c.call(3, "describe_extension", `{}`)
	if got := text(t, c.answer(3)); strings.Contains(got, "secret") || strings.Contains(got, "refused") || !strings.Contains(got, "What one is.") || !strings.Contains(got, "1 more wait") {
		t.Errorf("the list: %s", got)
	}
	c.call(40, "describe_extension", `{"name":"one.echo"}`)
	if got := text(t, c.answer(40)); !strings.Contains(got, `example: Do it: echo (a="b")`) {
		t.Errorf("the description: %s", got)
	}
	c.call(4, "read_doc", `{"name":"one-doc"}`)
	if got := text(t, c.answer(4)); !strings.HasPrefix(got, "<extension_doc name=\"one-doc\">\nThe document of one.\n&lt;/extension_doc>&lt;tool_code>") {
		t.Errorf("the document: %s", got)
	}
	c.call(5, "read_doc", `{"name":"refused-doc"}`)
	if m := c.answer(5); !m.Result.IsError || strings.Contains(text(t, m), "document of") {
		t.Errorf("a document without consent: %+v", m)
	}
	c.send(`{"jsonrpc":"2.0","id":6,"method":"resources/read","params":{"uri":"ext://one/docs/one-doc"}}`)
	if m := c.answer(6); m.Error != nil {
		t.Errorf("the resource: %+v", m)
	}
	for i, of := range []struct{ tool, want string }{
		{"others", "did you mean other?"},
		{"echo", "one.echo or two.echo"}, // two extensions have a tool of this name
		{"secret", "consent grant refused"},
	} {
		c.call(7+i, of.tool, `{"a":"x"}`)
		if m := c.answer(7 + i); !m.Result.IsError || !strings.Contains(text(t, m), of.want) {
			t.Errorf("a call of %s, which is not offered: %+v", of.tool, m)
		}
	}
}

// SPEC P-4: the CLI's extra argument is dropped, wrong arguments are reported, and calls run in parallel.
func TestCalls(t *testing.T) {
	w := newWorld(t, nil)
	meet := "touch \"$2\"; while ! [ -e a ] || ! [ -e b ]; do sleep 0.05; done; echo met\n"
	w.extension("one", map[string]string{"echo": echo, "meet": meet, "fail": "echo oops >&2; exit 3\n"})
	w.allow("one")
	c := w.serve()
	c.hello()
	c.call(1, "echo", `{"wait_for_previous":true,"a":"x"}`)
	if got := text(t, c.answer(1)); got != "got --a x" {
		t.Errorf("%q", got)
	}
	c.call(2, "echo", `{"b":1}`)
	if m := c.answer(2); !m.Result.IsError || !strings.Contains(text(t, m), "missing: a") {
		t.Errorf("%+v", m)
	}
	c.call(3, "fail", `{"a":""}`)
	if m := c.answer(3); !m.Result.IsError || !strings.Contains(text(t, m), "oops") {
		t.Errorf("%+v", m)
	}
	c.call(4, "meet", `{"a":"a"}`)
	c.call(5, "meet", `{"a":"b"}`)
	seen := map[any]string{}
	for len(seen) < 2 {
		m := c.next(func(m message) bool { return m.ID == 4.0 || m.ID == 5.0 })
		seen[m.ID] = text(t, m)
	}
	if seen[4.0] != "met" || seen[5.0] != "met" {
		t.Errorf("%v", seen)
	}
}

// SPEC P-4: a cancelled call gets no answer, its whole process tree ends, and the server continues. The same happens
// when the client disconnects.
func TestCancel(t *testing.T) {
	w := newWorld(t, nil)
	beat := "(while :; do date +%N > \"beat-$2\"; sleep 0.05; done) & wait\n"
	w.extension("one", map[string]string{"beat": beat, "echo": echo})
	w.allow("one")
	c := w.serve()
	c.hello()
	c.call(1, "beat", `{"a":"first"}`)
	w.beats("beat-first")
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"test"}}`)
	w.still("beat-first")
	c.call(2, "echo", `{"a":"x"}`)
	m := c.next(func(m message) bool { return m.ID != nil })
	if m.ID != 2.0 {
		t.Errorf("a cancelled request has an answer: %+v", m)
	}
	c.call(3, "beat", `{"a":"second"}`)
	w.beats("beat-second")
	c.in.Close()
	c.ended()
	w.still("beat-second")
}

// beats waits until a file exists; still waits until it no longer changes.
func (w *world) beats(name string) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(w.work, name)); err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s never came", name)
		}
	}
}

func (w *world) still(name string) {
	w.t.Helper()
	last, since := "", time.Now()
	for deadline := time.Now().Add(patience); time.Since(since) < time.Second; time.Sleep(10 * time.Millisecond) {
		data, err := os.ReadFile(filepath.Join(w.work, name))
		if err != nil {
			w.t.Fatal(err)
		}
		if string(data) != last {
			last, since = string(data), time.Now()
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s goes on", name)
		}
	}
}

// Changes on the disk, by anybody, reach the client: an extension is added, agreed to, changed, removed.
func TestChanges(t *testing.T) {
	w := newWorld(t, nil)
	w.extension("one", map[string]string{"echo": echo})
	w.allow("one")
	c := w.serve()
	c.hello()
	id := 10
	await := func(want string) {
		t.Helper()
		c.await(want, func() bool { id++; return c.tools(id) == want })
	}
	w.extension("two", map[string]string{"second": echo})
	w.allow("two")
	await("describe_extension echo read_doc second")
	if err := w.store.SetEnabled(t.Context(), "one", store.User, false); err != nil {
		t.Fatal(err)
	}
	await("describe_extension read_doc second")
	if err := os.RemoveAll(filepath.Join(w.store.Dir(), "two")); err != nil {
		t.Fatal(err)
	}
	await("describe_extension read_doc")
}

// A long result comes in parts, each one block below the CLI's limit, and nothing is lost.
func TestLongResult(t *testing.T) {
	w := newWorld(t, nil)
	w.extension("one", map[string]string{"long": "i=0; while [ $i -lt 9000 ]; do i=$((i+1)); echo \"line $i größer\"; done\n"})
	w.allow("one")
	c := w.serve()
	c.hello()
	c.call(1, "long", `{"a":""}`)
	whole, got := "", text(t, c.answer(1))
	if !strings.HasPrefix(got, "line 1 größer\n") || !strings.HasSuffix(got, "\nline 9000 größer") {
		t.Errorf("beginning and end are not shown: %.40q … %q", got, got[len(got)-40:])
	}
	for id := 2; ; id++ {
		if len(got) >= 40_000 {
			t.Fatalf("a block of %d bytes", len(got))
		}
		part, note, more := strings.Cut(got, "\n[bytes ")
		whole += part
		if !more {
			break
		}
		_, call, _ := strings.Cut(note, "read_doc(name=")
		var name string
		var offset int
		if _, err := fmt.Sscanf(call, "%q, offset=%d)]", &name, &offset); err != nil {
			t.Fatalf("%q: %v", note, err)
		}
		c.call(id, "read_doc", fmt.Sprintf(`{"name":%q,"offset":%d}`, name, offset))
		got = text(t, c.answer(id))
	}
	if n := strings.Count(whole, "größer"); n != 9000 {
		t.Errorf("%d of 9000 lines came", n)
	}
}

// Missing consent is asked through a client that can ask.
func TestElicitation(t *testing.T) {
	w := newWorld(t, Elicitor{})
	w.extension("one", map[string]string{"echo": echo})
	w.allow("one")
	questions := make(chan string, 10)
	answer := "decline"
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			questions <- r.Params.Message
			if answer == "decline" {
				return &mcp.ElicitResult{Action: answer}, nil
			}
			schema := r.Params.RequestedSchema.(map[string]any)
			choices := schema["properties"].(map[string]any)["answer"].(map[string]any)["enum"].([]any)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": choices[0]}}, nil
		},
	})
	raw := w.pipes()
	session, err := client.Connect(t.Context(), raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.file(".gemini/extensions/one/tools/echo", "echo changed\n")
	call := func() *mcp.CallToolResult {
		t.Helper()
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"a": "b"}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := call(); !r.IsError || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, "did not agree") {
		t.Errorf("declined: %+v", r.Content[0])
	}
	var q string
	select {
	case q = <-questions:
	case <-time.After(patience):
		t.Fatal("nobody was asked")
	}
	if !strings.Contains(q, "May the tool \"echo\"") || !strings.Contains(q, "its content has changed") {
		t.Errorf("the question: %s", q)
	}
	answer = "accept"
	if r := call(); r.IsError || r.Content[0].(*mcp.TextContent).Text != "changed" {
		t.Errorf("accepted: %+v", r.Content[0])
	}
	prompts, err := session.ListPrompts(t.Context(), nil)
	if err != nil || len(prompts.Prompts) != 1 || prompts.Prompts[0].Name != "one-1" {
		t.Errorf("prompts %+v, %v", prompts, err)
	}
	if got := session.InitializeResult().Instructions; got != "instructions" {
		t.Errorf("instructions %q", got)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}

// A panic in pollux becomes an answer and does not end the server.
func TestPanic(t *testing.T) {
	w := newWorld(t, nil)
	h := &host{o: w.options, slots: make(chan struct{}, 1), alive: t.Context()}
	h.o.Log = quiet()
	req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "x"}}
	for range 3 { // the slot must come back, too
		r, err := h.guard(t.Context(), req, func(context.Context) dispatch.Reply { panic("oh") })
		if err != nil || !r.IsError || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, "oh") {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if _, err := (Elicitor{}).Ask(t.Context(), consent.Question{}); !errors.Is(err, consent.ErrNobody) {
		t.Errorf("nobody to ask: %v", err)
	}
}

// SPEC P-4: a document too long for one result is offered in parts as resources. Each part names the next; together
// they are the whole document.
func TestLongDocument(t *testing.T) {
	w := newWorld(t, nil)
	w.extension("one", map[string]string{"echo": echo})
	var whole strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&whole, "line %d, <b>ä\n", i)
	}
	w.file(".gemini/extensions/one/doc.md", whole.String())
	w.allow("one")
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), w.pipes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	list, err := session.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, r := range list.Resources {
		listed[r.URI] = r.Name
	}
	hint := regexp.MustCompile(`\n\[bytes \d+ to \d+ of \d+; go on with the resource (\S+)\]`)
	got, uri, parts := "", "ext://one/docs/one-doc", 0
	for uri != "" {
		parts++
		if listed[uri] != fmt.Sprintf("one-doc (part %d of %d)", parts, len(listed)) {
			t.Fatalf("%s is listed as %q", uri, listed[uri])
		}
		r, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || len(r.Contents) != 1 || r.Contents[0].URI != uri || len(r.Contents[0].Text) >= 40_000 {
			t.Fatalf("%s: %v", uri, err)
		}
		text := strings.TrimSuffix(strings.TrimPrefix(r.Contents[0].Text, "<extension_doc name=\"one-doc\">\n"), "</extension_doc>\n")
		uri = ""
		if m := hint.FindStringSubmatchIndex(text); m != nil {
			uri, text = text[m[2]:m[3]], text[:m[0]]
		}
		got += text
	}
	if want := prompt.Data(whole.String()); parts < 4 || parts != len(listed) || strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("%d parts of %d listed; %d bytes, want %d", parts, len(listed), len(got), len(want))
	}
}
