package sandbox

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox/program"

	"github.com/pollux-companion/pollux/internal/sandbox/inside"
)

// A layout collects the mounts of a setup, at most one for each target.
type layout struct {
	tree
	root    inside.Root
	mounts  map[string]inside.Mount
	watched watch
	notes   map[string]string // target → why the mount is there
}

func (l *layout) add(all ...inside.Mount) {
	for _, m := range all {
		l.mounts[m.Target] = m
	}
}

// note says why a mount is there, for readers of the plan.
func (l *layout) note(target, why string) { l.notes[target] = why }

const (
	noteProtected = "protected"
	notePinned    = "cannot be moved"
	noteClosed    = "cannot be searched"
)

// bind shows a canonical path of the host if it exists.
func (l *layout) bind(path string, write bool) {
	if l.exists(path) {
		l.add(inside.Mount{Show: inside.ShowBind, Source: path, Target: path, Write: write})
	}
}

// over returns the mount that shows a path: the mount at the path or the nearest above. It is false if that is the
// root folder.
func (l *layout) over(path string) (inside.Mount, bool) {
	for ; len(path) > 1; path = filepath.Dir(path) { // until "/" or "."
		if m, ok := l.mounts[path]; ok && m.Show != inside.ShowDir && m.Show != inside.ShowLink && m.Show != inside.ShowHeld {
			return m, true
		}
	}
	return inside.Mount{}, false
}

// visible says whether the command would see the host's own file at path.
func (l *layout) visible(path string) bool {
	m, ok := l.over(path)
	return !ok && l.root.Host || ok && m.Show == inside.ShowBind
}

// layout decides what a command under p sees. docs/sandbox.md has the table. The order matters: a later mount for the
// same target replaces an earlier one. So first comes what is shown, then what is protected (read-only), then secrets
// (hidden), then copies.
func (s *Sandbox) layout(p Policy, c Command, prog *program.Program) (*layout, error) {
	l := &layout{tree: s.tree, mounts: map[string]inside.Mount{}, notes: map[string]string{}}
	workspace, err := s.workspace(p, c)
	if err != nil {
		return nil, err
	}
	read := p.EffectiveRead()
	if read == permission.Full {
		l.root = inside.Root{Host: true, Write: p.Write == permission.Full}
		for _, dir := range []string{"/sys", "/boot", "/run"} {
			l.bind(dir, false)
		}
	} else {
		l.system()
	}
	l.private()
	switch {
	case s.home == "" || s.home == "/":
		l.add(inside.Mount{Show: inside.ShowScratch, Source: inside.ScratchHome, Target: s.homeInside()})
	case read >= permission.Home:
		l.bind(s.home, p.Write >= permission.Home)
	default:
		l.add(inside.Mount{Show: inside.ShowScratch, Source: inside.ScratchHome, Target: s.home})
	}
	if workspace != "" && read >= permission.Workspace {
		l.bind(workspace, p.Write >= permission.Workspace)
	}
	own := slices.DeleteFunc(slices.Clone(prog.ReadOnly), func(path string) bool {
		// A virtual environment in a writable workspace stays writable: pip installs there, and any other program
		// could too.
		return p.Write >= permission.Workspace && workspace != "" && paths.Within(workspace, l.canonical(path))
	})
	for _, path := range slices.Concat(own, c.ReadOnly) {
		if err := l.readOnly(l.canonical(path), s.home); err != nil {
			return nil, err
		}
	}
	for link, to := range prog.Links {
		// A link on the way to the program, unless the command sees it anyway.
		if _, taken := l.mounts[link]; !taken && !l.visible(link) {
			l.add(inside.Mount{Show: inside.ShowLink, Source: to, Target: link})
		}
	}
	l.anchors(p, s.home, workspace)
	if p.Write >= permission.Home {
		// A secret store that does not exist yet is protected too: made by the command, it could hold credentials of
		// its choice.
		later := slices.Concat(protectedHome(), secretStores())
		l.protect(s.home, later)
		l.protect("/", named(later, s.env, s.home))
		l.protect(filepath.Dir(s.self), []string{filepath.Base(s.self)})
	}
	if p.Write >= permission.Workspace && workspace != "" {
		l.protect(workspace, protectedNames())
		if err := l.protectNested(workspace); err != nil {
			return nil, err
		}
	}
	if p.Write >= permission.Workspace {
		l.repositories(s, workspace)
	}
	l.narrowPins()
	if err := l.mask(s.secrets(), workspace, prog); err != nil {
		return nil, err
	}
	for _, copied := range c.Copies {
		l.add(inside.Mount{Show: inside.ShowCopy, Target: l.canonical(copied.Dir), Files: asFiles(copied.Files)})
	}
	return l, l.places()
}

