package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
	"github.com/pollux-companion/pollux/internal/peers"
)

// needQwen takes a place among the tests that run CLIs, until the test ends.
func needQwen(t *testing.T) {
	t.Helper()
	for _, p := range []peers.Peer{peers.Qwen, peers.Node, peers.Tmux} {
		peers.Need(t, p)
	}
	t.Parallel()
	heavy <- struct{}{}
	t.Cleanup(func() { <-heavy })
}

// qwen starts Qwen Code in a folder of the project ("" is its root).
func (b *bench) qwen(sub string, env ...string) *cli.Session {
	b.t.Helper()
	return cli.StartQwen(b.t, b.home, b.path(sub), env...)
}

// Without any companion the published Qwen Code works with the scripted model: it answers, and changes a file after a
// question in the terminal.
func TestQwenAlone(t *testing.T) {
	needQwen(t)
	b := newBench(t, map[string]string{"a.txt": "old\n"})
	s := b.qwen("")
	s.Ask("say something", model.Text("A word from the script."))
	s.Wait("A word from the script.", second(60))
	from := len(s.Model.Requests())
	s.Ask("change it", model.ReadFile(b.path("a.txt")), model.WriteFile(b.path("a.txt"), "new\n"))
	s.Question()
	s.Keys("Enter")
	b.holds("a.txt", "new\n")
	b.wrote(s, from)
}

// wrote waits until the model has heard, since its first n requests, what became of one write, and returns it.
// Qwen Code refuses to overwrite a file that the model has not read before.
func (b *bench) wrote(s *cli.Session, n int) model.FunctionResponse {
	b.t.Helper()
	all := s.Model.Wait(b.t, n, second(90), func(r *model.Request) bool {
		return slices.ContainsFunc(r.Results(), func(f model.FunctionResponse) bool { return f.Name == "write_file" })
	}).Results()
	if len(all) != 1 {
		b.t.Fatalf("the model got %d results, want 1: %v", len(all), all)
	}
	return all[0]
}

// serveQwen is a companion of a home in which Qwen Code has been used, and a user on its page.
func (b *bench) serveQwen() (*companion, *pageDriver) {
	b.t.Helper()
	b.home.Qwen(b.t)
	c := b.serve()
	return c, &pageDriver{page: webtest.Open(b.t, c.Page, "qwen")}
}

// shown waits until a proposal stands on the page, and returns its id.
func (d *pageDriver) shown(b *bench) (id string) {
	b.t.Helper()
	b.until("a proposal on the page", func() bool {
		ids := d.diffs()
		if len(ids) == 1 {
			id = ids[0]
		}
		return len(ids) == 1
	})
	return id
}

// overwrite has the model read a file and propose another text for it.
func (b *bench) overwrite(name, text string) []model.Turn {
	return []model.Turn{model.ReadFile(b.path(name)), model.WriteFile(b.path(name), text)}
}

