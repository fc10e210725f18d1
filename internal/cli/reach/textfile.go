package reach

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// maxText bounds a text for an editor, in bytes (SPEC A-4).
const maxText = 16 << 20

// readTextFile reads a file that an editor can show (SPEC F-2); exists is false if there is none. The null device
// counts as no file: git passes it for a missing one.
func readTextFile(path string) (content string, exists bool, err error) {
	if path == os.DevNull {
		return "", false, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("%q cannot be read: %w", path, safefile.Cause(err))
	case info.IsDir():
		return "", false, fmt.Errorf("%q is a folder; name a file in it", path)
	case !info.Mode().IsRegular():
		return "", false, fmt.Errorf("%q is not a regular file; copy its content into one", path)
	case info.Size() > maxText:
		return "", false, tooBig(path)
	}
	f, _, err := safefile.OpenRegular(path)
	if err != nil {
		return "", false, fmt.Errorf("%q cannot be read: %w", path, safefile.Cause(err))
	}
	defer f.Close()
	content, err = readText(f, path)
	return content, err == nil, err
}

// readText reads a stream to its end; name is for errors.
func readText(r io.Reader, name string) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxText+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("%q cannot be read: %w", name, safefile.Cause(err))
	case len(data) > maxText:
		return "", tooBig(name)
	case text.IsBinary(data):
		return "", fmt.Errorf("%q is not text in UTF-8; no editor can show it as a diff", name)
	}
	return string(data), nil
}

func tooBig(name string) error {
	return fmt.Errorf("%q is larger than %d MiB, more than an editor is asked to show; split it", name, maxText>>20)
}

// placeFor returns, before asking for a text, why a file could not take it: it is a folder, or its folder does not
// exist. It does not check permissions; writing does.
func placeFor(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%q is a folder; name a file in it", path)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return fmt.Errorf("%q cannot be written: there is no folder %q; make it first", path, filepath.Dir(path))
	}
	return nil
}

// replaceFile replaces a file's text in one step and keeps its mode. It writes through a link, and into a device or
// similar without replacing it.
func replaceFile(path, content string) error {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createFile(path, content)
	}
	if err != nil {
		return fmt.Errorf("%q cannot be written: %w", path, safefile.Cause(err))
	}
	info, err := os.Stat(target)
	if err != nil {
		return fmt.Errorf("%q cannot be written: %w", path, safefile.Cause(err))
	}
	if info.Mode().IsRegular() {
		return safefile.Write(target, []byte(content), &safefile.Options{KeepMode: true})
	}
	f, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err == nil {
		_, err = io.WriteString(f, content)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("%q cannot be written: %w", path, safefile.Cause(err))
	}
	return nil
}

// createFile writes a new file with the system's default mode.
func createFile(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // the user's own file, with the rights that their umask leaves
	if err != nil {
		return fmt.Errorf("%q cannot be written: %w", path, safefile.Cause(err))
	}
	f.Close() // the write that follows keeps its mode
	if err := safefile.Write(path, []byte(content), &safefile.Options{KeepMode: true}); err != nil {
		_ = os.Remove(path)
		return err
	}
	return nil
}
