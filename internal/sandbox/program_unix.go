//go:build unix

package sandbox

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// Nothing here runs a program: whoever can write to the workspace could have put it there. Links, folders and
// configuration files say where a program lives, and they can never show more than an installation.

// A program is a command that was found, and what must be visible for it.
type program struct {
	path     string            // absolute; links in it are kept, because some programs look at them
	readOnly []string          // the files and folders that it needs, canonical
	links    map[string]string // symbolic links on the way to it: path → target
	pathDirs []string          // folders that must be in PATH
	guarded  []string          // folders that no readOnly folder may contain, canonical: home, workspace
}

// pythonName matches the names under which Python is installed.
var pythonName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^python(\d+(\.\d+)*)?$`) })

// isNode says whether Node is installed under this name.
func isNode(name string) bool { return name == "node" || name == "nodejs" }

// find looks up the program of c as the user's shell would. It follows version managers' shims and "#!" lines to what
// really runs.
func (s *Sandbox) find(c Command) (*program, error) {
	p := &program{links: map[string]string{}}
	for _, dir := range []string{s.home, c.Workspace} {
		if dir != "" {
			p.guarded = append(p.guarded, paths.Real(dir))
		}
	}
	dir := cmp.Or(c.Dir, cmp.Or(c.Workspace, "/"))
	if err := p.follow(c.Args[0], dir, dir, 0); err != nil {
		return nil, err
	}
	all := p.readOnly
	p.readOnly = slices.DeleteFunc(slices.Clone(all), func(path string) bool {
		return slices.ContainsFunc(all, func(other string) bool { return path != other && paths.Within(other, path) })
	})
	return p, nil
}

// follow adds the program called name, relative to the folder dir. The files of the folder project choose versions.
func (p *program) follow(name, dir, project string, depth int) error {
	path, err := lookup(name, dir)
	if err != nil {
		return err
	}
	if path, err = passShim(path, project); err != nil {
		return err
	}
	real, err := p.addLinks(path)
	if err != nil {
		return err
	}
	base := filepath.Base(path)
	switch {
	case pythonName().MatchString(base):
		err = p.python(path, real)
	case isNode(base) && isNode(filepath.Base(real)):
		path = real // Node resolves links itself
		p.node(real)
	}
	if err != nil {
		return err
	}
	if depth == 0 {
		p.path = path
	}
	if depth > 0 || pythonName().MatchString(base) || isNode(base) {
		p.pathDirs = append(p.pathDirs, filepath.Dir(path))
	}
	p.belongings(real)
	if depth > 4 {
		return fmt.Errorf("%w: the \"#!\" lines from %q on lead too far", ErrCommand, name)
	}
	if next := hashbang(real); next != "" {
		return p.follow(next, "/", project, depth+1)
	}
	return nil
}

// relativeInPath returns the relative folder of PATH that holds a program, or "".
func relativeInPath(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if dir = cmp.Or(dir, "."); !filepath.IsAbs(dir) && executable(dir+"/"+name) {
			return dir
		}
	}
	return ""
}

// lookup returns a program's absolute path. It skips relative folders of PATH: their contents depend on the current
// folder.
func lookup(name, dir string) (string, error) {
	if !strings.Contains(name, "/") {
		if path, ok := inPath(name, ""); ok {
			return path, nil
		}
		if dir := relativeInPath(name); dir != "" {
			return "", fmt.Errorf("%w: %q is only in %q, a folder of PATH that is not absolute and counts for nothing here; name the program by its path", ErrCommand, name, dir)
		}
		return "", fmt.Errorf("%w: no program %q is found in PATH; install it, or add its folder to PATH", ErrCommand, name)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	name = filepath.Clean(name)
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: no program %q is found", ErrCommand, name)
	case info.IsDir():
		return "", fmt.Errorf("%w: %q is a folder, not a program", ErrCommand, name)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%w: %q is not a file", ErrCommand, name)
	case !executable(name):
		return "", fmt.Errorf("%w: %q is not executable; make it so with chmod +x, or write the program that reads it before it", ErrCommand, name)
	}
	return name, nil
}

// inPath finds a program in the absolute folders of PATH, except one folder.
func inPath(name, but string) (string, bool) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if path := filepath.Join(dir, name); filepath.IsAbs(dir) && filepath.Clean(dir) != but && executable(path) {
			return path, true
		}
	}
	return "", false
}

// executable says whether path is a file that the user may run.
func executable(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	_, err = exec.LookPath(path) // with a slash in it, LookPath searches nothing
	return err == nil
}

// addLinks records the symbolic links on the way to path, and returns the resolved path.
func (p *program) addLinks(path string) (string, error) {
	end, err := tree("").follow(path, func(link, to string) { p.links[link] = to })
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrCommand, err)
	}
	return end, nil
}

// hashbang returns the interpreter of a script from its first line, or the program that env would look up; "" if
// there is none.
func hashbang(path string) string {
	head, err := readHead(path, 256)
	line, _, _ := bytes.Cut(head, []byte("\n"))
	rest, ok := bytes.CutPrefix(line, []byte("#!"))
	words := strings.Fields(string(rest))
	if err != nil || !ok || len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) == "env" {
		return envProgram(words[1:])
	}
	return words[0]
}

// envProgram returns the program that env runs with these arguments.
func envProgram(words []string) string {
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "-u" || w == "--unset" || w == "-C" || w == "--chdir" || w == "-P":
			i++ // its argument
		case w == "-S" || w == "--split-string":
		case strings.HasPrefix(w, "--split-string="):
			return envProgram(append([]string{strings.TrimPrefix(w, "--split-string=")}, words[i+1:]...))
		case strings.HasPrefix(w, "-") && strings.Contains(w, "S") && w[1] != '-' && !strings.HasPrefix(w, "-u") && !strings.HasPrefix(w, "-C"):
			if _, after, _ := strings.Cut(w, "S"); after != "" {
				return envProgram(append([]string{after}, words[i+1:]...))
			}
		case !strings.HasPrefix(w, "-") && !strings.Contains(w, "="):
			return strings.Trim(w, `"'`)
		}
	}
	return ""
}

// readHead reads the first max bytes of a file. It never blocks, because the file can be of any kind.
func readHead(path string, max int64) ([]byte, error) {
	f, _, err := safefile.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, max))
}

// readSmall reads a file about programs, at most 64 KiB.
func readSmall(path string) (string, error) {
	data, _, err := safefile.ReadRegular(path, 64*kib)
	return string(data), err
}
