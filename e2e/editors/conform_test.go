package editors

import (
	"fmt"
	"os"
	"testing"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/conform"
)

// The companion that Neovim has, with its real diff views, against the whole contract as far as the wire shows it.
func TestNeovimConforms(t *testing.T) {
	b := newBench(t, neovim(t), map[string]string{"a": "a\n"})
	b.open("a")
	data, err := os.ReadFile(b.file())
	if err != nil {
		t.Fatal(err)
	}
	f, err := discovery.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	all, err := conform.Run(t.Context(), conform.Target{
		Addr: fmt.Sprintf("127.0.0.1:%d", f.Port), Token: f.Token, Dir: b.project, File: b.file(), Wait: patience,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tally := map[conform.Result]int{}
	for _, c := range all {
		tally[c.Result]++
		if c.Result == conform.Fail {
			t.Errorf("%s: %s\n%s", c.Name, c.About, c.Evidence)
		}
	}
	t.Logf("%d checks: %v", len(all), tally)
	if tally[conform.Pass] < 150 {
		t.Errorf("only %v", tally)
	}
}
