package peers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// folderEnv tells the tests' processes where the pollux under test lies.
const folderEnv = "POLLUX_TEST_BIN"

// Build builds pollux for the tests of a package, runs them and returns their
// exit code, 1 when pollux does not build. TestMain calls it.
func Build(tests func() int) int {
	dir, err := os.MkdirTemp("", "pollux-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	defer os.RemoveAll(dir)
	root, err := Root()
	if err == nil {
		err = os.Setenv(folderEnv, dir)
	}
	if err == nil {
		build := exec.Command("go", "build", "-o", Pollux(), "./cmd/pollux")
		build.Dir, build.Stderr = root, os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "pollux does not build: %v\n", err)
		return 1
	}
	return tests()
}

// Pollux is the pollux that Build has built.
func Pollux() string { return filepath.Join(os.Getenv(folderEnv), "pollux") }
