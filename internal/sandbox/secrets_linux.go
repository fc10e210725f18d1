package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pollux-companion/pollux/internal/paths"
)

// secrets lists what is hidden wherever it is visible. A workspace can contain another user's home folder or a part
// of the system.
func (s *Sandbox) secrets() []string {
	all := slices.Concat(s.o.Masked, systemSecrets(), named(secretStores(), s.env, s.home))
	for _, home := range s.homes() {
		all = append(all, s.tree.among(home, secretStores())...)
	}
	return append(all, s.tree.aliases(all)...)
}

// homes lists the home folders that may hold secrets: the user's own, those of the accounts, and those below /home.
// Some machines have group folders in /home and the homes below them.
func (s *Sandbox) homes() []string {
	homes := []string{"/root", s.home}
	for line := range strings.Lines(s.tree.read("/etc/passwd")) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) < 7 {
			continue
		}
		if uid, err := strconv.Atoi(fields[2]); err == nil && (uid == 0 || uid >= 1000 && uid != 65534 || uid == os.Getuid()) {
			homes = append(homes, filepath.Clean(fields[5]))
		}
	}
	for _, name := range s.tree.list("/home") {
		home := "/home/" + name
		homes = append(homes, home)
		entries := s.tree.list(home)
		if slices.ContainsFunc(secretStores(), func(store string) bool {
			first, _, _ := strings.Cut(store, "/")
			return slices.Contains(entries, first)
		}) {
			continue // a user's folder, not a group's
		}
		for _, below := range entries {
			homes = append(homes, home+"/"+below)
		}
	}
	slices.Sort(homes)
	return slices.DeleteFunc(slices.Compact(homes), func(home string) bool { return !filepath.IsAbs(home) || home == "/" })
}

// among joins dir with those of the names that may exist in it. It lists each folder once instead of testing hundreds
// of names.
func (t tree) among(dir string, names []string) []string {
	entries := t.list(dir)
	if len(entries) == 0 && !t.isDir(t.canonical(dir)) {
		return nil
	}
	there := map[string]bool{}
	for _, e := range entries {
		there[e] = true
	}
	var all []string
	below := map[string][]string{} // first part → the rest of the names
	for _, name := range names {
		first, rest, deeper := strings.Cut(name, "/")
		switch {
		case len(entries) == 0: // a folder that cannot be listed may hold any name
			all = append(all, filepath.Join(dir, name))
		case there[first] && deeper:
			below[first] = append(below[first], rest)
		case there[first]:
			all = append(all, filepath.Join(dir, name))
		}
	}
	for first, rest := range below {
		all = append(all, t.among(filepath.Join(dir, first), rest)...)
	}
	return all
}

// read returns the text of a small file, or "" if it cannot be read.
func (t tree) read(path string) string {
	data, _ := t.readFile(path) // "" on error
	return string(data)
}

// A mountPoint is one mount as this process sees it.
type mountPoint struct{ device, root, at string }

// mountPoints lists the mounts, the latest last.
func (t tree) mountPoints() []mountPoint {
	data, err := os.ReadFile(string(t) + "/proc/self/mountinfo")
	if err != nil {
		return nil // then no aliases are known
	}
	octal := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var all []mountPoint
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 5 {
			all = append(all, mountPoint{device: f[2], root: octal.Replace(f[3]), at: octal.Replace(f[4])})
		}
	}
	return all
}

// aliases lists the other paths at which paths can be reached, because part of their file system is mounted twice.
// Without it a second mount would show a hidden secret.
func (t tree) aliases(of []string) []string {
	points := t.mountPoints()
	count := map[string]int{}
	for _, p := range points {
		count[p.device]++
	}
	var all []string
	for _, path := range of {
		if !t.exists(path) {
			continue
		}
		path = t.canonical(path)
		in := mountOf(points, path)
		if count[in.device] < 2 {
			continue
		}
		place := filepath.Join(in.root, strings.TrimPrefix(path, in.at))
		for _, p := range points {
			other := p.at
			switch {
			case p.device != in.device || p == in:
				continue
			case paths.Within(p.root, place):
				other = filepath.Join(p.at, strings.TrimPrefix(place, p.root))
			case !paths.Within(place, p.root):
				continue
			}
			all = append(all, other)
		}
	}
	return all
}

// mountOf returns the mount that a path lies in.
func mountOf(points []mountPoint, path string) (in mountPoint) {
	for _, p := range points {
		if paths.Within(p.at, path) && len(p.at) >= len(in.at) {
			in = p
		}
	}
	return in
}
