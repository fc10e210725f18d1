package sandbox

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// maxEntries is how many files and folders of a workspace are looked at for
// protected names below its top; what lies deeper than that reaches is not
// found. It takes some 50 ms.
const maxEntries = 50_000

// An inode is the identity of a file: it stays when the file is moved.
type inode struct{ dev, ino uint64 }

// nested finds the protected names below the top of a workspace, those that
// are nearest first; all says that nothing was left out. It follows no links.
// Packages come with any of these names: in node_modules only a repository
// counts, which git obeys as soon as somebody goes there.
func (t tree) nested(root string, limit int) (found map[string]inode, all bool) {
	found = map[string]inode{}
	queue, seen := []string{root}, 0
	for len(queue) > 0 {
		dir := queue[0]
		queue = queue[1:]
		packages := strings.Contains(dir+"/", "/node_modules/")
		for _, e := range t.entries(dir) {
			if seen++; seen > limit {
				return found, false
			}
			path := filepath.Join(dir, e.Name())
			switch isProtected := slices.ContainsFunc(protectedNames(), func(p string) bool { return strings.EqualFold(p, e.Name()) }); {
			case isProtected && dir == root: // the top is the plan's
			case isProtected && (!packages || strings.EqualFold(e.Name(), ".git")):
				if info, err := e.Info(); err == nil {
					found[path] = identity(info)
				}
			case e.IsDir():
				queue = append(queue, path)
			}
		}
	}
	return found, true
}

// entries lists a folder in no order; nothing for one that cannot be read.
func (t tree) entries(path string) []fs.DirEntry {
	dir, err := os.Open(string(t) + path)
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(-1) // those before an error, if anything
	return entries
}

func identity(info os.FileInfo) inode {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}
	}
	return inode{uint64(stat.Dev), stat.Ino} //nolint:unconvert // the type differs between architectures
}

// protectNested makes what protected names below the top hold read-only. The
// folders above them can still be moved, or the workspace would fall apart in
// pieces between which nothing can be renamed; what then stands in their place
// is found after the command.
func (l *layout) protectNested(root string) {
	found, all := l.nested(root, maxEntries)
	l.watched.root, l.watched.known, l.watched.complete = root, map[inode]bool{}, all
	for path, id := range found {
		l.watched.known[id] = true
		if info, err := l.lstat(path); err == nil && info.Mode()&os.ModeSymlink == 0 {
			if m, ok := l.over(path); ok && m.Write || !ok && l.root.Write {
				l.bind(path, false)
				l.note(path, noteProtected)
			}
		}
	}
}

// hooks is the folder of a repository's hooks, where its settings name one;
// "" when they do not. It is read as loosely as git does, or more so.
func (t tree) hooks(workspace string) string {
	f, err := os.Open(string(t) + filepath.Join(workspace, ".git", "config"))
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "=")
		if !strings.EqualFold(strings.TrimSpace(name), "hooksPath") {
			continue
		}
		dir := strings.Trim(strings.TrimSpace(value), `"`)
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(workspace, dir)
		}
		if dir != workspace && within(dir, workspace) {
			return dir
		}
	}
	return ""
}
