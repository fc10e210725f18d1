package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// Parse reads data, the content of the manifest that findings call file. It reads no other file. The manifest is
// never nil: with an Error among the findings it holds what could be understood, so that a broken extension can still
// be named, described and removed.
func Parse(file string, data []byte) (*Manifest, Findings) {
	c := &checker{shown: file, data: data}
	return c.manifest(), c.findings()
}

// manifest parses, checks and decodes the text.
func (c *checker) manifest() *Manifest {
	if len(c.data) > maxBytes {
		c.say(Error, 0, 0, fmt.Sprintf("the manifest has more than %d bytes", maxBytes), "move what is long into files")
		return &Manifest{}
	}
	if wide(c.data) {
		c.say(Error, 0, 0, "the manifest is written in UTF-16, which Gemini CLI cannot read", "save it as UTF-8")
		return &Manifest{}
	}
	root, complete := parse(c.data, func(start, end int, message, fix string) { c.say(Error, start, end, message, fix) })
	c.root, c.half = root, !complete
	c.duplicates(root)
	if complete || root.kind == kindObject {
		c.value(root, table())
	}
	return decode(root, c.data)
}

// wide says whether a text is in UTF-16, as some Windows editors save it. It looks at the byte order mark, or at the
// zero byte of the first letter.
func wide(data []byte) bool {
	if len(data) < 2 || len(data)%2 != 0 {
		return false
	}
	return data[0] == 0xff && data[1] == 0xfe || data[0] == 0xfe && data[1] == 0xff || (data[0] == 0) != (data[1] == 0)
}

// Load reads the manifest in dir and checks it together with the folder's files. The error says why it could not be
// read at all (fs.ErrNotExist if there is none); faults of the content are among the findings. The manifest is nil
// only with an error.
func Load(dir string) (*Manifest, Findings, error) { return load(dir, false) }

// LoadOwn is Load for the extension that pollux itself writes. Only that one may have a name for which Passes is
// true.
func LoadOwn(dir string) (*Manifest, Findings, error) { return load(dir, true) }

func load(dir string, own bool) (*Manifest, Findings, error) {
	root, err := OpenFolder(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("the extension folder %q cannot be opened: %w", dir, safefile.Cause(err))
	}
	defer root.Close()
	c := &checker{shown: filepath.Join(dir, FileName), folder: newFolder(root), own: own}
	f, err := c.folder.open(FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &noManifest{dir}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the manifest in %q cannot be read: %w", dir, err)
	}
	defer f.Close()
	if c.data, err = io.ReadAll(io.LimitReader(f, maxBytes+1)); err != nil {
		return nil, nil, fmt.Errorf("the manifest in %q cannot be read: %w", dir, safefile.Cause(err))
	}
	m := c.manifest()
	m.Found = c.conventions(m)
	return m, c.findings(), nil
}

// OpenFolder is [os.OpenRoot] for a path from elsewhere. It refuses anything but a folder, because opening a pipe
// would wait forever for a writer.
func OpenFolder(dir string) (*os.Root, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: errNoFolder}
	}
	return os.OpenRoot(dir)
}

var errNoFolder = errors.New("it is not a folder")

// noManifest says that a folder holds no manifest.
type noManifest struct{ dir string }

func (e *noManifest) Error() string {
	return fmt.Sprintf("%q is no extension: it has no %s", e.dir, FileName)
}
func (e *noManifest) Is(target error) bool { return target == fs.ErrNotExist }

// fileUse says why a manifest names a file.
type fileUse int

const (
	useText    fileUse = iota // a path elsewhere: only its form is checked
	useRun                    // a tool's program
	useRead                   // a document
	useContext                // part of the first prompt; the CLI skips a missing file
)

// file checks a path in the manifest and, if there is a folder, the file itself.
func (c *checker) file(n *node, use fileUse) {
	err := CheckPath(n.text)
	switch {
	case err != nil && use == useText:
		c.about(Error, n, err.Error(), "name a folder below the workspace, such as plans")
	case err != nil:
		c.about(Error, n, err.Error(), "name a file inside the extension, such as tools/lint.py")
	}
	if err != nil || use == useText {
		return
	}
	if !IsContent(n.text) {
		c.about(Error, n, fmt.Sprintf("%q is not part of the extension's content, so nobody could tell when it changes", n.text), "put the file elsewhere in the extension")
		return
	}
	if use == useContext && strings.Contains(n.text, "..") {
		c.about(Warning, n, "Gemini CLI leaves out context files with .. in the name", "rename the file")
	}
	if c.folder == nil || use == useContext && strings.Contains(n.text, "${workspacePath}") { // depends on the CLI's working folder
		return
	}
	_, err = c.folder.file(n.text)
	var gone *missing
	switch {
	case err == nil:
	case errors.As(err, &gone):
		fix := "create it, or correct the path"
		if gone.near != "" {
			fix = fmt.Sprintf("did you mean %q? The spelling must be the same", gone.near)
		}
		severity := Error
		if use == useContext {
			severity = Warning
		}
		c.about(severity, n, fmt.Sprintf("there is no file %q in the extension", n.text), fix)
	default:
		c.about(Error, n, fmt.Sprintf("%q cannot be used: %v", n.text, err), "put a regular file there")
	}
}

