package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// Bounds of an extension's content.
const (
	MaxFiles = 20_000           // files and links in one extension
	MaxTotal = 512 << 20        // bytes in one extension
	MaxDepth = maxPathDepth - 1 // folders above a file
)

// The modes of a FileSum.
const (
	modeFile = "file" // a regular file
	ModeExec = "exec" // a file that its owner may execute
	ModeLink = "link" // a symbolic link
)

// FileSum is one file of a Tree.
type FileSum struct {
	Path string `json:"path"` // relative, forward slashes
	Mode string `json:"mode"` // modeFile, ModeExec or ModeLink
	Hash string `json:"hash"` // SHA-256 in hex: of the content, or of a link's target
	Size int64  `json:"size"` // bytes
}

// Tree is an extension's content: every file for which IsContent is true, sorted by path.
type Tree struct {
	Files []FileSum `json:"files"`
	// Consent is the manifest's hash without its permissions block and formatting; empty if the manifest is not a
	// JSON object.
	Consent string `json:"consent,omitempty"`
}

// ReadTree measures the extension in dir. It refuses a device, pipe or socket, and content above the bounds. Links
// are measured, not followed.
func ReadTree(dir string) (*Tree, error) {
	root, err := OpenFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("the extension folder %q cannot be opened: %w", dir, safefile.Cause(err))
	}
	defer root.Close()
	r := &treeReader{root: root, tree: &Tree{}, sum: sha256.New(), buffer: make([]byte, 64<<10)}
	if err := r.dir(".", 0); err != nil {
		return nil, fmt.Errorf("reading the extension in %q: %w", dir, err)
	}
	slices.SortFunc(r.tree.Files, func(a, b FileSum) int { return strings.Compare(a.Path, b.Path) })
	return r.tree, nil
}

// HashTree returns the content hash of the extension in dir.
func HashTree(dir string) (string, error) {
	t, err := ReadTree(dir)
	if err != nil {
		return "", err
	}
	return t.Hash(), nil
}

// treeReader walks one folder once, with one buffer and one hash for all files.
type treeReader struct {
	root   *os.Root
	tree   *Tree
	total  int64
	sum    hash.Hash
	buffer []byte
}

func (r *treeReader) dir(dir string, depth int) error {
	if depth > maxPathDepth {
		return fmt.Errorf("%q is nested too deep", dir)
	}
	d, err := r.root.Open(dir)
	if err != nil {
		return fmt.Errorf("%q: %w", dir, safefile.Cause(err))
	}
	entries, err := d.ReadDir(maxEntries)
	d.Close()
	if err != nil && !isEOF(err) {
		return fmt.Errorf("%q: %w", dir, safefile.Cause(err))
	}
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		switch {
		case !IsContent(p):
		case e.IsDir():
			err = r.dir(p, depth+1)
		default:
			err = r.file(p, e)
		}
		if err != nil && !isEOF(err) {
			return err
		}
	}
	return nil
}

func (r *treeReader) file(p string, e fs.DirEntry) error {
	if len(r.tree.Files) == MaxFiles {
		return fmt.Errorf("more than %d files; remove what it does not need to run", MaxFiles)
	}
	f := FileSum{Path: p, Mode: modeFile}
	switch e.Type() {
	case 0:
		if err := r.content(&f); err != nil {
			return err
		}
	case fs.ModeSymlink:
		target, err := r.root.Readlink(p)
		if err != nil {
			return fmt.Errorf("%q: %w", p, safefile.Cause(err))
		}
		f.Mode, f.Size, f.Hash = ModeLink, int64(len(target)), hexSum([]byte(target))
	default:
		return fmt.Errorf("%q is a device, pipe or socket; an extension has only files, folders and links", p)
	}
	r.tree.Files = append(r.tree.Files, f)
	return nil
}

