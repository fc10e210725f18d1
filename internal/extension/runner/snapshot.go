package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/sandbox"
)

// maxHeld bounds what is held in memory and given to the sandbox, in bytes. Larger extensions are unpacked for each
// run.
const maxHeld = 15 << 20

// maxAliases bounds how many files links may add.
const maxAliases = 20_000

// A snapshot is the content of an extension, read once. Its manifest and files match its tree, whatever happens to
// the folder later.
type snapshot struct {
	dir      string
	tree     *manifest.Tree
	manifest *manifest.Manifest
	files    []sandbox.CopyFile // a link is the file that it leads to
	// large has the files whose Data is not held, by their names in files.
	large map[string]manifest.FileSum
	size  int64 // of all files
}

// errMoved says that the extension's files are changing.
var errMoved = errors.New("its files change while they are read; try again when whatever writes them has finished")

// readFolder reads an extension. It compares every file with the hash in the tree that consent is bound to (SPEC S-2).
func readFolder(dir string) (*snapshot, error) {
	dir = paths.Real(dir) // links on the way do not exist inside the sandbox
	tree, err := manifest.ReadTree(dir)
	if err != nil {
		return nil, err
	}
	root, err := manifest.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	s := &snapshot{dir: dir, tree: tree, large: map[string]manifest.FileSum{}}
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
		copied := sandbox.CopyFile{Name: f.Path, Executable: f.Mode == manifest.ModeExec}
		if s.size += f.Size; s.size > maxHeld && f.Path != manifest.FileName {
			s.large[f.Path] = f
		} else if copied.Data, err = s.read(root, f); err != nil {
			return nil, err
		}
		s.files = append(s.files, copied)
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

// read reads one file, which must match its hash.
func (s *snapshot) read(root *os.Root, f manifest.FileSum) ([]byte, error) {
	file, err := root.OpenFile(filepath.FromSlash(f.Path), os.O_RDONLY|safefile.NoWait, 0)
	if err != nil {
		return nil, errMoved
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, f.Size+1))
	if err != nil || sum(data) != f.Hash {
		return nil, errMoved
	}
	return data, nil // not nil, which would mean "not held"
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// file returns the content of one file.
func (s *snapshot) file(name string) ([]byte, bool) {
	i := slices.IndexFunc(s.files, func(f sandbox.CopyFile) bool { return f.Name == name })
	if i < 0 {
		return nil, false
	}
	return s.files[i].Data, true
}

// follow adds, for each link that stays inside, the files that it leads to. Other links lead nowhere in the sandbox,
// and are left out.
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
			alias := f
			alias.Name = from
			if below {
				alias.Name = path.Join(from, rest)
			}
			if f.Data == nil {
				s.large[alias.Name] = s.large[f.Name]
			}
			s.size += int64(len(f.Data))
			s.files = append(s.files, alias)
		}
	}
	slices.SortFunc(s.files, func(a, b sandbox.CopyFile) int { return strings.Compare(a.Name, b.Name) })
}

// resolve follows a path through the extension's links; false if it leads out or in a circle.
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
			// Not joined: Join would drop a link together with the ".." after it.
			if at, ok = resolve(path.Dir(at)+"/"+to, links, depth+1); !ok {
				return "", false
			}
		}
	}
	return at, at != "."
}
