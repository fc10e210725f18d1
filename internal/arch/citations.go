package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// citations finds numbers of the contract ("SPEC F-4", "SPEC §11.2") that the repository below root cites in its
// sources and that no page of docs/spec has.
func citations(root string) ([]string, error) {
	defined, err := definitions(filepath.Join(root, "docs", "spec"))
	if err != nil {
		return nil, err
	}
	cited := regexp.MustCompile(`SPEC ((?:[A-Z]{1,2}-\d+|§\d+(?:\.\d+)?)(?:(?:, | and | to |/)(?:[A-Z]{1,2}-\d+|§\d+(?:\.\d+)?))*)`)
	number := regexp.MustCompile(`[A-Z]{1,2}-\d+|§\d+(?:\.\d+)?`)
	var missing []string
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); file != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "assets" || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".go", ".lua", ".vim", ".el", ".ts", ".txtar", ".sh"}, filepath.Ext(file)) {
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(data), "\n") {
			for _, m := range cited.FindAllStringSubmatch(line, -1) {
				for _, n := range number.FindAllString(m[1], -1) {
					if !defined[n] {
						rel, _ := filepath.Rel(root, file)
						missing = append(missing, fmt.Sprintf("%s:%d: SPEC %s is on no page of docs/spec", filepath.ToSlash(rel), i+1, n))
					}
				}
			}
		}
		return nil
	})
	return missing, err
}

// definitions are the numbers that begin a rule or a heading of the contract's pages.
func definitions(dir string) (map[string]bool, error) {
	pages, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return nil, err
	}
	rule := regexp.MustCompile(`(?m)^(?:- \*\*|#+ )([A-Z]{1,2}-\d+|§\d+(?:\.\d+)?)`)
	defined := map[string]bool{}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		for _, m := range rule.FindAllStringSubmatch(string(data), -1) {
			defined[m[1]] = true
		}
	}
	return defined, nil
}

// namedTests finds tests that a page of the documentation names as proof, and that no package has.
func namedTests(t *goTree, page string) ([]string, error) {
	data, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	t.each(func(f goFile) {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				known[fn.Name.Name] = true
			}
		}
	})
	var missing []string
	for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(data), -1) {
		if !known[m[1]] {
			missing = append(missing, fmt.Sprintf("%s names the test %s, which is nowhere", filepath.Base(page), m[1]))
		}
	}
	return missing, nil
}

// namedPlaces finds names in a section of ARCHITECTURE.md that the code does not have: functions and types with their package
// in front ("review.Registry.Open"), and messages ("ide/diffAccepted"), which are strings in production code.
func namedPlaces(t *goTree, page, heading string) []string {
	_, section, _ := strings.Cut(page, "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	known := map[string]bool{}
	t.each(func(f goFile) {
		if f.Test {
			return
		}
		for _, p := range []string{path.Base(path.Dir(f.Path)), path.Dir(f.Path)} {
			known[p] = true
			for _, d := range f.AST.Decls {
				for _, name := range namesOf(d) {
					known[path.Base(p)+"."+name] = true
				}
			}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				known[strings.Trim(l.Value, "`\"")] = true
			}
			return true
		})
	})
	var missing []string
	names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(section, -1)
	for _, m := range names {
		if !known[m[1]] {
			missing = append(missing, fmt.Sprintf("%q names %s, which is nowhere", heading, m[1]))
		}
	}
	if len(names) == 0 {
		missing = append(missing, fmt.Sprintf("%q names nothing: the search is broken", heading))
	}
	return missing
}

// namesOf returns the names that a declaration gives: functions, types, and methods with their type in front.
func namesOf(d ast.Decl) (all []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		of := d.Recv.List[0].Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		if id, ok := of.(*ast.Ident); ok {
			return []string{id.Name + "." + d.Name.Name}
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok {
				all = append(all, s.Name.Name)
			}
		}
	}
	return all
}