func asFiles(all []CopyFile) []inside.File {
	files := make([]inside.File, len(all))
	for i, f := range all {
		files[i] = inside.File(f)
	}
	return files
}

// systemFolders are shown in every sandbox if they exist.
func systemFolders() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/opt/homebrew", "/home/linuxbrew/.linuxbrew"}
}

// anchors records the folders that a policy lets the command write to as a whole.
func (l *layout) anchors(p Policy, home, workspace string) {
	if p.Write >= permission.Workspace && workspace != "" {
		l.anchor(workspace)
	}
	if p.Write >= permission.Home && home != "" && home != "/" {
		l.anchor(home)
	}
	if p.Write == permission.Full {
		l.anchor("/")
	}
}

// narrowPins makes a pinned writable folder read-only if a folder above it has become read-only since.
func (l *layout) narrowPins() {
	for _, target := range l.targets() {
		m := l.mounts[target]
		if above, ok := l.over(filepath.Dir(target)); ok && m.Write && l.notes[target] == notePinned && !above.Write {
			m.Write = false
			l.mounts[target] = m
		}
	}
}

// system shows what programs need in order to start.
func (l *layout) system() {
	for _, dir := range systemFolders() {
		if l.isDir(dir) {
			l.bind(dir, false)
		}
	}
	// /bin → usr/bin, and other links that distributions make (/home → var/home).
	for _, name := range l.list("/") {
		if to, err := l.readlink("/" + name); err == nil {
			l.add(inside.Mount{Show: inside.ShowLink, Source: to, Target: "/" + name})
		}
	}
	for _, name := range []string{"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld-musl-x86_64.path", "alternatives", "ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "ca-certificates", "ca-certificates.conf",
		"crypto-policies", "fonts", "localtime", "timezone", "mime.types", "os-release", "protocols", "services", "gai.conf", "shells", "terminfo", "debian_version", "maven/m2.conf", "maven/logging", "ocamlfind.conf", "ocamlfind.conf.d"} {
		target := "/etc/" + name
		if source, err := l.evalSymlinks(target); err == nil {
			l.add(inside.Mount{Show: inside.ShowBind, Source: source, Target: target})
		}
	}
	l.java()
}

// java shows the settings that Debian's java needs to start: its installation has links to them. The folder
// "management" stays hidden, because it holds JMX passwords.
func (l *layout) java() {
	for _, folder := range l.list("/etc") {
		if !strings.HasPrefix(folder, "java-") {
			continue
		}
		for _, name := range l.list("/etc/" + folder) {
			target := "/etc/" + folder + "/" + name
			if source, err := l.evalSymlinks(target); err == nil && name != "management" {
				l.add(inside.Mount{Show: inside.ShowBind, Source: source, Target: target})
			}
		}
	}
}

// private adds what every sandbox has of its own.
func (l *layout) private() {
	l.add(inside.Mount{Show: inside.ShowDev, Target: "/dev"})
	for _, name := range deviceNames() {
		l.add(inside.Mount{Show: inside.ShowDevice, Source: "/dev/" + name, Target: "/dev/" + name})
	}
	for _, target := range []string{"/tmp", "/var/tmp"} {
		if l.root.Host {
			target = l.canonical(target) // if /tmp is a link, its target must be hidden
		}
		l.add(inside.Mount{Show: inside.ShowScratch, Source: inside.ScratchTmp, Target: target})
	}
	l.add(inside.Mount{Show: inside.ShowScratch, Source: inside.ScratchTmp, Target: "/dev/shm"})
	l.add(inside.Mount{Show: inside.ShowDir, Target: "/proc"})
}

func deviceNames() []string { return []string{"null", "zero", "full", "random", "urandom"} }

// readOnly shows a file or folder that the command needs. It refuses one that holds the home folder.
func (l *layout) readOnly(path, home string) error {
	if path == "/" || home != "" && paths.Within(path, home) {
		return fmt.Errorf("%w: the program needs the folder %q, which holds your whole home folder", ErrCommand, path)
	}
	if !l.exists(path) {
		return fmt.Errorf("%w: there is no %q", ErrCommand, path)
	}
	if m, ok := l.over(path); ok && m.Show == inside.ShowBind && !m.Write && path != m.Target {
		return nil // the command sees it already
	}
	l.bind(path, false)
	return nil
}

