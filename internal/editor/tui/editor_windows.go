package tui

import (
	"os/exec"
	"strings"

	"github.com/pollux-companion/pollux/internal/paths"
)

// editorCommand runs the user's editor with its options.
func editorCommand(editor, file string) *exec.Cmd {
	words := strings.Fields(editor)
	if path, err := paths.Program(editor); err == nil {
		words = []string{path} // a path with blanks in it
	} else if path, err := paths.Program(words[0]); err == nil {
		words[0] = path
	}
	return exec.Command(words[0], append(words[1:], file)...) //nolint:noctx // it ends when the user leaves it
}
