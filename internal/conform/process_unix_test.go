//go:build unix

package conform

import (
	"io"
	"os"
	"strings"
	"testing"
)

// A companion is started by its path relative to the user's folder, which is not the workspace.
func TestStartRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("companion", []byte("#!/bin/sh\necho no such editor >&2; exit 7\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), []string{"./companion"}, io.Discard); err == nil || !strings.Contains(err.Error(), "exit status 7") || !strings.Contains(err.Error(), "no such editor") {
		t.Errorf("%v", err)
	}
}
