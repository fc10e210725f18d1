//go:build unix

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/paths"
)

// Where a folder cannot be hidden behind another, copies lie in the command's
// private folder, and what of the command names the original names them.

// putCopies writes the files of a command's copies below dir, and returns the
// command that names them, and the folders that they lie in.
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

// relocate replaces a folder at the beginning of arguments, or of the values
// of variables, by another.
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
