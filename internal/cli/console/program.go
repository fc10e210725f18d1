package console

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// Version returns the version that the Go tool recorded in the binary.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Lasting returns the absolute path by which pollux was called, for plugins, bridge and relay to start. It first
// copies a binary that was built only for this run to a folder of the user (SPEC §11.4).
func (c *Console) Lasting(dryRun bool) (string, error) {
	self, err := paths.Called()
	if err != nil || !Temporary(paths.Real(self)) {
		return self, err
	}
	dir := filepath.Join(c.Dirs.State, "bin")
	path := filepath.Join(dir, filepath.Base(self))
	if dryRun {
		return path, nil
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return "", err
	}
	for _, d := range []string{c.Dirs.State, dir} {
		if err := safefile.PrivateDir(d); err != nil {
			return "", err
		}
	}
	fmt.Fprintf(c.Err, "pollux: this is a temporary build; what is installed starts a copy of it, %s\n", path)
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, data) {
		return path, nil
	}
	return path, safefile.Write(path, data, &safefile.Options{Mode: 0o700})
}

// Temporary reports whether go run or go test built the program at path: in their working folder, or in the cache,
// where the folder's name is the program's hash.
func Temporary(path string) bool {
	return regexp.MustCompile(`/go-build|/[0-9a-f]{64}-d/[^/]*$`).MatchString(filepath.ToSlash(path))
}

// Outlive starts a program that outlives pollux: this terminal's signals do not reach it.
func Outlive(cmd *exec.Cmd) error {
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // if this pollux continues to run
	return nil
}
