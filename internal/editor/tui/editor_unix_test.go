//go:build unix

package tui

import (
	"os"
	"path/filepath"
	"testing"
)

// $EDITOR may have options, quotes and a path with blanks. Its last argument is the file, whatever the file's name.
func TestEditorCommand(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "my editors")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "ed it")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf '[%s]' \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	const file = "/tmp/a b';$(x)"
	for editor, want := range map[string]string{
		program:                       "[" + file + "]",
		"'" + program + "' --wait":    "[--wait][" + file + "]",
		"printf '[%s]' -n 'a b'":      "[-n][a b][" + file + "]",
		"X=1 printf '[%s]'":           "[" + file + "]",
		"f() { printf \"<$1>\"; }; f": "<" + file + ">",
	} {
		out, err := editorCommand(editor, file).CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%s: %v %q, want %q", editor, err, out, want)
		}
	}
}
