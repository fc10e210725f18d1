package sandbox

import (
	"cmp"
	"io"
	"os"
	accounts "os/user"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/gitconfig"
	"github.com/pollux-companion/pollux/internal/paths"
)

// maxConfig bounds how much of a git configuration file is read, in bytes.
const maxConfig = 16 * mib

// maxIncludes is how deep git lets configuration files include others.
const maxIncludes = 10

// A gitPlan protects what git's configuration points to: included files, hook folders, programs named by a path.
type gitPlan struct {
	l    *layout
	home string
	env  func(string) string
	// global holds the system's and the user's settings.
	global []gitconfig.Setting
}

// repositories protects the writable files that git's configuration points to. It reads the user's configuration and
// that of each repository in or around the workspace.
func (l *layout) repositories(s *Sandbox, workspace string) {
	g := &gitPlan{l: l, home: s.home, env: s.env}
	for _, file := range g.globalFiles() {
		g.global = append(g.global, g.read(file, 0)...)
	}
	g.hooks("", g.global) // only absolute paths: there is no repository
	g.programs("", g.global)
	if workspace == "" {
		return
	}
	for dir := filepath.Dir(workspace); ; dir = filepath.Dir(dir) {
		if l.exists(filepath.Join(dir, ".git")) {
			g.repository(dir, filepath.Join(dir, ".git"))
		}
		if dir == "/" {
			break
		}
	}
	for _, f := range l.watched.Known {
		path := filepath.Join(workspace, f.Path)
		switch {
		case f.shape:
			g.repository(path, path)
		case strings.EqualFold(filepath.Base(path), ".git"):
			g.repository(filepath.Dir(path), path)
		case f.isDir():
			g.links(path)
		}
	}
}

// globalFiles returns the files that git reads for every repository.
func (g *gitPlan) globalFiles() []string {
	files := []string{cmp.Or(g.env("GIT_CONFIG_SYSTEM"), "/etc/gitconfig")}
	if global := g.env("GIT_CONFIG_GLOBAL"); global != "" {
		return append(files, global)
	}
	if g.home == "" {
		return files
	}
	return append(files, filepath.Join(cmp.Or(g.env("XDG_CONFIG_HOME"), filepath.Join(g.home, ".config")), "git", "config"), filepath.Join(g.home, ".gitconfig"))
}

// repository protects what one repository's own configuration points to. dir is its working tree; git is its data
// folder, or the file that names that folder.
func (g *gitPlan) repository(dir, git string) {
	git = g.pointed(g.l.canonical(git), "gitdir: ")
	g.l.way(git)
	common := g.pointed(filepath.Join(git, "commondir"), "")
	if common == filepath.Join(git, "commondir") {
		common = git // there is no commondir file
	}
	g.l.way(common)
	all := slices.Clone(g.global)
	for _, file := range []string{filepath.Join(common, "config"), filepath.Join(git, "config.worktree")} {
		if g.l.exists(file) {
			g.l.way(file) // it can be a link
			all = append(all, g.read(file, 0)...)
		}
	}
	g.l.way(filepath.Join(common, "hooks"))
	g.links(filepath.Join(common, "hooks"))
	g.hooks(dir, all)
	g.programs(dir, all)
}

// pointed returns the path that a file holds after a prefix, or the file itself if it holds none.
func (g *gitPlan) pointed(file, prefix string) string {
	data, ok := g.l.readFile(file)
	to, found := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), prefix)
	if !ok || !found || to == "" {
		return file
	}
	g.l.way(file)
	return absolute(to, filepath.Dir(file))
}

func absolute(path, dir string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	// Not joined: ".." after a link must be resolved by following the link.
	return dir + "/" + path
}

