// Package arch holds the architecture test: it parses the whole tree and
// fails on what ARCHITECTURE.md and the house rules forbid. Production code
// never imports it.
package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// module is the import path of the repository's root.
const module = "github.com/pollux-companion/pollux"

// A goFile is one parsed Go file.
type goFile struct {
	// Path is relative to the root, with slashes.
	Path string
	// Test says that the file's name ends in _test.go.
	Test bool
	// Generated says that a tool wrote it.
	Generated bool
	AST       *ast.File
	// Lines is its length.
	Lines int
}

// A goPackage is one folder with Go files.
type goPackage struct {
	// Dir is relative to the root, with slashes.
	Dir  string
	Name string
	// Files are sorted by path, tests among them.
	Files []goFile
}

// A goTree is all packages of the repository, of every platform and build tag.
type goTree struct {
	Fset *token.FileSet
	// Packages are sorted by folder.
	Packages []*goPackage
}

// load parses every Go file below root. Modules of their own, testdata,
// node_modules and hidden folders are left out.
func load(root string) (*goTree, error) {
	t := &goTree{Fset: token.NewFileSet()}
	byDir := map[string]*goPackage{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return enter(root, file, d.Name())
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		return t.add(byDir, file, filepath.ToSlash(rel))
	})
	slices.SortFunc(t.Packages, func(a, b *goPackage) int { return strings.Compare(a.Dir, b.Dir) })
	return t, err
}

// enter says whether the walk goes into a folder.
func enter(root, dir, name string) error {
	if dir == root {
		return nil
	}
	if strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" {
		return filepath.SkipDir
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "go.mod")); len(found) > 0 {
		return filepath.SkipDir
	}
	return nil
}

func (t *goTree) add(byDir map[string]*goPackage, file, rel string) error {
	parsed, err := parser.ParseFile(t.Fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("%s does not parse: %w", rel, err)
	}
	dir := path.Dir(rel)
	p := byDir[dir]
	if p == nil {
		p = &goPackage{Dir: dir}
		byDir[dir] = p
		t.Packages = append(t.Packages, p)
	}
	f := goFile{
		Path: rel, Test: strings.HasSuffix(rel, "_test.go"), Generated: ast.IsGenerated(parsed),
		AST: parsed, Lines: t.Fset.File(parsed.FileStart).LineCount(),
	}
	if !f.Test || p.Name == "" {
		p.Name = strings.TrimSuffix(parsed.Name.Name, "_test")
	}
	p.Files = append(p.Files, f)
	return nil
}

// production are the files that are no tests.
func (p *goPackage) production() []goFile {
	return slices.DeleteFunc(slices.Clone(p.Files), func(f goFile) bool { return f.Test })
}

// imported are the folders of this repository that p's production code
// imports, sorted.
func (p *goPackage) imported() []string {
	var all []string
	for _, f := range p.production() {
		for _, spec := range f.AST.Imports {
			if rest, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/"); ours {
				all = append(all, rest)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// sentence is the first sentence of p's doc comment after "Package name ",
// in one line; "" when it has none.
func (p *goPackage) sentence() string {
	for _, f := range p.Files {
		doc := strings.Join(strings.Fields(f.AST.Doc.Text()), " ")
		for _, start := range []string{"Package " + p.Name + " ", "Command " + path.Base(p.Dir) + " "} {
			if rest, ok := strings.CutPrefix(doc, start); ok {
				sentence, _, _ := strings.Cut(rest+" ", ". ")
				return strings.TrimSuffix(strings.TrimSpace(sentence), ".")
			}
		}
	}
	return ""
}