// conventions finds what the CLI takes from the folder by convention. Case is ignored, because on some disks the CLI
// ignores it.
func (c *checker) conventions(m *Manifest) Found {
	var found Found
	found.ContextFiles = c.contextFiles(m)
	c.walk(c.byName(".", "commands"), "", 0, func(rel string) {
		if name, ok := cutSuffixFold(rel, ".toml"); ok {
			found.Commands = append(found.Commands, "/"+strings.ReplaceAll(name, "/", ":"))
		}
	})
	if skills := c.byName(".", "skills"); skills != "" {
		for _, name := range c.names(skills) {
			if c.byName(path.Join(skills, name), "SKILL.md") != "" {
				found.Skills = append(found.Skills, name)
			}
		}
	}
	for _, name := range c.names(c.byName(".", "agents")) {
		if stem, ok := cutSuffixFold(name, ".md"); ok {
			found.Agents = append(found.Agents, stem)
		}
	}
	for _, name := range c.names(c.byName(".", "policies")) {
		if strings.HasSuffix(strings.ToLower(name), ".toml") {
			found.Policies = append(found.Policies, name)
		}
	}
	if hooks := c.byName(".", "hooks"); hooks != "" {
		if file := c.byName(hooks, "hooks.json"); file != "" {
			found.Hooks = true
			found.HookCommands, found.HookEntries = c.hookCommands(file)
		}
	}
	slices.Sort(found.Commands)
	slices.Sort(found.Skills)
	return found
}

func (c *checker) contextFiles(m *Manifest) []string {
	names := m.ContextFiles
	if c.root.get("contextFileName") == nil {
		names = []string{"GEMINI.md"}
	}
	var out []string
	for _, n := range names {
		if _, err := c.folder.file(n); err == nil {
			out = append(out, n)
		} else if errors.Is(err, errOutside) && len(m.ContextFiles) == 0 {
			c.outside(n)
		}
	}
	return out
}

// outside reports a link out of the extension that Gemini CLI would follow.
func (c *checker) outside(name string) {
	c.found = append(c.found, placed{at: len(c.data), Finding: Finding{
		Severity: Error, File: c.shown, Text: name,
		Message: fmt.Sprintf("%q leads out of the extension by a symbolic link, which Gemini CLI follows", name), Fix: "put the file itself there",
	}})
}

// byName returns the path of dir's entry with this name, ignoring case; "" if there is none.
func (c *checker) byName(dir, name string) string {
	for _, e := range c.names(dir) {
		if strings.EqualFold(e, name) {
			return path.Join(dir, e)
		}
	}
	return ""
}

// names lists a folder, or a link to one, sorted; empty if it is not a folder.
func (c *checker) names(dir string) []string {
	if dir == "" {
		return nil
	}
	real, mode, err := c.folder.resolve(dir)
	if errors.Is(err, errOutside) {
		c.outside(dir)
	}
	if err != nil || !mode.IsDir() {
		return nil
	}
	names, err := c.folder.list(real)
	if err != nil {
		return nil
	}
	return names
}

// walk calls f for the files below dir, relative to it, at most nine levels deep.
func (c *checker) walk(dir, rel string, depth int, f func(rel string)) {
	if dir == "" || depth > 8 {
		return
	}
	for _, name := range c.names(dir) {
		next := path.Join(dir, name)
		if _, mode, err := c.folder.resolve(next); err == nil && mode.IsDir() {
			c.walk(next, path.Join(rel, name), depth+1, f)
		} else {
			f(path.Join(rel, name))
		}
	}
}

func cutSuffixFold(s, suffix string) (string, bool) {
	if len(s) <= len(suffix) || !strings.EqualFold(s[len(s)-len(suffix):], suffix) {
		return s, false
	}
	return s[:len(s)-len(suffix)], true
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }
