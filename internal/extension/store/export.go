package store

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// Export writes an extension's content as a zip archive to the file at path, and returns the content's hash. The same
// content gives the same bytes on every machine: sorted and uncompressed entries (compressors differ between
// versions), one fixed time, modes 0644 and 0755. It replaces an existing file only with force.
func (s *Store) Export(x *Extension, path string, force bool) (hash string, err error) {
	if err := x.Findings.Err(); err != nil {
		return "", err
	}
	if exists(path) && !force {
		return "", fmt.Errorf("%q exists; name another file, or add --force", path)
	}
	tree, err := manifest.ReadTree(x.Dir)
	if err != nil {
		return "", err
	}
	root, err := manifest.OpenFolder(x.Dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	tmp, err := os.CreateTemp(filepath.Dir(path), ".pollux-export-*")
	if err != nil {
		return "", fmt.Errorf("writing %q: %w", path, safefile.Cause(err))
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	if err := writeZip(tmp, root, tree); err != nil {
		return "", fmt.Errorf("writing %q: %w", path, err)
	}
	if err := errors.Join(tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		return "", fmt.Errorf("writing %q: %w", path, safefile.Cause(err))
	}
	return tree.Hash(), os.Rename(tmp.Name(), path)
}

func writeZip(w io.Writer, root *os.Root, tree *manifest.Tree) error {
	z := zip.NewWriter(w)
	for _, f := range tree.Files {
		h := &zip.FileHeader{Name: f.Path, Method: zip.Store, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		mode := fs.FileMode(0o644)
		switch f.Mode {
		case manifest.ModeExec:
			mode = 0o755
		case manifest.ModeLink:
			mode = 0o777 | fs.ModeSymlink
		}
		h.SetMode(mode)
		out, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if err := copyContent(out, root, f); err != nil {
			return err
		}
	}
	return z.Close()
}

// copyContent writes a file's bytes, or a link's target.
func copyContent(out io.Writer, root *os.Root, f manifest.FileSum) error {
	name := filepath.FromSlash(f.Path)
	if f.Mode == manifest.ModeLink {
		target, err := root.Readlink(name)
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, filepath.ToSlash(target))
		return err
	}
	in, err := manifest.Open(root, f.Path)
	if err != nil {
		return err
	}
	defer in.Close()
	n, err := io.Copy(out, in)
	if err == nil && n != f.Size {
		err = fmt.Errorf("%q changed while it was read; try again", f.Path)
	}
	return err
}

// IndexFile returns the index of extensions that the CLI's settings name (experimental.extensionRegistryURI) if it is
// a file, otherwise "".
func (s *Store) IndexFile() string {
	file := s.readPolicy().registry
	if file == "" || !filepath.IsAbs(file) {
		return ""
	}
	return file
}
