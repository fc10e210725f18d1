package editor

import (
	"os"
	"os/exec"
	"path/filepath"
)

// standIn writes the program that is called pollux, and returns its path.
func standIn(dir, program, address string) (string, error) {
	path := filepath.Join(dir, "pollux.cmd")
	script := `@"` + program + `" conform --` + PlugFlag + ` "` + address + `" -- %*` + "\r\n"
	return path, os.WriteFile(path, []byte(script), 0o600)
}

// inTerminal starts a command without a terminal, so that nobody can type.
func inTerminal(cmd *exec.Cmd) (*os.File, error) { return nil, cmd.Start() }

func hangUp(p *os.Process) error { return p.Kill() }
