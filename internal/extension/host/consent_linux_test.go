package host

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/pollux-companion/pollux/internal/extension/capability"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
)

// A person answers questions by the extension's name. For other extensions, or when no answers are left, nobody is
// there.
type person struct {
	mu      sync.Mutex
	answers map[string]consent.Answer
	asked   []string
}

func (p *person) Ask(_ context.Context, q consent.Question) (consent.Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, q.Extension)
	answer, ok := p.answers[q.Extension]
	if !ok {
		return "", consent.ErrNobody
	}
	return answer, nil
}

func (p *person) will(extension string, a consent.Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[extension] = a
}

func (p *person) heard() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.asked = nil }()
	return strings.Join(p.asked, " ")
}

// SPEC P-3, S-2: a model learns that something waits, makes pollux ask the user, and gets only the allowed tools, in
// time for its next turn. It does not learn even the names of the rest.
func TestRequestConsent(t *testing.T) {
	user := &person{answers: map[string]consent.Answer{}}
	w := newWorld(t, user)
	w.extension("aaa", map[string]string{"first": echo})
	w.extension("bbb", map[string]string{"second": echo})
	w.extension("ccc", map[string]string{"third": echo})
	c := w.serve()
	c.hello()
	if got := c.tools(1); got != "describe_extension read_doc request_consent" {
		t.Errorf("tools %s", got)
	}
	id := 1
	ask := func(args string) message {
		t.Helper()
		id++
		c.call(id, capability.AskUser, args)
		// The tools come with a change notice, and the answer waits until the client has listed them.
		m := c.next(func(m message) bool { return m.ID == float64(id) || m.Method == "notifications/tools/list_changed" })
		if m.Method != "" {
			id++
			c.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, id)
			m = c.answer(id - 1)
		}
		return m
	}
	refused := func(m message, want, asked string) {
		t.Helper()
		got := text(t, m)
		if !m.Result.IsError || !strings.Contains(got, want) || strings.Contains(got, "aaa") || strings.Contains(got, "bbb") || strings.Contains(got, "ccc") {
			t.Errorf("%+v, want %q", m.Result, want)
		}
		if got := user.heard(); got != asked {
			t.Errorf("asked about %q, want %q", got, asked)
		}
	}
	refused(ask(`{}`), "nobody can be asked from here", "aaa")
	user.will("aaa", "")
	refused(ask(`{}`), "did not agree", "aaa") // "not now" ends the questions
	user.will("bbb", consent.Never)
	user.will("ccc", "")
	refused(ask(`{}`), "did not agree", "bbb ccc")
	refused(ask(`{}`), "has been asked in this session", "")

	user.will("aaa", consent.Always)
	m := ask(`{"name":"AAA"}`)
	if got := text(t, m); m.Result.IsError || !strings.Contains(got, "tool first(a: string)") || strings.Contains(got, "ccc") {
		t.Errorf("after a yes: %+v", m.Result)
	}
	if got := c.tools(100); got != "describe_extension first read_doc request_consent" {
		t.Errorf("tools %s", got)
	}
	if got := user.heard(); got != "aaa" {
		t.Errorf("asked about %q", got)
	}
	c.call(101, "first", `{"a":"x"}`)
	if got := text(t, c.answer(101)); got != "got --a x" {
		t.Errorf("the tool: %q", got)
	}
	for i, of := range []struct{ args, want string }{
		{`{"name":"aaa"}`, "agreed to it already"}, {`{"name":"nothing"}`, "no extension \"nothing\" is installed and waits"}, {`{"nam":"x"}`, "takes name"},
	} {
		c.call(110+i, capability.AskUser, of.args)
		if got := text(t, c.answer(110+i)); !strings.Contains(got, of.want) {
			t.Errorf("%s: %s", of.args, got)
		}
	}
}

// What the client was not told at the start stays in the description of a tool while it applies.
func TestNews(t *testing.T) {
	w := newWorld(t, nil)
	w.extension("one", map[string]string{"echo": echo})
	w.extension("late", map[string]string{"second": echo})
	w.allow("one")
	var told *prompt.Told
	w.options.News = func(set *capability.Set) string {
		if told == nil {
			told = prompt.NewTold(set, prompt.Summarize(set, &prompt.SummaryOptions{Style: prompt.Gemini("pollux")}).Text, prompt.Gemini("pollux"))
		}
		return told.News(set, prompt.Gemini("pollux"))
	}
	c := w.serve()
	c.hello()
	id := 0
	described := func() string {
		t.Helper()
		id++
		c.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, id)
		for _, tool := range c.answer(id).Result.Tools {
			if tool.Name == capability.Describe {
				_, news, _ := strings.Cut(tool.Description, "all extensions, tools and documents.")
				return news
			}
		}
		t.Fatal("it is not there")
		return ""
	}
	await := func(wants ...string) {
		t.Helper()
		c.await(strings.Join(wants, ", "), func() bool {
			got, ok := described(), true
			for _, want := range wants {
				ok = ok && strings.Contains(got, want) && (want != "" || got == "")
			}
			return ok
		})
	}
	if got := described(); got != "" {
		t.Errorf("news at the start: %q", got)
	}
	w.allow("late")
	await("here as well", "- **late**: What late is.", "`mcp_pollux_second(a: string)`", "`late-doc`")
	if err := w.store.SetEnabled(t.Context(), "one", "user", false); err != nil {
		t.Fatal(err)
	}
	await("- **late**", "Not here, or not any more: one.")
}
