package source

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/words"
)

// archiveFormat returns "zip" or "tar.gz" according to the file's first bytes, whatever its name.
func archiveFormat(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 4)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	switch head = head[:n]; {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return "zip", nil
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return "tar.gz", nil
	}
	return "", usagef("the file %q is neither a .zip nor a .tar.gz archive", file)
}

// unpack unpacks an archive file into the existing empty folder to. It refuses, by name, entries and links that lead
// out, devices, set-uid files, names that collide on any system, and archives that unpack to too much. Nil limits are
// defaultLimits. After an error the caller removes what was written.
func unpack(file, to string, l *Limits) error {
	format, err := archiveFormat(file)
	if err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	u := &unpacker{m: &meter{Limits: l.orDefault()}, seen: map[string]string{}}
	if info.Size() > u.m.Archive {
		return refuse(filepath.Base(file), "has %d bytes; an archive may have %d", info.Size(), u.m.Archive)
	}
	if u.root, err = os.OpenRoot(to); err != nil {
		return err
	}
	defer u.root.Close()
	if format == "zip" {
		err = u.zip(f, info.Size())
	} else {
		err = u.tarGz(f)
	}
	if err != nil {
		return fmt.Errorf("unpacking %q: %w", file, err)
	}
	return u.makeLinks()
}

// unpacker is the state of unpacking one archive.
type unpacker struct {
	root  *os.Root
	m     *meter
	seen  map[string]string // folded path → the name that has it
	links [][2]string       // name and target; made after all files, so that no file is written through a link
}

// name checks an entry's name and returns it clean; "" for the top folder itself.
func (u *unpacker) name(raw string, dir bool) (string, error) {
	trimmed := strings.TrimSuffix(raw, "/")
	for strings.HasPrefix(trimmed, "./") {
		trimmed = trimmed[2:]
	}
	if trimmed == "." || trimmed == "" && dir {
		return "", nil
	}
	if err := manifest.CheckPath(trimmed); err != nil {
		return "", refuse(words.Shorten(raw, 200), "is refused: %v", err)
	}
	for part := range strings.SplitSeq(trimmed, "/") {
		if strings.EqualFold(part, ".git") {
			return "", refuse(raw, "belongs to git's own folder, whose settings can run programs; pack the extension without it (pollux extensions export does)")
		}
	}
	if err := u.m.entry(trimmed); err != nil {
		return "", err
	}
	return trimmed, u.claim(trimmed, dir)
}

// claim reserves a path and the folders above it, which count as entries too. It refuses a second path that is the
// same if case is ignored.
func (u *unpacker) claim(name string, dir bool) error {
	for p := name; p != "."; p = path.Dir(p) {
		folded := strings.ToLower(strings.ToUpper(p))
		old, taken := u.seen[folded]
		isDir := dir || p != name
		switch {
		case !taken:
			mark := p
			if isDir {
				mark += "/"
			}
			u.seen[folded] = mark
			if p != name { // a folder without an entry of its own
				if err := u.m.entry(p); err != nil {
					return err
				}
			}
		case old == p+"/" && isDir: // a folder may have several entries
		case strings.TrimSuffix(old, "/") == p:
			return refuse(name, "is in the archive twice")
		default:
			return refuse(name, "collides with %q where capital and small letters are the same", strings.TrimSuffix(old, "/"))
		}
	}
	return nil
}

// add makes one entry.
func (u *unpacker) add(raw string, mode fs.FileMode, link string, in io.Reader, size int64) error {
	name, err := u.name(raw, mode.IsDir())
	if err != nil || name == "" {
		return err
	}
	if mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return refuse(name, "would run with another user's rights (set-uid or set-gid)")
	}
	local := filepath.FromSlash(name)
	switch {
	case mode.IsDir():
		return u.root.MkdirAll(local, 0o755)
	case mode&fs.ModeSymlink != 0:
		if err := checkTarget(name, link); err != nil {
			return err
		}
		u.links = append(u.links, [2]string{name, link})
		return nil
	case !mode.IsRegular():
		return refuse(name, "is %s, which an extension cannot hold", modeNoun(mode))
	}
	if err := u.root.MkdirAll(filepath.Dir(local), 0o755); err != nil {
		return err
	}
	return writeFile(u.root, u.m, name, mode, in, size)
}

