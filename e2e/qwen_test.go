package e2e

import (
	"slices"
	"testing"

	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
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
