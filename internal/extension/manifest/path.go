package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/words"
)

// Bounds of the paths in an extension.
const (
	maxPathBytes = 1024
	maxPathDepth = 32
	maxLinks     = 16      // symbolic links on the way to one file
	maxEntries   = 100_000 // in one folder
)

// CheckPath says what is wrong with a path in a manifest or archive, or returns nil. The path must be relative with
// forward slashes, without "..", drives, control characters, or anything that some system reads as another name
// (trailing blanks and dots, streams, devices). It reads no file.
func CheckPath(p string) error {
	switch {
	case p == "":
		return errors.New("the path is empty")
	case len(p) > maxPathBytes:
		return fmt.Errorf("the path has %d bytes and may have %d", len(p), maxPathBytes)
	case !utf8.ValidString(p):
		return errors.New("the path is not UTF-8")
	case strings.ContainsRune(p, '\\'):
		return errors.New("the path has a backslash; write /")
	case p[0] == '/':
		return errors.New("the path is absolute; write it relative to the extension")
	case p[0] == '~' && (len(p) == 1 || p[1] == '/'):
		return errors.New("~ is not replaced here; write the path relative to the extension")
	}
	parts := strings.Split(strings.TrimPrefix(p, "./"), "/")
	if len(parts) > maxPathDepth {
		return fmt.Errorf("the path is more than %d folders deep", maxPathDepth)
	}
	for _, part := range parts {
		if err := checkPart(part); err != nil {
			return err
		}
	}
	return nil
}

func checkPart(part string) error {
	switch {
	case part == "..":
		return errors.New(`the path leaves the extension by ".."`)
	case part == "" || part == ".":
		return errors.New(`the path has an empty part or "."`)
	case strings.ContainsRune(part, ':'):
		return errors.New("the path has a colon: to Windows a drive or a hidden stream")
	case strings.TrimRight(part, ". ") != part:
		return errors.New("a part of the path ends with a dot or blank, which Windows leaves out")
	case reserved(part):
		return fmt.Errorf("the name %q is reserved by Windows", part)
	}
	if i := strings.IndexFunc(part, func(r rune) bool { return r == '\n' || r == '\t' || words.Hidden(r) }); i >= 0 {
		r, _ := utf8.DecodeRuneInString(part[i:])
		return fmt.Errorf("the path holds the invisible character U+%04X", r)
	}
	return nil
}

// reserved says whether Windows opens a device under this name, whatever its extension.
func reserved(name string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	switch stem = strings.TrimRight(stem, " "); stem {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	rest, com := strings.CutPrefix(stem, "com")
	if !com {
		var lpt bool
		if rest, lpt = strings.CutPrefix(stem, "lpt"); !lpt {
			return false
		}
	}
	return utf8.RuneCountInString(rest) == 1 && strings.Contains("0123456789¹²³", rest)
}

// caches are files and folders, in lower case, that programs and desktops add to an extension's own.
const caches = " __pycache__ .pytest_cache .mypy_cache .ruff_cache .ds_store thumbs.db desktop.ini "

// IsContent says whether the file or folder at p (relative, forward slashes) belongs to an extension's content. .git,
// install metadata, the user's .env and caches do not. They are not hashed (SPEC S-2), so a manifest cannot name
// them, and an install takes none of them from a source except .git. Case is ignored, because some disks ignore it.
func IsContent(p string) bool {
	for i, part := range strings.Split(p, "/") {
		part = strings.ToLower(part)
		switch {
		case part == ".git", strings.Contains(caches, " "+part+" ") && part != "":
			return false
		case i == 0 && (part == ".env" || part == InstallFileName):
			return false
		}
	}
	return true
}

// errOutside marks a link out of the extension.
var errOutside = errors.New("it leads out of the extension by a symbolic link")

// Open opens a file that an extension names. It stays inside root even if a folder on the way becomes a symbolic link
// at this moment; links that stay inside are followed. It refuses what CheckPath and IsContent refuse, devices,
// pipes, and a spelling that differs from the disk's. A missing file is fs.ErrNotExist.
func Open(root *os.Root, name string) (*os.File, error) { return newFolder(root).open(name) }

// folder answers questions about one extension's files, and lists each directory once. Names are spelled as on disk,
// even if the file system would accept another spelling. It is not safe for concurrent use.
type folder struct {
	root  *os.Root
	lists map[string][]string // directory → names, sorted
}

func newFolder(root *os.Root) *folder {
	return &folder{root: root, lists: map[string][]string{}}
}

// open is Open.
func (f *folder) open(name string) (*os.File, error) {
	real, err := f.file(name)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", name, err)
	}
	file, err := f.root.OpenFile(real, os.O_RDONLY|safefile.NoWait, 0)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", name, safefile.Cause(err))
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, fmt.Errorf("%q is not a regular file", name)
	}
	return file, nil
}

