package peers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// folderEnv tells test processes where the pollux under test is.
const folderEnv = "POLLUX_TEST_BIN"

// Build builds pollux for a package's tests, runs them and returns their exit code; 1 if the build fails. TestMain
// calls it.
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

// Pollux returns the path of the pollux that Build has built.
func Pollux() string { return filepath.Join(os.Getenv(folderEnv), "pollux") }
