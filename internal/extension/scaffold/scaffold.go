// Package scaffold writes the first files of a new extension. Its templates validate without findings and run
// unchanged.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
)

//go:embed all:templates
var files embed.FS

// placeholder stands for the extension's name in the templates.
const placeholder = "EXTENSION_NAME"

// Template is a starting point for an extension.
type Template struct {
	Name    string
	Summary string // the description in its manifest
}

// Default is the template that New takes if none is named.
const Default = "tool-python"

// Templates lists the templates by name.
func Templates() []Template {
	entries, _ := files.ReadDir("templates") // embedded, so it cannot fail
	var out []Template
	for _, e := range entries {
		data, _ := files.ReadFile(path.Join("templates", e.Name(), manifest.FileName))
		m, _ := manifest.Parse(e.Name(), data)
		out = append(out, Template{Name: e.Name(), Summary: m.Description})
	}
	return out
}

// ErrTemplate marks a template that does not exist.
var ErrTemplate = errors.New("no such template")

// New writes a template into dir, which must be missing or empty. It returns the files that it wrote, relative with
// forward slashes. name is the extension's name; "" means the last element of dir. After a failure the files written
// so far stay.
func New(dir, template, name string) ([]string, error) {
	if template == "" {
		template = Default
	}
	src, err := fs.Sub(files, path.Join("templates", template))
	if err == nil && strings.ContainsAny(template, `/\`) {
		err = fs.ErrInvalid
	}
	if err == nil {
		_, err = fs.Stat(src, manifest.FileName)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %q; choose one of %s", ErrTemplate, template, strings.Join(names(), ", "))
	}
	if name == "" {
		whole, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		name = filepath.Base(whole)
	}
	if err := manifest.CheckName(name); err != nil {
		return nil, err
	}
	return write(dir, src, name)
}

func names() []string {
	var out []string
	for _, t := range Templates() {
		out = append(out, t.Name)
	}
	return out
}

func write(dir string, src fs.FS, name string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder %q: %w", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if there, err := os.ReadDir(dir); err != nil || len(there) > 0 {
		return nil, fmt.Errorf("the folder %q is not empty; name one that does not exist yet", dir)
	}
	var written []string
	err = fs.WalkDir(src, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == "." {
			return err
		}
		if d.IsDir() {
			return root.Mkdir(p, 0o755)
		}
		data, err := fs.ReadFile(src, p)
		if err != nil {
			return err
		}
		written = append(written, p)
		return create(root, p, strings.ReplaceAll(string(data), placeholder, name))
	})
	if err != nil {
		return written, fmt.Errorf("writing the extension into %q: %w", dir, err)
	}
	return written, nil
}

// create writes one file, executable if it begins with #!. Embedded files have no modes.
func create(root *os.Root, p, text string) error {
	mode := fs.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	f, err := root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