// protect makes names in a folder read-only, or watches for them if they do not exist.
func (l *layout) protect(dir string, names []string) {
	for _, name := range names {
		l.way(filepath.Join(dir, name))
	}
}

// pin mounts the writable folders above a protected path over themselves. A mount point cannot be moved. Without this
// the command could move the parent away and put its own tree at the protected path.
func (l *layout) pin(dir string) {
	for {
		m, ok := l.over(dir)
		if !ok || m.Target == dir || !m.Write {
			return
		}
		l.bind(dir, true)
		l.note(dir, notePinned)
		dir = filepath.Dir(dir)
	}
}

// mask hides the secrets that exist and that the command would see. It refuses a workspace inside a secret store, and
// a program that leads into one: a workspace's links and "#!" lines could name any secret there.
func (l *layout) mask(all []string, workspace string, prog *program.Program) error {
	for _, path := range all {
		if !l.exists(path) {
			continue
		}
		store := path
		path = l.canonical(path)
		for _, needed := range prog.ReadOnly {
			if paths.Within(path, needed) && !paths.Within(store, prog.Path) && !paths.Within(path, prog.Path) {
				return fmt.Errorf("%w: %q leads to %q, which lies in %q, where secrets are kept; name the program by its own path", ErrCommand, prog.Path, needed, path)
			}
		}
		info, err := l.lstat(path)
		if err != nil || !l.visible(path) {
			continue
		}
		if workspace != "" && paths.Within(path, workspace) {
			return policyError("the workspace %q lies in %q, where secrets are kept", workspace, path)
		}
		show := inside.ShowVoid
		if info.IsDir() {
			show = inside.ShowNothing
		}
		l.add(inside.Mount{Show: show, Target: path})
	}
	return nil
}

// places makes sure that every mount has a mount point. In read-only folders in memory, the mount point is made
// together with the folder; in a folder of the host it must exist.
func (l *layout) places() error {
	for _, target := range l.targets() {
		m := l.mounts[target]
		if m.Show == inside.ShowLink && (l.root.Host || l.below(target)) {
			delete(l.mounts, target) // something real is shown there
			continue
		}
		above, ok := l.over(filepath.Dir(target))
		if !ok && !l.root.Host || ok && above.Show == inside.ShowScratch {
			continue
		}
		switch above.Show {
		case inside.ShowNothing, inside.ShowCopy, inside.ShowDev:
			rel, _ := filepath.Rel(above.Target, target) // cannot fail: over found the folder above
			file := inside.File{Name: rel}
			if l.shows(m) {
				file.Name += "/"
			}
			above.Files = append(slices.Clip(above.Files), file)
			l.mounts[above.Target] = above
		default:
			if !l.exists(target) && m.Show != inside.ShowDir {
				return fmt.Errorf("%w: there is no %q to show anything at", ErrPolicy, target)
			}
		}
	}
	return nil
}

// below says whether there is a mount beneath target.
func (l *layout) below(target string) bool {
	for other := range l.mounts {
		if other != target && paths.Within(target, other) {
			return true
		}
	}
	return false
}

// shows says whether a mount shows a folder.
func (l *layout) shows(m inside.Mount) bool {
	switch m.Show {
	case inside.ShowVoid, inside.ShowFile, inside.ShowDevice:
		return false
	case inside.ShowBind:
		return l.isDir(m.Source)
	}
	return true
}

// targets lists all targets, parents first. Mounts are made in this order, or a parent would cover its children.
func (l *layout) targets() []string {
	return slices.SortedFunc(maps.Keys(l.mounts), func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
	})
}

// sorted lists all mounts, parents first.
func (l *layout) sorted() []inside.Mount {
	var all []inside.Mount
	for _, target := range l.targets() {
		all = append(all, l.mounts[target])
	}
	return all
}

// homeInside returns the home folder's path inside.
func (s *Sandbox) homeInside() string {
	if s.home == "" || s.home == "/" {
		return "/home/user"
	}
	return s.home
}

// canary picks a host path that must not be reachable inside. The self-check tries to open it.
func (l *layout) canary() []string {
	for _, path := range []string{"/sys", "/boot", "/srv", "/mnt", "/media", "/var/log", "/var/lib", "/root", "/home"} {
		if !l.exists(path) || l.visible(path) || l.below(path) {
			continue
		}
		if _, covered := l.over(path); !covered {
			return []string{path}
		}
	}
	return nil
}
