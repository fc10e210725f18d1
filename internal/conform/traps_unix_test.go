//go:build unix

package conform

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pollux-companion/pollux/internal/peers"
)

// Each trap name does run code in a program that pastes it as real programs have done.
func TestTrapsSpring(t *testing.T) {
	t.Parallel()
	neovim := peers.Need(t, peers.Neovim)
	dir := newBase(t)
	sprung := filepath.Join(dir, "sprung")
	for _, name := range traps(sprung) {
		path := filepath.Join(dir, name)
		for _, careless := range [][]string{
			{"sh", "-c", `test -e "` + path + `"`},
			{"sh", "-c", `test -e '` + path + `'`},
			{neovim, "--clean", "--headless", "-n", "-i", "NONE", "--cmd", "execute 'tabnew ' . $TRAP", "--cmd", "qall!"},
		} {
			cmd := exec.CommandContext(t.Context(), careless[0], careless[1:]...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "TRAP="+path)
			_ = cmd.Run()
		}
		if err := os.Remove(sprung); err != nil {
			t.Errorf("%q runs nowhere: %v", name, err)
		}
	}
}
