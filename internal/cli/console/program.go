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
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// Version is what the Go tool recorded in the binary.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Lasting is the absolute path of this pollux, for plugins, bridge and relay to
// start, as it was called. One that was built for this run only is copied to a place of the user's first (SPEC §11.4).
func (c *Console) Lasting(dryRun bool) (string, error) {
	self, err := proc.Called()
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

// Temporary says whether go run or go test built the program at path: in its
// working folder, or in its cache, where the folder has the program's hash for a name.
func Temporary(path string) bool {
	return regexp.MustCompile(`/go-build|/[0-9a-f]{64}-d/[^/]*$`).MatchString(filepath.ToSlash(path))
}

// Outlive starts a program that outlives pollux: the signals of this terminal do not reach it.
func Outlive(cmd *exec.Cmd) error {
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // for a pollux that goes on
	return nil
}
