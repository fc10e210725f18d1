//go:build unix

package tui

import "os/exec"

// editorCommand runs the user's editor as git does: through the shell, which takes its options apart. A program whose
// path has blanks in it is that program.
func editorCommand(editor, file string) *exec.Cmd {
	if path, err := exec.LookPath(editor); err == nil {
		return exec.Command(path, file) //nolint:noctx // it ends when the user leaves it
	}
	return exec.Command("sh", "-c", editor+` "$@"`, editor, file) //nolint:noctx // it ends when the user leaves it
}
