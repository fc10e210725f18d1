package arch

import (
	"fmt"
	"go/ast"
	"io/fs"
	"os"
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
func namedTests(t *Tree, page string) ([]string, error) {
	data, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	t.each(func(f File) {
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
