package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// Limits bound what an extension may contain; a nil *Limits means defaultLimits.
type Limits struct {
	Files    int   // entries of any kind, including folders
	Depth    int   // folders above a file
	FileSize int64 // bytes of one file
	Total    int64 // bytes of all files
	Archive  int64 // bytes of a packed archive
	Ratio    int64 // unpacked bytes per packed byte, beyond the first 16 MiB
}

// defaultLimits returns limits far above real extensions (about 10,000 files with node_modules) and far below what
// fills a disk.
func defaultLimits() Limits {
	return Limits{Files: 2 * manifest.MaxFiles, Depth: manifest.MaxDepth, FileSize: 256 << 20, Total: manifest.MaxTotal, Archive: 256 << 20, Ratio: 200}
}

func (l *Limits) orDefault() Limits {
	if l == nil {
		return defaultLimits()
	}
	return *l
}

// ErrRefused marks a tree or archive that is refused because of an entry, which it names.
var ErrRefused = errors.New("refused")

// refusal is an ErrRefused that names the entry and the reason.
type refusal struct{ entry, why string }

func (r *refusal) Error() string        { return fmt.Sprintf("%q %s", r.entry, r.why) }
func (r *refusal) Is(target error) bool { return target == ErrRefused }

func refuse(entry, format string, args ...any) error {
	return &refusal{entry, fmt.Sprintf(format, args...)}
}

// meter counts a tree against its limits while the tree is read or written.
type meter struct {
	Limits
	files int
	bytes int64
}

// entry counts one entry at a slash-separated path.
func (m *meter) entry(name string) error {
	if m.files++; m.files > m.Files {
		return refuse(name, "is one entry too many: an extension may have %d", m.Files)
	}
	if strings.Count(name, "/") > m.Depth {
		return refuse(name, "lies deeper than %d folders", m.Depth)
	}
	return nil
}

// size counts n more bytes of a file that has size so far.
func (m *meter) size(name string, n, size int64) error {
	if m.bytes += n; m.bytes > m.Total {
		return refuse(name, "goes beyond the %d MiB that an extension may have in all", m.Total>>20)
	}
	if size > m.FileSize {
		return refuse(name, "has more than %d MiB", m.FileSize>>20)
	}
	return nil
}

// checkTree walks a tree and refuses what no extension needs and an attacker might use: a link that leads out, a
// device, a pipe, a socket, a set-uid file, too many or too large files. It follows no link. Nil limits are
// defaultLimits.
func checkTree(dir string, l *Limits) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	m := &meter{Limits: l.orDefault()}
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("reading %q: %w", name, err)
		}
		if name == "." {
			return nil
		}
		if d.IsDir() && name == ".git" {
			return fs.SkipDir // git made it, and only git reads it
		}
		if err := m.entry(name); err != nil {
			return err
		}
		return checkEntry(root, m, name, d)
	})
}

func checkEntry(root *os.Root, m *meter, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return fmt.Errorf("reading %q: %w", name, err)
	}
	mode := info.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		target, err := root.Readlink(filepath.FromSlash(name))
		if err != nil {
			return err
		}
		return checkLink(root, name, target)
	case mode.IsDir():
		return nil
	case !mode.IsRegular():
		return refuse(name, "is %s, which an extension cannot hold", modeNoun(mode))
	case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return refuse(name, "would run with another user's rights (set-uid or set-gid)")
	}
	return m.size(name, info.Size(), info.Size())
}

func modeNoun(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "neither a file nor a folder"
}

// checkLink refuses a symbolic link that leads out of root, by its text or through other links. A link that leads
// nowhere is harmless and allowed.
func checkLink(root *os.Root, name, target string) error {
	if err := checkTarget(name, target); err != nil {
		return err
	}
	_, err := root.Stat(filepath.FromSlash(name))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return refuse(name, "is a link to %q, which leads out of the extension or in a circle", target)
}

// checkTarget is the part of checkLink that checks only the text, for links that do not exist yet.
func checkTarget(name, target string) error {
	slashed := filepath.ToSlash(target)
	switch {
	case target == "" || strings.ContainsAny(target, "\x00"):
		return refuse(name, "is a link without a usable target")
	case path.IsAbs(slashed) || filepath.IsAbs(target) || strings.Contains(target, `\`) || hasDrive(slashed):
		return refuse(name, "is a link to the absolute path %q; links must stay inside the extension", target)
	case !filepath.IsLocal(filepath.FromSlash(path.Join(path.Dir(name), slashed))) && path.Join(path.Dir(name), slashed) != ".":
		return refuse(name, "is a link to %q, which leads out of the extension", target)
	}
	return nil
}

func hasDrive(p string) bool { return len(p) > 1 && p[1] == ':' }

// copyTree copies the folder from into the existing empty folder to, without what is not extension content
// (manifest.IsContent). Links stay links; modes become 0755 or 0644, depending on the owner's execute bit. It refuses
// what checkTree refuses, before it copies it.
func copyTree(from, to string, l *Limits) error {
	src, err := manifest.OpenFolder(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	m := &meter{Limits: l.orDefault()}
	return fs.WalkDir(src.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("reading %q: %w", filepath.Join(from, name), err)
		}
		if name == "." {
			return nil
		}
		if !manifest.IsContent(name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if err := m.entry(name); err != nil {
			return err
		}
		return copyEntry(src, dst, m, name, d)
	})
}

func copyEntry(src, dst *os.Root, m *meter, name string, d fs.DirEntry) error {
	local := filepath.FromSlash(name)
	switch {
	case d.IsDir():
		return dst.Mkdir(local, 0o755)
	case d.Type()&fs.ModeSymlink != 0:
		target, err := src.Readlink(local)
		if err != nil {
			return err
		}
		if err := checkLink(src, name, target); err != nil {
			return err
		}
		return dst.Symlink(target, local)
	case !d.Type().IsRegular():
		return refuse(name, "is %s, which an extension cannot hold", modeNoun(d.Type()))
	}
	in, err := src.OpenFile(local, os.O_RDONLY|safefile.NoWait, 0)
	if err != nil {
		return fmt.Errorf("reading %q: %w", name, err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // replaced since the folder was listed
		return refuse(name, "is %s, which an extension cannot hold", modeNoun(info.Mode()))
	}
	return writeFile(dst, m, name, info.Mode(), in, -1)
}

// writeFile writes one new file of a tree and counts its bytes. It refuses more than declared bytes, unless declared
// is negative.
func writeFile(dst *os.Root, m *meter, name string, mode fs.FileMode, in io.Reader, declared int64) error {
	perm := fs.FileMode(0o644)
	if mode&0o100 != 0 {
		perm = 0o755
	}
	out, err := dst.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	defer out.Close()
	buf := make([]byte, 64<<10)
	var size int64
	for {
		n, readErr := in.Read(buf)
		size += int64(n)
		if declared >= 0 && size > declared {
			return refuse(name, "holds more than the %d bytes that it declares", declared)
		}
		if err := m.size(name, int64(n), size); err != nil {
			return err
		}
		if _, err := out.Write(buf[:n]); err != nil {
			return err
		}
		if readErr == io.EOF {
			return out.Close()
		}
		if readErr != nil {
			return fmt.Errorf("reading %q: %w", name, readErr)
		}
	}
}