// makeLinks makes the links that add postponed, and then checks where each one really leads.
func (u *unpacker) makeLinks() error {
	for _, l := range u.links {
		local := filepath.FromSlash(l[0])
		if err := u.root.MkdirAll(filepath.Dir(local), 0o755); err != nil {
			return err
		}
		if err := u.root.Symlink(l[1], local); err != nil {
			return err
		}
	}
	for _, l := range u.links {
		if err := checkLink(u.root, l[0], l[1]); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) zip(f *os.File, size int64) error {
	if err := boundDirectory(f, size, u.m.Files); err != nil {
		return err
	}
	r, err := zip.NewReader(f, size)
	if err != nil {
		return fmt.Errorf("it is damaged: %w", err)
	}
	for _, e := range r.File {
		if e.Flags&1 != 0 {
			return refuse(e.Name, "is encrypted")
		}
		if n := e.UncompressedSize64; n > 16<<20 && n/max(1, e.CompressedSize64) > uint64(u.m.Ratio) {
			return refuse(e.Name, "unpacks to more than %d times its size", u.m.Ratio)
		}
		if err := u.zipEntry(e); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) zipEntry(e *zip.File) error {
	in, err := e.Open()
	if err != nil {
		return fmt.Errorf("%q is damaged: %w", e.Name, err)
	}
	defer in.Close()
	link := ""
	if e.Mode()&fs.ModeSymlink != 0 {
		text, err := io.ReadAll(io.LimitReader(in, 4097))
		if err != nil || len(text) > 4096 {
			return refuse(e.Name, "is a link without a usable target")
		}
		link = string(text)
	}
	return u.add(e.Name, e.Mode(), link, in, int64(min(e.UncompressedSize64, 1<<62)))
}

// boundDirectory checks the end of a zip file before the reader builds its list, which takes hundreds of bytes for
// each 46-byte entry of the directory.
func boundDirectory(f io.ReaderAt, size int64, files int) error {
	buf := make([]byte, min(size, 22+1<<16))
	if _, err := f.ReadAt(buf, size-int64(len(buf))); err != nil && err != io.EOF {
		return err
	}
	i := bytes.LastIndex(buf, []byte("PK\x05\x06"))
	if i < 0 || len(buf)-i < 22 {
		return errors.New("it is damaged: no directory at its end")
	}
	end := size - int64(len(buf)-i)
	length, offset := int64(binary.LittleEndian.Uint32(buf[i+12:])), int64(binary.LittleEndian.Uint32(buf[i+16:]))
	if length == 0xffffffff || offset == 0xffffffff || max(length, end-offset) > int64(files)*512 {
		return refuse("the archive", "lists more than %d entries", files)
	}
	return nil
}

func (u *unpacker) tarGz(f io.Reader) error {
	packed := &counter{r: f}
	gz, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("it is damaged: %w", err)
	}
	ratio := &ratioReader{packed: packed, r: gz, limit: u.m.Ratio}
	r := tar.NewReader(ratio)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is damaged: %w", err)
		}
		mode := h.FileInfo().Mode()
		switch h.Typeflag {
		case tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeFifo, tar.TypeChar, tar.TypeBlock:
		case tar.TypeXGlobalHeader: // the comment of git archive
			continue
		case tar.TypeLink:
			return refuse(h.Name, "is a hard link, which could lead to a file outside")
		default:
			return refuse(h.Name, "is of a kind (%q) that an extension cannot hold", h.Typeflag)
		}
		if err := u.add(h.Name, mode, h.Linkname, r, h.Size); err != nil {
			return err
		}
	}
}

// counter counts the bytes read, and reports every further MiB to a terminal.
type counter struct {
	r        io.Reader
	n        int64
	progress io.Writer // nil for none
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	before := c.n >> 20
	if c.n += int64(n); c.progress != nil && c.n>>20 > before {
		fmt.Fprintf(c.progress, "\rreceived %d MiB", c.n>>20)
	}
	if errors.Is(err, io.EOF) && c.progress != nil && c.n>>20 > 0 {
		fmt.Fprintln(c.progress)
	}
	return n, err
}

// ratioReader refuses a stream whose unpacked size is out of proportion to its packed size.
type ratioReader struct {
	packed *counter
	r      io.Reader
	n      int64
	limit  int64
}

func (r *ratioReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.n += int64(n)
	if r.n > 16<<20 && r.n/max(1, r.packed.n) > r.limit {
		return n, refuse("the archive", "unpacks to more than %d times its size", r.limit)
	}
	return n, err
}
