package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/peers"
)

// TestPrograms: docs/sandbox.md has a row for each place in the code that
// starts a program, and no other: whoever adds one says with which rights,
// environment and folder it runs.
func TestPrograms(t *testing.T) {
	root, err := peers.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/sandbox.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, m := range regexp.MustCompile("`([a-z0-9/_]+\\.go) ([A-Za-z0-9_.]+)`").FindAllStringSubmatch(string(page), -1) {
		rows = append(rows, m[1]+" "+m[2])
	}
	sites := starts(t, root)
	for _, s := range sites {
		if !slices.Contains(rows, s) {
			t.Errorf("%s starts a program; give it a row in docs/sandbox.md, under \"What runs outside\"", s)
		}
	}
	for i, r := range rows {
		if !slices.Contains(sites, r) {
			t.Errorf("docs/sandbox.md says that %s starts a program, and it does not", r)
		}
		if slices.Contains(rows[:i], r) {
			t.Errorf("docs/sandbox.md has two rows for %s", r)
		}
	}
	if len(sites) < 15 {
		t.Errorf("only %d places found: the search is broken", len(sites))
	}
}

// starts lists "file function" of every call that starts a program, or makes
// what does, outside tests.
func starts(t *testing.T, root string) []string {
	t.Helper()
	calls := map[string][]string{
		"os/exec": {"Command", "CommandContext", "Cmd"}, "os": {"StartProcess"}, "syscall": {"Exec", "ForkExec", "StartProcess", "CreateProcess", "CreateProcessAsUser"},
		"golang.org/x/sys/unix": {"Exec", "ForkExec"}, "golang.org/x/sys/windows": {"CreateProcess", "ShellExecute", "CreateProcessAsUser"},
	}
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"node_modules", "testdata"}, d.Name())) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		names := map[string][]string{} // what a package is called in this file → its calls
		for _, i := range file.Imports {
			from, _ := strconv.Unquote(i.Path.Value)
			name := filepath.Base(from)
			if i.Name != nil {
				name = i.Name.Name
			}
			names[name] = calls[from]
		}
		rel, _ := filepath.Rel(root, path)
		for _, decl := range file.Decls {
			where := filepath.ToSlash(rel) + " " + declared(decl)
			ast.Inspect(decl, func(n ast.Node) bool {
				var used ast.Expr
				switch n := n.(type) {
				case *ast.CallExpr:
					used = n.Fun
				case *ast.CompositeLit:
					used = n.Type
				}
				if s, ok := used.(*ast.SelectorExpr); ok {
					if p, ok := s.X.(*ast.Ident); ok && slices.Contains(names[p.Name], s.Sel.Name) && !slices.Contains(found, where) {
						found = append(found, where)
					}
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// declared is the name of what a declaration declares.
func declared(d ast.Decl) string {
	if f, ok := d.(*ast.FuncDecl); ok {
		return f.Name.Name
	}
	return "var"
}