// list returns the names in a directory, sorted; dir is relative, "." for the root. It reads names alone, because in
// an [os.Root] ReadDir asks about every entry.
func (f *folder) list(dir string) ([]string, error) {
	if l, ok := f.lists[dir]; ok {
		return l, nil
	}
	d, err := f.root.Open(dir)
	if err != nil {
		return nil, safefile.Cause(err)
	}
	defer d.Close()
	l, err := d.Readdirnames(maxEntries)
	if err != nil && len(l) == 0 && !isEOF(err) {
		return nil, safefile.Cause(err)
	}
	if len(l) == maxEntries {
		return nil, fmt.Errorf("the folder %q holds too many files", dir)
	}
	slices.Sort(l)
	f.lists[dir] = l
	return l, nil
}

// missing says that a name does not exist, and suggests a near one.
type missing struct{ near string }

func (e *missing) Error() string        { return "there is no such file" }
func (e *missing) Is(target error) bool { return target == fs.ErrNotExist }

// file resolves the name of a regular file.
func (f *folder) file(name string) (real string, err error) {
	if err := CheckPath(name); err != nil {
		return "", err
	}
	real, mode, err := f.resolve(name)
	switch {
	case err != nil:
		return "", err
	case mode.IsDir():
		return "", errors.New("it is a folder and must be a file")
	case !mode.IsRegular():
		return "", errors.New("it is a device, pipe or socket and must be a file")
	case !IsContent(name) || !IsContent(real):
		return "", errors.New("it lies in a part of the folder that is not the extension's content")
	}
	return real, nil
}

// resolve follows name part by part, including links, and never leaves the root.
func (f *folder) resolve(name string) (real string, mode fs.FileMode, err error) {
	pending := strings.Split(name, "/")
	at, links := ".", 0
	mode = fs.ModeDir
	for len(pending) > 0 {
		part := pending[0]
		pending = pending[1:]
		switch {
		case part == "" || part == ".":
			continue
		case part == ".." && at == ".":
			return "", 0, errOutside
		case part == "..":
			at, mode = path.Dir(at), fs.ModeDir
			continue
		case !mode.IsDir():
			return "", 0, &missing{}
		}
		kind, err := f.entry(at, part)
		if gone := (*missing)(nil); errors.As(err, &gone) && gone.near != "" {
			gone.near = path.Join(append([]string{gone.near}, pending...)...)
		}
		if err != nil {
			return "", 0, err
		}
		next := path.Join(at, part)
		if kind&fs.ModeSymlink == 0 {
			at, mode = next, kind
			continue
		}
		if links++; links > maxLinks {
			return "", 0, errors.New("it is behind too many symbolic links")
		}
		target, err := f.root.Readlink(next)
		if err != nil {
			return "", 0, safefile.Cause(err)
		}
		target = strings.ReplaceAll(target, string(os.PathSeparator), "/")
		if strings.HasPrefix(target, "/") || strings.ContainsAny(target, ":\\") {
			return "", 0, errOutside
		}
		pending = append(strings.Split(target, "/"), pending...)
	}
	return at, mode, nil
}

// entry returns what a name in a directory is, in exactly this spelling.
func (f *folder) entry(dir, name string) (fs.FileMode, error) {
	names, err := f.list(dir)
	if err != nil {
		return 0, err
	}
	if slices.Contains(names, name) {
		info, err := f.root.Lstat(path.Join(dir, name))
		switch {
		case err == nil:
			return info.Mode().Type(), nil
		case !errors.Is(err, fs.ErrNotExist): // otherwise it has gone since
			return 0, safefile.Cause(err)
		}
	}
	near, _ := words.Closest(name, names, words.Third(name))
	if near == name {
		near = ""
	}
	if near != "" {
		near = path.Join(dir, near)
	}
	return 0, &missing{near: near}
}
