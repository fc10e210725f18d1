//go:build unix

package program

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

// pythonName matches the names under which Python is installed.
var pythonName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^python(\d+(\.\d+)*)?$`) })

// IsNode says whether Node is installed under this name.
func IsNode(name string) bool { return name == "node" || name == "nodejs" }

// Find looks up a program as the user's shell would. It follows version managers' shims and "#!" lines to what really
// runs. An error says why it cannot be run or shown.
func Find(s Search) (*Program, error) {
	f := finder{Program: Program{Links: map[string]string{}}, shown: s.Shown}
	for _, dir := range s.Guarded {
		f.guarded = append(f.guarded, paths.Real(dir))
	}
	if err := f.follow(s.Name, s.Dir, s.Dir, 0); err != nil {
		return nil, err
	}
	all := f.ReadOnly
	f.ReadOnly = slices.DeleteFunc(slices.Clone(all), func(path string) bool {
		return slices.ContainsFunc(all, func(other string) bool { return path != other && paths.Within(other, path) })
	})
	return &f.Program, nil
}

// A finder collects what a program needs.
type finder struct {
	Program
	guarded []string // folders that must not be shown, canonical
	shown   []string // folders that are shown anyway
}

// follow adds the program called name, relative to the folder dir. The files of the folder project choose versions.
func (f *finder) follow(name, dir, project string, depth int) error {
	path, err := lookup(name, dir)
	if err != nil {
		return err
	}
	if path, err = passShim(path, project); err != nil {
		return err
	}
	real, err := f.addLinks(path)
	if err != nil {
		return err
	}
	if depth > 0 && !startsAsProgram(real) {
		return fmt.Errorf("%q, which a \"#!\" line names, is no program; correct that line", path)
	}
	base := filepath.Base(path)
	switch {
	case pythonName().MatchString(base):
		err = f.python(path, real)
	case IsNode(base) && IsNode(filepath.Base(real)):
		path = real // Node resolves links itself
		f.node(real)
	}
	if err != nil {
		return err
	}
	if depth == 0 {
		f.Path = path
	}
	if depth > 0 || pythonName().MatchString(base) || IsNode(base) {
		f.PathDirs = append(f.PathDirs, filepath.Dir(path))
	}
	f.belongings(real)
	if depth > 4 {
		return fmt.Errorf("the \"#!\" lines from %q on lead too far", name)
	}
	if next := hashbang(real); next != "" {
		return f.follow(next, "/", project, depth+1)
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
			return "", fmt.Errorf("%q is only in %q, and the sandbox passes over folders of PATH that are not absolute; name the program by its path", name, dir)
		}
		return "", fmt.Errorf("no program %q is found in PATH; install it, or add its folder to PATH", name)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	name = filepath.Clean(name)
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return "", fmt.Errorf("no program %q is found", name)
	case info.IsDir():
		return "", fmt.Errorf("%q is a folder, not a program", name)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%q is not a file", name)
	case !executable(name):
		return "", fmt.Errorf("%q is not executable; make it so with chmod +x, or write the program that reads it before it", name)
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
func (f *finder) addLinks(path string) (string, error) {
	end, err := paths.Follow(os.Readlink, path, func(link, to string) { f.Links[link] = to })
	if err != nil {
		return "", err
	}
	return end, nil
}

// startsAsProgram says whether a file begins like one that the kernel runs. Some file systems let every file be run,
// and a script must not have any file shown by naming it.
func startsAsProgram(path string) bool {
	head, err := readHead(path, 4)
	if err != nil {
		return os.IsPermission(err) // it may be run though not read; then nothing inside can read it either
	}
	for _, magic := range []string{"#!", "\x7fELF", "\xfe\xed\xfa\xce", "\xfe\xed\xfa\xcf", "\xce\xfa\xed\xfe", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe", "\xca\xfe\xba\xbf"} {
		if strings.HasPrefix(string(head), magic) {
			return true
		}
	}
	return false
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
	file, _, err := safefile.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, max))
}

// readSmall reads a file about programs, at most 64 KiB.
func readSmall(path string) (string, error) {
	data, _, err := safefile.ReadRegular(path, 64<<10)
	return string(data), err
}
