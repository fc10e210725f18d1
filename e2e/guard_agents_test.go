//go:build agents

package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/peers"
)

// left starts the thief as a child that leaves its parents, its session and its marks.
const left = `setsid -f env -i PATH="$PATH" HOME="$HOME" TMPDIR="$TMPDIR" node thief.js left >/dev/null 2>&1 </dev/null`

// deciding checks that the model's shell of a connected agent decides nothing: as it is, with its marks wiped, and when it has left its
// parents (SPEC §11.1). runs has the model run a command.
func (b *bench) deciding(runs func(prompt, command string)) {
	b.t.Helper()
	for _, try := range []struct{ name, command string }{
		{"plain", "node thief.js plain"}, {"wiped", wiped("node thief.js wiped")}, {"left", left},
	} {
		runs("work "+try.name, try.command)
		b.gotNothing(try.name)
	}
}

// SPEC §11.1, for the published opencode, Copilot CLI and Codex.
func TestOpenCodeModelDecidesNothing(t *testing.T) {
	needAgent(t, peers.OpenCode)
	b := newScene(t)
	b.uses(".claude")
	b.serve()
	c := b.joins("opencode", func() *cli.Agent { return cli.StartOpenCode(b.t, b.home, b.dir, nil) })
	b.deciding(func(prompt, command string) {
		c.Ask(prompt, model.Turn{Calls: []model.Call{{Name: "bash", Args: map[string]any{"command": command, "description": "work"}}}})
	})
}

func TestCopilotModelDecidesNothing(t *testing.T) {
	needAgent(t, peers.Copilot)
	b := newScene(t)
	b.uses(".copilot")
	b.serve()
	c := b.copilot()
	b.deciding(func(prompt, command string) {
		c.Ask(prompt, model.Turn{Calls: []model.Call{{Name: "bash", Args: map[string]any{"command": command, "description": "work"}}}})
		c.Answer("1. Yes")
	})
}

func TestCodexModelDecidesNothing(t *testing.T) {
	needAgent(t, peers.Codex)
	b := newScene(t)
	b.uses(".codex")
	b.serve()
	t.Cleanup(b.endDaemons)
	cli.StartCodex(t, b.home, b.dir, true)
	b.until("Codex's daemon, which runs the shells of the next one", func() bool { return len(b.daemons()) > 0 })
	c := cli.StartCodex(t, b.home, b.dir, true)
	c.IDE()
	c.Ask("say something", model.Text("A word from the script."))
	b.until("Codex is connected", func() bool { return strings.Contains(b.pollux("status"), "connected: Codex") })
	b.deciding(func(prompt, command string) {
		c.Ask(prompt, model.Turn{Calls: []model.Call{{Name: "exec_command", Args: map[string]any{"cmd": command}}}})
	})
}

// daemons returns the processes of Codex's daemon that belong to this home.
func (b *bench) daemons() []string {
	out, _ := exec.Command("pgrep", "-f", "^"+b.home.Dir+"/.codex/packages/").Output() // it fails when there are none
	return strings.Fields(string(out))
}

func (b *bench) endDaemons() {
	for _, pid := range b.daemons() {
		_ = exec.Command("kill", "-9", pid).Run()
	}
}
