//go:build unix

package tui

import "os/exec"

// editorCommand runs the user's editor as git does: through the shell, which takes its options apart.
func editorCommand(editor, file string) *exec.Cmd {
	return exec.Command("sh", "-c", editor+` "$@"`, editor, file) //nolint:noctx // it ends when the user leaves it
}
