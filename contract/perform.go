package contract

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Perform runs a vector of do and see steps and returns its steps with what was
// really seen, as Play does. do acts on one line; see says what there is to be
// seen of what the step's second word names. dir is {{dir}} in both.
func Perform(a *Archive, dir string, do func(line string) error, see func(what string) (string, error)) ([]Step, error) {
	got := slices.Clone(a.Steps)
	for i, step := range a.Steps {
		switch step.Kind {
		case "do":
			for line := range strings.Lines(step.Text) {
				if err := do(strings.ReplaceAll(strings.TrimSpace(line), "{{dir}}", dir)); err != nil {
					return nil, fmt.Errorf("%s, %s: %s: %w", a.Name, step.File, strings.TrimSpace(line), err)
				}
			}
		case "see":
			words := append(strings.Fields(step.File), "")
			text, err := see(words[1])
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", a.Name, step.File, err)
			}
			got[i].Text = strings.ReplaceAll(text, dir, "{{dir}}")
		default:
			return nil, fmt.Errorf("%s, %s: it belongs to the wire", a.Name, step.File)
		}
	}
	return got, nil
}

// Listing shows all that lies below a folder, by name: a line with its mode in
// octal and its path with slashes, and of a file the bytes as they are.
func Listing(dir string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%04o %s", info.Mode().Perm(), filepath.ToSlash(rel))
		if d.IsDir() {
			b.WriteString("/\n")
			return nil
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&b, ": %s\n", data)
		return err
	})
	return b.String(), err
}
