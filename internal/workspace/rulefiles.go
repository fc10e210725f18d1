package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/paths"
)

// maxRuleFolders bounds the folders whose rule files are followed; what lies in more of them is judged anew with the user's next move.
const maxRuleFolders = 256

// RuleFiles returns the files, there or not, that decide now which of the files open may be named to whom: ignore files, and the settings of
// agents. comes are folders in which a folder with such a file may come up.
func (w *Workspace) RuleFiles(open []string) (files, comes []string) {
	dirs := map[string]bool{}
	add := func(dir string) bool {
		if dirs[dir] || len(dirs) >= maxRuleFolders {
			return false
		}
		dirs[dir] = true
		return true
	}
	look := denying{tops: map[string]string{}}
	for _, root := range w.Roots() {
		add(root)
		for dir := root; dir != look.top(root) && look.top(root) != filepath.Dir(look.top(root)); {
			dir = filepath.Dir(dir)
			add(dir)
		}
	}
	for _, path := range open {
		for _, name := range []string{filepath.Clean(path), paths.Real(path)} {
			root, ok := w.rootOf(name)
			for dir := filepath.Dir(name); ok && len(dir) >= len(root) && add(dir); {
				dir = filepath.Dir(dir)
			}
		}
	}
	at := func(name string) {
		if dir := filepath.Dir(name); isDir(dir) {
			files = append(files, name)
		} else if above := filepath.Dir(dir); dirs[above] && isDir(above) {
			comes = append(comes, above)
		}
	}
	for i := range w.deniers {
		d := &w.deniers[i]
		for _, pattern := range d.everywhere() {
			if !strings.ContainsAny(filepath.Base(pattern), "*?[") {
				at(pattern)
				continue
			}
			if dir := filepath.Dir(pattern); isDir(dir) {
				comes = append(comes, dir)
			}
			matches, _ := filepath.Glob(pattern)
			files = append(files, matches...)
		}
		if d.Folders != nil {
			for _, folder := range d.Folders() {
				add(folder)
			}
		}
	}
	for dir := range dirs {
		for _, name := range ignoreNames {
			at(filepath.Join(dir, name))
		}
		for i := range w.deniers {
			for _, name := range w.deniers[i].Beside {
				at(filepath.Join(dir, filepath.FromSlash(name)))
			}
		}
	}
	slices.Sort(files)
	slices.Sort(comes)
	return slices.Compact(files), slices.Compact(comes)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
