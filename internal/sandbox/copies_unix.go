//go:build unix

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/paths"
)

// macOS cannot hide a folder behind another one. There, copies lie in the command's private folder, and the command's
// arguments and variables are changed to name them.

// putCopies writes the files of a command's copies below dir. It returns the changed command and the folders of the
// copies.
func putCopies(c Command, dir string) (Command, []string, error) {
	var folders []string
	for i, copied := range c.Copies {
		folder := filepath.Join(dir, fmt.Sprintf("copy-%d", i), filepath.Base(copied.Dir))
		for _, f := range copied.Files {
			if err := putCopy(folder, f); err != nil {
				return c, nil, err
			}
		}
		folders = append(folders, folder)
		c.Args = relocate(c.Args, copied.Dir, folder)
		c.Env = relocate(c.Env, copied.Dir, folder)
		if paths.Within(copied.Dir, c.Dir) {
			c.Dir = folder + strings.TrimPrefix(c.Dir, copied.Dir)
		}
	}
	c.Copies = nil
	return c, folders, nil
}

func putCopy(folder string, f CopyFile) error {
	path := filepath.Join(folder, filepath.FromSlash(f.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	mode := os.FileMode(0o400)
	if f.Executable {
		mode = 0o500
	}
	return os.WriteFile(path, f.Data, mode)
}

// relocate replaces the folder from with to at the beginning of arguments, or of variables' values.
func relocate(args []string, from, to string) []string {
	var all []string
	for _, a := range args {
		name, value, isVariable := strings.Cut(a, "=")
		switch {
		case paths.Within(from, a):
			a = to + strings.TrimPrefix(a, from)
		case isVariable && paths.Within(from, value):
			a = name + "=" + to + strings.TrimPrefix(value, from)
		}
		all = append(all, a)
	}
	return all
}
