//go:build unix

package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A program is a command that was found, and what it needs to be seen with.
type program struct {
	path     string            // absolute; symbolic links in it are kept, some programs look at them
	readOnly []string          // files and folders that it needs, canonical
	links    map[string]string // symbolic links on the way to it: path → what is written in it
	pathDirs []string          // folders that must be in PATH
}

// pythonName matches the names under which Python is installed.
var pythonName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^python(\d+(\.\d+)*)?$`) })

// isNode says whether name is one under which Node is installed.
func isNode(name string) bool { return name == "node" || name == "nodejs" }

// askTimeout is what an interpreter may take to say where it lives; version
// managers' shims are shell scripts that take a third of a second.
const askTimeout = 20 * time.Second

// within says whether path is dir or lies below it; both canonical.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// find looks a program up as the user's shell would, and follows it to what
// really runs: past version managers' shims, past "#!" lines.
func (s *Sandbox) find(ctx context.Context, name, dir string) (*program, error) {
	p := &program{links: map[string]string{}}
	return p, s.follow(ctx, p, name, dir, 0)
}

func (s *Sandbox) follow(ctx context.Context, p *program, name, dir string, depth int) error {
	path, err := lookup(name, dir)
	if err != nil {
		return err
	}
	if path, err = s.passShim(ctx, path); err != nil {
		return err
	}
	if depth == 0 {
		p.path = path
	} else {
		p.pathDirs = append(p.pathDirs, filepath.Dir(path))
	}
	real, err := p.addLinks(path)
	if err != nil {
		return err
	}
	base := filepath.Base(path)
	if python := pythonName().MatchString(base); python || isNode(base) {
		if err := s.interpreter(ctx, p, path, python, depth); err != nil {
			return err
		}
		return nil
	}
	p.readOnly = append(p.readOnly, belongings(real))
	if depth > 4 {
		return fmt.Errorf("%w: the \"#!\" lines from %q on lead too far", ErrCommand, name)
	}
	if next := hashbang(real); next != "" {
		return s.follow(ctx, p, next, "/", depth+1)
	}
	return nil
}

// lookup finds a program's absolute path.
func lookup(name, dir string) (string, error) {
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if info, found := os.Stat(name); err != nil && found == nil && filepath.IsAbs(name) {
		if info.IsDir() {
			return "", fmt.Errorf("%w: %q is a folder, not a program", ErrCommand, name)
		}
		return "", fmt.Errorf("%w: %q is not executable; make it so with chmod +x, or write the program that reads it before it", ErrCommand, name)
	}
	if err != nil {
		return "", fmt.Errorf("%w: no program %q is found", ErrCommand, name)
	}
	return path, nil
}

// addLinks records the symbolic links on the way to path, and returns its end.
func (p *program) addLinks(path string) (string, error) {
	end, err := tree("").follow(path, func(link, to string) { p.links[link] = to })
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrCommand, err)
	}
	return end, nil
}

// belongings is the least that has to be seen of a program: its own file, or
// the folder that holds it with its libraries where that is known to be one.
func belongings(real string) string {
	bin := filepath.Dir(real)
	if prefix, _, ok := strings.Cut(real, "/Cellar/"); ok && prefix != "" {
		return prefix // Homebrew's packages lean on each other
	}
	for _, mark := range []string{"/versions/", "/installs/", "/toolchains/", "/opt/"} {
		if strings.Contains(real, mark) && filepath.Base(bin) == "bin" {
			return filepath.Dir(bin)
		}
	}
	return real
}

// passShim asks a version manager what its shim would run.
func (s *Sandbox) passShim(ctx context.Context, path string) (string, error) {
	dir := filepath.Dir(path)
	if filepath.Base(dir) != "shims" {
		return path, nil
	}
	manager := strings.TrimPrefix(filepath.Base(filepath.Dir(dir)), ".")
	if !slices.Contains([]string{"pyenv", "rbenv", "nodenv", "goenv", "asdf", "mise"}, manager) {
		return path, nil
	}
	program, err := exec.LookPath(manager)
	if err != nil {
		program = filepath.Join(filepath.Dir(dir), "bin", manager)
	}
	out, err := s.ask(ctx, path, program, "which", filepath.Base(path))
	if err != nil {
		return "", err
	}
	real := strings.TrimSpace(string(out))
	if !filepath.IsAbs(real) {
		return "", fmt.Errorf("%w: %s says that %q is %q", ErrCommand, manager, path, real)
	}
	return real, nil
}

// interpreter adds what a Python or Node installation consists of, as it says itself.
func (s *Sandbox) interpreter(ctx context.Context, p *program, path string, python bool, depth int) error {
	if real := canonical(path); within(path, "/usr") && within(real, "/usr") || within(path, "/bin") && within(real, "/usr") {
		return nil // the system's own, which every sandbox shows
	}
	args := []string{"-p", "JSON.stringify([process.execPath, require('path').dirname(require('path').dirname(process.execPath))])"}
	if python {
		args = []string{"-I", "-c", "import sys, json; print(json.dumps([sys.executable, sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]))"}
	}
	out, err := s.ask(ctx, path, path, args...)
	if err != nil {
		return err
	}
	var answer []string
	if err := json.Unmarshal(out, &answer); err != nil || len(answer) < 2 || slices.ContainsFunc(answer, func(a string) bool { return !filepath.IsAbs(a) }) {
		return fmt.Errorf("%w: asked where it lives, %q answers %q", ErrCommand, path, out)
	}
	if depth == 0 {
		p.path = answer[0]
	}
	p.pathDirs = append(p.pathDirs, filepath.Dir(answer[0]))
	for _, dir := range append(answer[1:], answer[0]) {
		real, err := p.addLinks(dir)
		if err != nil {
			return err
		}
		if prefix, _, ok := strings.Cut(real, "/Cellar/"); ok && prefix != "" {
			real = prefix
		}
		p.readOnly = append(p.readOnly, real)
	}
	return nil
}

// hashbang is the program that runs a script: what its first line names, or
// the one that env would look up. "" when it is none.
func hashbang(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := f.Read(head) // nothing to read is no script
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	rest, ok := bytes.CutPrefix(line, []byte("#!"))
	words := strings.Fields(string(rest))
	if !ok || len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) == "env" {
		for _, w := range words[1:] {
			if !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") {
				return w
			}
		}
		return ""
	}
	return words[0]
}

// ask runs a program of the user's, outside, and remembers its answer for as
// long as about stays the same file and the version managers' choices are as
// they were.
func (s *Sandbox) ask(ctx context.Context, about, program string, args ...string) ([]byte, error) {
	file := s.answerFile(about, program, args)
	if file != "" {
		if data, err := os.ReadFile(file); err == nil {
			return data, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %q could not be asked where it lives: %w", ErrCommand, program, err)
	}
	if file != "" {
		if err := keep(file, out); err != nil {
			s.o.Log.Warn("an interpreter's answer could not be kept", "err", err)
		}
	}
	return out, nil
}

// answerFile names the file for an answer by everything that it depends on.
func (s *Sandbox) answerFile(about, program string, args []string) string {
	if s.o.Cache == "" {
		return ""
	}
	h := sha256.New()
	fmt.Fprintln(h, "1", about, program, args, os.Getenv("PYENV_VERSION"), os.Getenv("PYENV_ROOT"), os.Getenv("ASDF_DIR"), os.Getenv("VIRTUAL_ENV"))
	for _, path := range []string{about, canonical(about), filepath.Join(s.home, ".pyenv/version"), filepath.Join(s.home, ".tool-versions"), filepath.Join(s.home, ".config/mise/config.toml"), "/.tool-versions"} {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintln(h, path, info.Size(), info.ModTime().UnixNano())
		}
	}
	return filepath.Join(s.o.Cache, "interpreter-"+hex.EncodeToString(h.Sum(nil)[:12]))
}

// keep writes a private file in one step.
func keep(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error is the one that counts
	}
	return err
}
