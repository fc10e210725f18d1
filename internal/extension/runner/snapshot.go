package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/sandbox"
)

// maxContent bounds the content of an extension whose tools are run: all of it is
// held in memory, so that what was hashed is what runs.
const maxContent = 16 << 20

// maxAliases bounds the files that links add.
const maxAliases = 20_000

// A snapshot is the content of an extension as it was read once. Its manifest
// and files are those of its tree, whatever becomes of the folder meanwhile.
type snapshot struct {
	dir      string
	tree     *manifest.Tree
	manifest *manifest.Manifest
	files    []sandbox.CopyFile // links are the files that they lead to
}

// errMoved says that somebody is writing to the extension.
var errMoved = errors.New("its files change while they are read; try again when whatever writes them has finished")

// take reads an extension. Every file is compared with the hash of the tree
// that consent is bound to (SPEC S-2).
func take(dir string) (*snapshot, error) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // inside the sandbox the links on the way are not there
	}
	tree, err := manifest.ReadTree(dir)
	if err != nil {
		return nil, err
	}
	var size int64
	for _, f := range tree.Files {
		size += f.Size
	}
	if size > maxContent {
		return nil, fmt.Errorf("it has %d MiB, and tools of extensions up to %d MiB can be run; leave out what they do not need", size>>20, maxContent>>20)
	}
	root, err := manifest.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	s := &snapshot{dir: dir, tree: tree}
	links := map[string]string{}
	for _, f := range tree.Files {
		if f.Mode == manifest.ModeLink {
			target, err := root.Readlink(f.Path)
			if err != nil || sum([]byte(target)) != f.Hash {
				return nil, errMoved
			}
			links[f.Path] = filepath.ToSlash(target)
			continue
		}
		file, err := manifest.Open(root, f.Path)
		if err != nil {
			return nil, errMoved
		}
		data, err := io.ReadAll(io.LimitReader(file, f.Size+1))
		file.Close()
		if err != nil || sum(data) != f.Hash {
			return nil, errMoved
		}
		s.files = append(s.files, sandbox.CopyFile{Name: f.Path, Data: data, Executable: f.Mode == manifest.ModeExec})
	}
	s.follow(links)
	data, ok := s.file(manifest.FileName)
	if !ok {
		return nil, errMoved
	}
	var found manifest.Findings
	if s.manifest, found = manifest.Parse(filepath.Join(dir, manifest.FileName), data); found.Err() != nil {
		return nil, found.Err()
	}
	return s, nil
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// file is the content of one file.
func (s *snapshot) file(name string) ([]byte, bool) {
	i := slices.IndexFunc(s.files, func(f sandbox.CopyFile) bool { return f.Name == name })
	if i < 0 {
		return nil, false
	}
	return s.files[i].Data, true
}

// follow adds, for each link that stays inside, the file or files that it
// leads to. Others lead nowhere inside the sandbox either, and are left out.
func (s *snapshot) follow(links map[string]string) {
	real := s.files
	for from := range links {
		to, ok := resolve(from, links, 0)
		if !ok {
			continue
		}
		for _, f := range real {
			rest, below := strings.CutPrefix(f.Name, to+"/")
			if f.Name != to && !below || len(s.files) > maxAliases {
				continue
			}
			f.Name = path.Join(from, rest)
			if !below {
				f.Name = from
			}
			s.files = append(s.files, f)
		}
	}
	slices.SortFunc(s.files, func(a, b sandbox.CopyFile) int { return strings.Compare(a.Name, b.Name) })
}

// resolve follows a path through the links of the extension; false when it
// leads out, or in a circle.
func resolve(name string, links map[string]string, depth int) (string, bool) {
	if depth > 16 {
		return "", false
	}
	at := "."
	for part := range strings.SplitSeq(name, "/") {
		switch part {
		case "", ".":
			continue
		case "..":
			if at == "." {
				return "", false
			}
			at = path.Dir(at)
			continue
		}
		at = path.Join(at, part)
		if to, ok := links[at]; ok {
			if strings.HasPrefix(to, "/") || strings.ContainsAny(to, `:\`) {
				return "", false
			}
			// Not joined, which would take ".." for the folder above a link.
			if at, ok = resolve(path.Dir(at)+"/"+to, links, depth+1); !ok {
				return "", false
			}
		}
	}
	return at, at != "."
}