func (r *treeReader) content(f *FileSum) error {
	file, err := r.root.OpenFile(f.Path, os.O_RDONLY|safefile.NoWait, 0)
	if err != nil {
		return fmt.Errorf("%q: %w", f.Path, safefile.Cause(err))
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("%q is not a regular file any more", f.Path)
	}
	if info.Size() > MaxTotal-r.total {
		return fmt.Errorf("more than %d MiB", MaxTotal>>20)
	}
	if info.Mode()&0o100 != 0 {
		f.Mode = ModeExec
	}
	r.sum.Reset()
	var keep strings.Builder
	var to io.Writer = r.sum
	if f.Path == FileName {
		to = io.MultiWriter(r.sum, &keep)
	}
	// The limit also stops at a file that grows while it is read.
	f.Size, err = io.CopyBuffer(to, io.LimitReader(onlyReader{file}, MaxTotal-r.total+1), r.buffer)
	if err != nil {
		return fmt.Errorf("%q: %w", f.Path, safefile.Cause(err))
	}
	if r.total += f.Size; r.total > MaxTotal {
		return fmt.Errorf("more than %d MiB", MaxTotal>>20)
	}
	f.Hash = hex.EncodeToString(r.sum.Sum(nil))
	if f.Path == FileName {
		r.tree.Consent = consentSum([]byte(keep.String()))
	}
	return nil
}

// onlyReader hides *os.File's WriterTo, which would not use the shared buffer.
type onlyReader struct{ io.Reader }

// Hash returns the content hash of the whole tree: "sha256:" and 64 hex digits. It covers each file's path,
// executable bit and content.
func (t *Tree) Hash() string { return t.hash("") }

// ConsentHash returns the hash that a user's consent is bound to (SPEC S-2). Unlike Hash it ignores the manifest's
// formatting and permissions block, which is compared separately.
func (t *Tree) ConsentHash() string { return t.hash(t.Consent) }

func (t *Tree) hash(manifest string) string {
	h := sha256.New()
	io.WriteString(h, "pollux tree 1\n")
	for _, f := range t.Files {
		sum := f.Hash
		if f.Path == FileName && manifest != "" {
			sum = "json " + manifest
		}
		// No path contains a NUL, so two different trees never hash the same text.
		io.WriteString(h, f.Path+"\x00"+f.Mode+"\x00"+sum+"\n")
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// TreeDiff is the difference between two trees, as sorted paths.
type TreeDiff struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Changed []string `json:"changed"`
}

// Since returns what changed from old to t.
func (t *Tree) Since(old *Tree) TreeDiff {
	d := TreeDiff{Added: []string{}, Removed: []string{}, Changed: []string{}}
	before := make(map[string]FileSum, len(old.Files))
	for _, f := range old.Files {
		before[f.Path] = f
	}
	for _, f := range t.Files {
		was, ok := before[f.Path]
		switch {
		case !ok:
			d.Added = append(d.Added, f.Path)
		case was.Hash != f.Hash || was.Mode != f.Mode:
			d.Changed = append(d.Changed, f.Path)
		}
		delete(before, f.Path)
	}
	for p := range before {
		d.Removed = append(d.Removed, p)
	}
	slices.Sort(d.Removed)
	return d
}

// consentSum hashes a manifest in a canonical form: sorted members, no whitespace, no permissions. It is empty if the
// manifest cannot be fully parsed.
func consentSum(data []byte) string {
	if len(data) > maxBytes {
		return ""
	}
	wrong := false
	root, complete := parse(data, func(int, int, string, string) { wrong = true })
	if !complete || wrong || root.kind != kindObject {
		return ""
	}
	root.members = slices.DeleteFunc(root.members, func(m member) bool { return m.name == "permissions" })
	return hexSum(canonical(nil, root))
}

func canonical(out []byte, n *node) []byte {
	switch n.kind {
	case kindString:
		return strconv.AppendQuote(out, n.text)
	case kindNumber, kindBool:
		return append(out, n.text...)
	case kindNull:
		return append(out, "null"...)
	case kindArray:
		out = append(out, '[')
		for _, i := range n.items {
			out = append(canonical(out, i), ',')
		}
		return append(out, ']')
	}
	// The sort is stable, because the order of duplicates decides which one counts.
	sorted := slices.Clone(n.members)
	slices.SortStableFunc(sorted, func(a, b member) int { return strings.Compare(a.name, b.name) })
	out = append(out, '{')
	for _, m := range sorted {
		out = append(strconv.AppendQuote(out, m.name), ':')
		out = append(canonical(out, m.value), ',')
	}
	return append(out, '}')
}

func hexSum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}
