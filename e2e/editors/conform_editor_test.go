package editors

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pollux-companion/pollux/internal/conform"
	"github.com/pollux-companion/pollux/internal/peers"
)

// plugged runs pollux conform --editor with the keys of a user, and counts what it came to.
func plugged(t *testing.T, keys string, env []string, command ...string) map[conform.Result]int {
	t.Helper()
	b := newBench(t, flavour{env: env}, nil)
	args := []string{"conform", "--editor", "--json", "--wait", patience.String(), "--keys", filepath.Join(repository(t), "contract", "keys", keys), "--"}
	cmd := exec.CommandContext(t.Context(), binary(), append(args, command...)...)
	cmd.Dir, cmd.Env = b.project, b.env
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s", err, &said)
	}
	return counted(t, out.Bytes())
}

// Neovim's plugin does all that the protocol asks for.
func TestNeovimPluginConforms(t *testing.T) {
	t.Parallel()
	program, root := peers.Need(t, peers.Neovim), repository(t)
	tally := plugged(t, "neovim.json", nil, program, "--clean", "-n", "-i", "NONE", "--cmd", "let g:pollux = {'idle': 100} | set shortmess+=I",
		"--cmd", "set rtp^="+filepath.Join(root, "plugins", "nvim"))
	if tally[conform.Pass] < 67 || tally[conform.Skip] > 0 {
		t.Errorf("only %v", tally)
	}
}