// SPEC: the published Qwen Code finds the companion, its model hears what the user looks at, and each way
// in which a proposal can end has its effect. The folder's name is one that Gemini CLI's list of folders would not survive.
func TestQwen(t *testing.T) {
	needQwen(t)
	b := newBenchAt(t, "100% of a:b ü", map[string]string{"a.txt": "old\n", "b.txt": "one\ntwo\n", "crlf.txt": "eins\r\nzwei\r\n"})
	_, user := b.serveQwen()
	s := b.qwen("")
	connected(s)

	b.step("context", func() {
		if err := user.report(state.Report{
			Active: b.path("b.txt"), Open: []string{b.path("b.txt"), b.path("a.txt")}, Cursor: &state.Position{Line: 1, Character: 3},
			Selections: []state.Selection{{Start: state.Position{Line: 1}, End: state.Position{Line: 1, Character: 3}, Text: "two"}},
		}); err != nil {
			t.Fatal(err)
		}
		b.told("the selection", func(context string) bool { return strings.Contains(context, "two") })
		order(t, s.Ask("look").ContextText(), "Path: "+b.path("b.txt"), "line 2, character 4", "two", b.path("a.txt"))
	})
	b.step("accept", func() {
		from := len(s.Model.Requests())
		s.Ask("change it", b.overwrite("a.txt", "new\n")...)
		user.act(b, "diff/accept", nil)
		b.holds("a.txt", "new\n")
		b.wrote(s, from)
	})
	b.step("edit and accept", func() {
		from := len(s.Model.Requests())
		s.Ask("change it again", b.overwrite("a.txt", "newer\n")...)
		text := "neu 🎈\n"
		user.act(b, "diff/accept", &text)
		b.holds("a.txt", text)
		if r := b.wrote(s, from); !strings.Contains(r.Response.Output, "neu 🎈") {
			t.Errorf("the model does not hear of the edit: %+v", r)
		}
	})
	b.step("reject", func() {
		s.Ask("now something unwanted", b.overwrite("a.txt", "bad\n")...)
		user.act(b, "diff/reject", nil)
		s.Idle()
		b.stays("a.txt", "neu 🎈\n")
	})
	b.step("two proposals", func() {
		s.Ask("change two files", model.Turn{Calls: append(model.ReadFile(b.path("a.txt")).Calls, model.ReadFile(b.path("b.txt")).Calls...)},
			model.Turn{Calls: append(model.WriteFile(b.path("a.txt"), "first\n").Calls, model.WriteFile(b.path("b.txt"), "second\n").Calls...)})
		user.act(b, "diff/accept", nil)
		user.act(b, "diff/accept", nil) // the second one comes after the first; both are written after that
		b.holds("a.txt", "first\n")
		b.holds("b.txt", "second\n")
	})
	b.step("a file with CRLF", func() {
		s.Ask("change the file of DOS", model.ReadFile(b.path("crlf.txt")), model.Turn{Calls: []model.Call{{
			Name: "edit", Args: map[string]any{"file_path": b.path("crlf.txt"), "old_string": "zwei", "new_string": "2"},
		}}})
		user.act(b, "diff/accept", nil)
		b.holds("crlf.txt", "eins\r\n2\r\n")
		s.Idle()
	})
	b.step("answered in the terminal", func() {
		from := len(s.Model.Requests())
		s.Ask("once more", b.overwrite("a.txt", "as proposed\n")...)
		id := user.shown(b)
		if err := user.page.Try("diff/edit", map[string]any{"id": id, "text": "edited\n"}, nil); err != nil {
			t.Error(err)
		}
		s.Question()
		s.Keys("Enter")
		b.holds("a.txt", "as proposed\n") // edits do not count here
		b.wrote(s, from)
		b.until("no proposal on the page", func() bool { return len(user.diffs()) == 0 })
	})
}

// act waits for a proposal and decides about it. A nil text accepts it as it is.
func (d *pageDriver) act(b *bench, method string, text *string) {
	b.t.Helper()
	id := d.shown(b)
	params := map[string]any{"id": id}
	if err := d.page.Try("diff/read", params, nil); err != nil { // nothing is accepted unseen
		b.t.Fatal(err)
	}
	if text != nil {
		params["text"] = *text
	}
	if err := d.page.Try(method, params, nil); err != nil {
		b.t.Fatal(err)
	}
	b.until("the proposal is off the page", func() bool { return !slices.Contains(d.diffs(), id) })
}

// stays fails when a file of the project does not hold that content.
func (b *bench) stays(name, content string) {
	b.t.Helper()
	if got := b.read(name); got != content {
		b.t.Errorf("%s holds %q, want %q", name, got, content)
	}
}

// SPEC: a companion that is killed and comes back is the same one to Qwen Code, and the open proposal stands there again.
// A companion that stops in order takes its lock away.
func TestQwenSurvives(t *testing.T) {
	needQwen(t)
	defer tells(t, "killed and back")
	b := newBench(t, map[string]string{"a.txt": "old\n"})
	c, user := b.serveQwen()
	s := b.qwen("")
	connected(s)
	s.Ask("change it", b.overwrite("a.txt", "new\n")...)
	user.shown(b)
	c.end(syscall.SIGKILL)
	again := b.serve()
	user = &pageDriver{page: webtest.Open(t, again.Page, "qwen")}
	user.act(b, "diff/accept", nil)
	b.holds("a.txt", "new\n")
	connected(s)
	locks := filepath.Join(b.home.Dir, ".qwen", "ide", "*.lock")
	if found, err := filepath.Glob(locks); err != nil || len(found) != 1 {
		t.Errorf("the locks are %q, %v", found, err)
	}
	again.end(syscall.SIGTERM)
	if found, err := filepath.Glob(locks); err != nil || len(found) != 0 {
		t.Errorf("locks are left: %q, %v", found, err)
	}
}

