//go:build unix

package editor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/creack/pty"
)

// standIn writes the program that is called pollux, and returns its path.
func standIn(dir, program, address string) (string, error) {
	path := filepath.Join(dir, "pollux")
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	script := "#!/bin/sh\nexec " + quote(program) + " conform --" + PlugFlag + " " + quote(address) + ` -- "$@"` + "\n"
	return path, os.WriteFile(path, []byte(script), 0o700) //nolint:gosec // the user runs it
}

// inTerminal starts a command in a terminal of its own.
func inTerminal(cmd *exec.Cmd) (*os.File, error) {
	return pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 160})
}

func hangUp(p *os.Process) error { return p.Signal(syscall.SIGHUP) }
