//go:build unix

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// runKeychain runs a keychain's program with stdin and returns its output. A program that fails silently has found
// nothing. A program that hangs, such as a locked keyring without a desktop, is stopped.
func runKeychain(stdin, program string, args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...) // a program of the system
	cmd.Dir = "/"
	cmd.Stdin = strings.NewReader(stdin)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	stderr = strings.TrimSpace(said.String())
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", "", errors.New("the keychain does not answer; unlock it, or set GEMINI_FORCE_FILE_STORAGE=true for Gemini CLI and pollux alike")
	case err != nil && errors.As(err, &exit) && (stderr == "" || strings.Contains(stderr, "could not be found")):
		return "", "", nil
	case err != nil:
		return "", "", fmt.Errorf("the keychain says: %s", stderr)
	}
	return strings.TrimSuffix(out.String(), "\n"), stderr, nil
}
