package editors

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/conform"
	"github.com/pollux-companion/pollux/internal/peers"
)

// plugged runs pollux conform --editor with the keys of a user: nothing fails, and the checks that are left out are as many as
// the editor's plugin does not offer.
func plugged(t *testing.T, b *bench, keys string, left int, command ...string) {
	t.Helper()
	if !filepath.IsAbs(keys) {
		keys = filepath.Join(repository(t), "contract", "keys", keys)
	}
	args := []string{"conform", "--editor", "--json", "--wait", patience.String(), "--keys", keys, "--"}
	cmd := exec.CommandContext(t.Context(), binary(), append(args, command...)...)
	cmd.Dir, cmd.Env = b.project, b.env
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s", err, &said)
	}
	tally := counted(t, out.Bytes())
	if tally[conform.Pass] < 55 || tally[conform.Skip] > left {
		t.Errorf("only %v", tally)
	}
}

// Every plugin for a terminal's editor does what the protocol asks for.
func TestPluginsConform(t *testing.T) {
	t.Parallel()
	t.Run("Neovim", func(t *testing.T) {
		t.Parallel()
		f := neovim(t)
		b := newBench(t, f, nil)
		plugged(t, b, "neovim.json", 0, f.start(t, b, nil)...)
	})
	t.Run("Vim", func(t *testing.T) {
		t.Parallel()
		f := vim(t)
		b := newBench(t, f, nil)
		plugged(t, b, "vim.json", 0, f.start(t, b, nil)...)
	})
	t.Run("Emacs", func(t *testing.T) {
		t.Parallel()
		f := emacs(t)
		b := newBench(t, f, nil)
		plugged(t, b, "emacs.json", 0, f.start(t, b, nil)...)
	})
	t.Run("micro", func(t *testing.T) { // version 1, which has neither newer bases nor saveDocument
		t.Parallel()
		f := micro(t)
		b := newBench(t, f, nil)
		command := f.start(t, b, nil)
		if err := os.Remove(filepath.Join(b.root, "c", "micro", "plug", "pollux", "installed.lua")); err != nil { // the one in PATH is conform's
			t.Fatal(err)
		}
		plugged(t, b, "micro.json", 3, command...)
	})
	t.Run("Kakoune", func(t *testing.T) { // it has no variables for terminals, and saving is left to the user
		t.Parallel()
		f := kakoune(t)
		b := newBench(t, f, nil)
		command := f.start(t, b, nil)
		file := b.path("../c/kak/kakrc")
		lines, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b.write("../c/kak/kakrc", string(lines)+"set-option global pollux_server %sh{ printf %s \"$POLLUX_CONFORM_COMMAND\" }\n")
		plugged(t, b, "kakoune.json", 2, command...)
	})
}

// So does the worked example, as far as it goes: it knows no files to open and no questions, and selects whole lines.
func TestExamplePluginConforms(t *testing.T) {
	t.Parallel()
	b := newBench(t, neovim(t), nil)
	text, err := os.ReadFile(filepath.Join(repository(t), "contract", "keys", "neovim.json"))
	if err != nil {
		t.Fatal(err)
	}
	b.write("../keys.json", strings.Replace(string(text), `"0v$h"`, `"V"`, 1))
	plugged(t, b, filepath.Join(b.root, "keys.json"), 9, peers.Need(t, peers.Neovim), "--clean", "-n", "-i", "NONE", "--cmd", "set shortmess+=I",
		"--cmd", "luafile "+filepath.Join(repository(t), "examples", "plugin", "plugin.lua"))
}
