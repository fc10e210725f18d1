// Package child starts a program of a test's with its standard input and output in the test's hands.
package child

import (
	"io"
	"os/exec"
	"testing"
)

// Start starts cmd. The caller ends it.
func Start(t testing.TB, cmd *exec.Cmd) (in io.WriteCloser, out io.ReadCloser) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err == nil {
		out, err = cmd.StdoutPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return in, out
}