// read reads a configuration file and its includes, whatever their condition, and protects the included files.
func (g *gitPlan) read(file string, depth int) []gitconfig.Setting {
	data, ok := g.l.readFile(file)
	if !ok || depth > maxIncludes {
		return nil
	}
	all, _ := gitconfig.Parse(data) // git stops at a mistake, but uses what stands before it
	for _, s := range slices.Clone(all) {
		if s.Key != "include.path" && (!strings.HasPrefix(s.Key, "includeif.") || !strings.HasSuffix(s.Key, ".path")) {
			continue
		}
		if path := g.path(s.Value, filepath.Dir(file)); path != "" {
			g.l.way(path)
			all = append(all, g.read(path, depth+1)...)
		}
	}
	return all
}

// path returns the path that a git value means, or "" for none. With dir "", a relative path means nothing.
func (g *gitPlan) path(value, dir string) string {
	if rest, ok := strings.CutPrefix(value, "~"); ok {
		name, below, _ := strings.Cut(rest, "/")
		home := g.home
		if name != "" {
			u, err := accounts.Lookup(name)
			if err != nil {
				return ""
			}
			home = u.HomeDir
		}
		return absolute(cmp.Or(below, "."), home)
	}
	if value == "" || dir == "" && !filepath.IsAbs(value) {
		return ""
	}
	return absolute(value, dir)
}

// hooks protects the hook folders that settings name.
func (g *gitPlan) hooks(dir string, all []gitconfig.Setting) {
	for _, s := range all {
		if s.Key != "core.hookspath" {
			continue
		}
		path := g.path(s.Value, dir)
		if path == "" {
			continue
		}
		if real := g.l.canonical(path); g.l.holdsRoot(real) || dir != "" && paths.Within(real, dir) {
			g.l.protect(path, hookNames()) // the whole project cannot be read-only
			continue
		}
		g.l.way(path)
		g.links(path)
	}
}

// links protects the files that links in a folder point to.
func (g *gitPlan) links(dir string) {
	entries, _ := os.ReadDir(string(g.l.tree) + g.l.canonical(dir)) // if pollux cannot read it, git cannot either
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.Type()&os.ModeSymlink != 0 && !g.l.isDir(g.l.canonical(path)) {
			g.l.way(path)
		}
	}
}

// programs protects the files that settings name as programs. Other files that such a program reads are the project's
// code, and are not protected.
func (g *gitPlan) programs(dir string, all []gitconfig.Setting) {
	for _, s := range all {
		section, _, _ := strings.Cut(s.Key, ".")
		name := s.Key[strings.LastIndex(s.Key, ".")+1:]
		if !slices.Contains([]string{"core", "diff", "merge", "filter", "credential", "gpg", "sequence", "alias", "interactive", "pager", "uploadpack", "mergetool", "difftool", "browser", "man", "trailer", "submodule", "hook"}, section) || name == "hookspath" || name == "worktree" {
			continue
		}
		word, _, _ := strings.Cut(strings.TrimLeft(s.Value, "! "), " ")
		word = strings.Trim(word, `"'`)
		if !strings.Contains(word, "/") {
			continue
		}
		if path := g.path(word, dir); path != "" && g.l.isFile(path) {
			g.l.way(path)
		}
	}
}

// isFile says whether a path leads to an ordinary file.
func (t tree) isFile(path string) bool {
	info, err := t.lstat(t.canonical(path))
	return err == nil && info.Mode().IsRegular()
}

// readFile reads an ordinary file through any links. It does not block on a pipe.
func (t tree) readFile(path string) ([]byte, bool) {
	f, err := os.OpenFile(string(t)+t.canonical(path), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	data, err := io.ReadAll(io.LimitReader(f, maxConfig))
	return data, err == nil
}

// hookNames are the hooks of githooks(5).
func hookNames() []string {
	return []string{"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit",
		"pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update", "proc-receive", "post-receive", "post-update", "reference-transaction",
		"push-to-checkout", "pre-auto-gc", "post-rewrite", "sendemail-validate", "fsmonitor-watchman", "p4-changelist", "p4-prepare-changelist",
		"p4-post-changelist", "p4-pre-submit", "post-index-change"}
}