// One companion serves Gemini CLI and Qwen Code at once: each proposal carries its agent's name, and each agent hears of its own.
func TestQwenAndGemini(t *testing.T) {
	needCLI(t)
	peers.Need(t, peers.Qwen)
	b := newBench(t, map[string]string{"a.txt": "old\n", "b.txt": "old\n"})
	_, user := b.serveQwen()
	gemini, qwen := b.gemini(""), b.qwen("")
	connected(gemini)
	connected(qwen)
	qwen.Ask("change a", b.overwrite("a.txt", "by qwen\n")...)
	user.owned(b, "Qwen Code")
	gemini.Ask("change b", model.WriteFile("b.txt", "by gemini\n"))
	b.until("both proposals", func() bool { return len(user.diffs()) == 2 })
	for _, id := range user.diffs() {
		if err := user.page.Try("diff/accept", map[string]any{"id": id}, nil); err != nil {
			t.Error(err)
		}
	}
	b.holds("a.txt", "by qwen\n")
	b.holds("b.txt", "by gemini\n")
}

// owned waits for a proposal whose owner's name begins so.
func (d *pageDriver) owned(b *bench, label string) {
	b.t.Helper()
	b.until("a proposal of "+label, func() bool {
		var hello struct{ Diffs []struct{ Owner string } }
		return d.page.Try("hello", map[string]any{"clientId": "qwen"}, &hello) == nil && len(hello.Diffs) == 1 && strings.HasPrefix(hello.Diffs[0].Owner, label)
	})
}

// SPEC Q-8: Qwen Code is started before any companion. With the relay's lock it is connected all the same, and finds the
// companion that comes later. Its model decides nothing there, nor by a companion of its own (SPEC §11.1).
func TestQwenRelay(t *testing.T) {
	needQwen(t)
	b := newQwenScene(t)
	b.pollux("setup", "qwen", "--relay")
	s := b.qwen("")
	connected(s)
	c, user := b.serveQwen()
	b.until("the relay at the companion", func() bool {
		var all []struct{ Sessions int }
		_ = json.Unmarshal([]byte(b.pollux("status", "--json")), &all)
		return slices.ContainsFunc(all, func(one struct{ Sessions int }) bool { return one.Sessions == 1 })
	})
	from := len(s.Model.Requests())
	s.Ask("change it", b.overwrite("a.txt", "new\n")...)
	user.owned(b, "Qwen Code")
	user.act(b, "diff/accept", nil)
	b.holds("a.txt", "new\n")
	b.wrote(s, from)
	b.tries(s, "first") // SPEC §11.1: the relay's process is none of the model's
	c.end(syscall.SIGKILL)
	c = b.serve()
	b.tries(s, "again")
	b.servesNothing(c, func(command string) { s.Ask("serve", shell(command)) })
	b.pollux("setup", "qwen", "--undo")
	if _, err := os.Stat(filepath.Join(b.home.Dir, ".qwen", "ide", "0.lock")); err == nil {
		t.Error("the relay's lock is left")
	}
}

// newQwenScene is newScene for Qwen Code.
func newQwenScene(t *testing.T) *bench {
	t.Helper()
	b := newScene(t)
	b.home.Qwen(t)
	b.write(".qwen/settings.json", `{"permissions": {"allow": ["Bash", "run_shell_command"]}, "tools": {"allowed": ["run_shell_command"]}}`)
	return b
}

// SPEC §11.1, Q-9: the model of Qwen Code cannot decide about its own changes from its shell, whatever it does to its marks: cut off from
// its parents, or after a restart. The person beside it can, also while a keeper holds the CLI.
func TestQwenModelDecidesNothing(t *testing.T) {
	needQwen(t)
	b := newQwenScene(t)
	b.keeping()
	c := b.serve()
	s := b.qwen("")
	connected(s)
	tm := b.reviewer(120, 40)
	b.tries(s, "first")

	s.Ask("work behind", shell("sh behind.sh"))
	s.Idle()
	s.Ask("change it", b.overwrite("a.txt", "new\n")...)
	tm.Wait("+1 −1 · hunk 1/1", second(60))
	b.gotNothing("orphan")
	b.stays("a.txt", "old\n")
	b.accepts(tm, "a.txt", "new\n")

	c.end(syscall.SIGKILL)
	c = b.serve()
	b.tries(s, "again")
	s.Ask("change it again", b.overwrite("a.txt", "newer\n")...)
	b.accepts(tm, "a.txt", "newer\n")
	s.Idle()
	b.keptFor(c)
	s.Ask("change it without an editor", b.overwrite("a.txt", "newest\n")...)
	b.accepts(tm, "a.txt", "newest\n")
}
