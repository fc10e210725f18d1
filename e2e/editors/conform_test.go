package editors

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pollux-companion/pollux/internal/conform"
	"github.com/pollux-companion/pollux/internal/peers"
)

// settingsOf switches on what only some users want, so that it is tried too.
const settingsOf = `{"allowWriteFile": true, "containerAddress": "127.0.0.9"}`

// conformed runs pollux conform with a driver against an editor, and counts what it came to.
func conformed(t *testing.T, b *bench, driver string, command ...string) map[conform.Result]int {
	t.Helper()
	b.write("../c/pollux/config.json", settingsOf)
	args := append([]string{"conform", "--json", "--with", "writeFile,extraHost", "--driver", driver, "--"}, command...)
	cmd := exec.CommandContext(t.Context(), binary(), args...)
	cmd.Dir, cmd.Env = b.project, b.env
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var all []conform.Check
	if json.Unmarshal(out.Bytes(), &all) != nil {
		t.Fatalf("%v\n%s\n%s", err, &out, &said)
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
	if err != nil {
		t.Errorf("%v\n%s", err, &said)
	}
	t.Logf("%d checks: %v", len(all), tally)
	return tally
}

// A real Neovim with pollux's plugin, driven by its own calls, against the whole contract: nothing fails, and hardly
// anything is left out (a trust that Neovim has not, settings that exclude others, what takes a minute).
func TestNeovimConforms(t *testing.T) {
	t.Parallel()
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
