package editors

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pollux-companion/pollux/internal/conform"
	"github.com/pollux-companion/pollux/internal/peers"
)

// settingsOf switches on what only some users want, so that it is tried too.
const settingsOf = `{"keep": false, "allowWriteFile": true, "containerAddress": "127.0.0.9"}`

// TestVimConforms: a real Vim with pollux's plugin in a terminal tries itself: nothing fails.
func TestVimConforms(t *testing.T) {
	b := newBench(t, vim(t), map[string]string{"a.txt": "a\n"})
	b.write("../c/pollux/config.json", settingsOf)
	b.open("a.txt")
	report := filepath.Join(b.root, "report")
	b.eval("execute('source " + filepath.Join(repository(t), "contract", "drivers", "vim.vim") + "')")
	b.eval("ConformStart(['" + binary() + "', 'conform', '--json', '--with', 'writeFile,extraHost'], {s -> writefile(g:conform_report, '" + report + "')})")
	t.Parallel() // it goes on by itself, while others run
	var text []byte
	b.untilWithin(4*patience, "the report", func() bool {
		text, _ = os.ReadFile(report)
		return json.Valid(text) && len(text) > 0
	})
	if tally := counted(t, text); tally[conform.Pass] < 350 || tally[conform.Skip] > 20 {
		t.Errorf("only %v", tally)
	}
}

// conformed runs pollux conform with a driver against an editor, and counts what it came to.
func conformed(t *testing.T, b *bench, driver string, command ...string) map[conform.Result]int {
	t.Helper()
	b.write("../c/pollux/config.json", settingsOf)
	args := append([]string{"conform", "--json", "--with", "writeFile,extraHost,nul", "--driver", driver, "--"}, command...)
	cmd := exec.CommandContext(t.Context(), binary(), args...)
	cmd.Dir, cmd.Env = b.project, b.env
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Parallel() // it goes on by itself, while others run
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &said)
	}
	return counted(t, out.Bytes())
}

// counted judges a report.
func counted(t *testing.T, report []byte) map[conform.Result]int {
	t.Helper()
	var all []conform.Check
	if err := json.Unmarshal(report, &all); err != nil {
		t.Fatalf("%v\n%s", err, report)
	}
	tally := map[conform.Result]int{}
	for _, c := range all {
		tally[c.Result]++
		switch c.Result {
		case conform.Fail:
			t.Errorf("%s: %s\n%s", c.Name, c.About, c.Evidence)
		case conform.Skip:
			t.Logf("left out: %s: %s", c.Name, c.Evidence)
		case conform.Pass:
		}
	}
	t.Logf("%d checks: %v", len(all), tally)
	return tally
}

// A real Neovim with pollux's plugin, driven by its own calls, against the whole contract: nothing fails, and hardly
// anything is left out (a trust that Neovim has not, settings that exclude others, what takes a minute).
func TestNeovimConforms(t *testing.T) {
	program, root := peers.Need(t, peers.Neovim), repository(t)
	b := newBench(t, neovim(t), nil)
	b.env = append(b.env, "POLLUX_DRIVE="+filepath.Join(b.root, "n"))
	quiet := []string{program, "--clean", "--headless", "-n", "-i", "NONE"}
	driver := program + " --clean --headless -n -i NONE -S " + filepath.Join(root, "contract", "drivers", "neovim.lua")
	tally := conformed(t, b, driver, append(quiet, "--listen", filepath.Join(b.root, "n"),
		"--cmd", "let g:pollux = {'headless': v:true, 'focus': 'now'}", "--cmd", "set noshowmode rtp^="+filepath.Join(root, "plugins", "nvim"))...)
	if tally[conform.Pass] < 350 || tally[conform.Skip] > 11 {
		t.Errorf("only %v", tally)
	}
}
