//go:build unix

package tui

import (
	"os/exec"

	"github.com/pollux-companion/pollux/internal/paths"
)

// editorCommand runs the user's editor as git does: through the shell, which splits its options. A program whose path
// has blanks runs directly.
func editorCommand(editor, file string) *exec.Cmd {
	if path, err := paths.Program(editor); err == nil {
		return exec.Command(path, file) //nolint:noctx // it ends when the user leaves it
	}
	return exec.Command("/bin/sh", "-c", editor+` "$@"`, editor, file) //nolint:noctx // it ends when the user leaves it
}
