package tui

import (
	"os/exec"
	"strings"
)

// editorCommand runs the user's editor, with its options if it has any.
func editorCommand(editor, file string) *exec.Cmd {
	words := strings.Fields(editor)
	if _, err := exec.LookPath(editor); err == nil {
		words = []string{editor} // a path with blanks in it
	}
	return exec.Command(words[0], append(words[1:], file)...) //nolint:noctx // it ends when the user leaves it
}
