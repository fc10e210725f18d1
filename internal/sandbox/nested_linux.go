package sandbox

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// maxEntries is how many files and folders of a workspace are looked at for
// protected names below its top; what lies deeper than that reaches is not
// found. It takes some 50 ms.
const maxEntries = 50_000

// packages is where the code of others lies that the user runs anyway. Whoever
// may write there needs no hook; packages come with any protected name.
const packages = "node_modules"

// clockSlack is how far the clock of a file system may be behind ours.
const clockSlack = 2 * time.Second

// An inode is the identity of a file: it stays when the file is moved.
type inode struct{ dev, ino uint64 }

// A census is what was found in a workspace below its top.
type census struct {
	found map[string]inode // protected names, by path
	dirs  map[string]bool  // the folders that were looked into
	whole bool             // nothing was left out
	left  int              // how many entries may still be looked at
}

// nested finds the protected names below the top of a workspace, those that
// are nearest first, among a limited number of entries. It follows no links.
func (t tree) nested(root string, limit int) *census {
	c := &census{found: map[string]inode{}, dirs: map[string]bool{}, whole: true, left: limit}
	t.count(c, root, root)
	return c
}

// count adds what lies below a folder to a census.
func (t tree) count(c *census, root, dir string) {
	for queue := []string{dir}; len(queue) > 0; {
		dir, queue = queue[0], queue[1:]
		if c.dirs[dir] {
			continue
		}
		c.dirs[dir] = true
		entries := t.entries(dir)
		if c.left -= len(entries); c.left < 0 {
			c.whole = false
			return
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			switch {
			case !isProtected(e.Name()):
				if e.IsDir() && e.Name() != packages {
					queue = append(queue, path)
				}
			case dir != root: // the top is the plan's
				if info, err := e.Info(); err == nil {
					c.found[path] = identity(info)
				}
			}
		}
	}
}

// isProtected says whether a name is a protected one, however it is spelled.
func isProtected(name string) bool {
	return strings.HasPrefix(name, ".") && slices.ContainsFunc(protectedNames(), func(p string) bool { return strings.EqualFold(p, name) })
}

// recount finds the protected names that came into the folders of a census
// after a moment, and into folders that are new. The kernel notes when a folder
// changed, and nobody but who sets its clock can make it forget.
func (t tree) recount(c *census, root string, since time.Time) map[string]inode {
	now := &census{found: map[string]inode{}, dirs: map[string]bool{}, left: maxEntries}
	for dir := range c.dirs {
		info, err := t.lstat(dir)
		if err != nil || !info.IsDir() || changed(info).Before(since) {
			now.dirs[dir] = err == nil && info.IsDir()
		}
	}
	for dir := range c.dirs {
		if !now.dirs[dir] {
			t.count(now, root, dir)
		}
	}
	return now.found
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

// changed is when the kernel last saw a change of a file or folder.
func changed(info os.FileInfo) time.Time {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Now()
	}
	return time.Unix(stat.Ctim.Unix())
}

// protectNested makes what protected names below the top hold read-only. The
// folders above them can still be moved, or the workspace would fall apart in
// pieces between which nothing can be renamed; what then stands in their place
// is found after the command.
func (l *layout) protectNested(root string) {
	c := l.nested(root, maxEntries)
	l.watched.root, l.watched.census, l.watched.since = root, c, time.Now().Add(-clockSlack)
	for path := range c.found {
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
