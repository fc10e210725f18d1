package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// errWithheld: the path is kept from agents.
var errWithheld = errors.New("is kept from agents")

// MayMention returns nil when a user may point an agent at a file or folder, otherwise why not. A path that Sharing keeps from agents
// must not be sent by mistake either (SPEC C-8).
func (w *Workspace) MayMention(path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	if !utf8.ValidString(path) {
		return fmt.Errorf("%q: %w: its name is not UTF-8", path, ErrBadPath)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("%q: %w", path, safefile.Cause(err))
	case !info.IsDir() && !info.Mode().IsRegular():
		return fmt.Errorf("%q: %w", path, ErrNotFile)
	case w.Secret(path):
		return fmt.Errorf("%q %w: its name says that it holds secrets; a !pattern in the setting \"ignore\" allows it", path, errWithheld)
	}
	s := w.newSharing()
	l, err := w.locate(path)
	switch {
	case err != nil && w.options.ShareOutside && errors.Is(err, ErrOutside):
		l = location{root: filepath.VolumeName(path) + string(filepath.Separator), path: filepath.Clean(path)}
	case err != nil:
		return err
	}
	if len(l.path) > len(l.root) && s.hidden(l.root, l.path, info.IsDir()) {
		return fmt.Errorf("%q %w: an ignore file (.geminiignore or its kin) or the setting \"ignore\" names it", path, errWithheld)
	}
	if given, ok := w.rootOf(filepath.Clean(path)); ok && len(filepath.Clean(path)) > len(given) && s.hidden(given, filepath.Clean(path), info.IsDir()) {
		return fmt.Errorf("%q %w: an ignore file (.geminiignore or its kin) or the setting \"ignore\" names it", path, errWithheld)
	}
	return nil
}
