package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
)

// The house's measures, in lines.
const (
	maxFunction = 100
	maxFile     = 600
)

// sentences finds packages without a doc comment that says what they are.
func sentences(t *goTree) []string {
	var all []string
	for _, p := range t.Packages {
		if p.sentence() == "" {
			all = append(all, fmt.Sprintf("%s: no file says in its doc comment what package %s is (\"Package %s …\", or \"Command …\")", p.Dir, p.Name, p.Name))
		}
	}
	return all
}

// sizes finds functions and files that are too long.
func sizes(t *goTree) []string {
	var all []string
	t.each(func(f goFile) {
		if f.Generated {
			return
		}
		if f.Lines > maxFile {
			all = append(all, fmt.Sprintf("%s: %d lines, %d at most", f.Path, f.Lines, maxFile))
		}
		for _, d := range f.AST.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := t.line(fn.End()) - t.line(fn.Pos()) + 1; n > maxFunction {
				all = append(all, fmt.Sprintf("%s: %s has %d lines, %d at most", t.at(f, fn.Pos()), fn.Name.Name, n, maxFunction))
			}
		}
	})
	return all
}

// early is the one package that starts by itself: the first process of a
// sandbox must not wait until the rest of the program is initialised.
const early = "internal/sandbox/inside/"

// inits finds functions named init: what starts by itself cannot be tested without it.
func inits(t *goTree) []string {
	var all []string
	t.each(func(f goFile) {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" && !strings.HasPrefix(f.Path, early) {
				all = append(all, t.at(f, fn.Pos())+": an init; call a function where the thing is needed")
			}
		}
	})
	return all
}

// locks finds functions that unlock what they did not lock: their callers would go on without a lock that they still count
// on. A function literal counts as part of the function around it.
func locks(t *goTree) []string {
	var all []string
	t.each(func(f goFile) {
		for _, d := range f.AST.Decls {
			held := map[string]bool{}
			ast.Inspect(d, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) != 0 {
					return true
				}
				sel, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				what := types.ExprString(sel.X)
				switch sel.Sel.Name {
				case "Lock", "TryLock", "RLock", "TryRLock":
					held[strings.TrimPrefix(sel.Sel.Name, "Try")+" "+what] = true
				case "Unlock", "RUnlock":
					if !held[strings.Replace(sel.Sel.Name, "Unlock", "Lock", 1)+" "+what] {
						all = append(all, fmt.Sprintf("%s: unlocks %s, which this function has not locked; lock and unlock in one place", t.at(f, sel.Pos()), what))
					}
				}
				return true
			})
		}
	})
	return all
}

// names finds packages whose name says nothing.
func names(t *goTree) []string {
	var all []string
	for _, p := range t.Packages {
		for _, name := range []string{p.Name, path.Base(p.Dir)} {
			if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "lib"}, name) {
				all = append(all, fmt.Sprintf("%s: %q says nothing; name the package after what it gives", p.Dir, name))
				break
			}
		}
	}
	return all
}

// platforms are the file name suffixes that mean one platform or family.
func platforms() []string {
	return []string{"linux", "darwin", "windows", "unix", "bsd", "freebsd", "other", "posix"}
}

// platformNames finds branches by platform in files that are for all of them: comparisons with runtime.GOOS and switches over
// it. To look a value up by it in a table, or to pass it on, is fine.
func platformNames(t *goTree) []string {
	var all []string
	t.each(func(f goFile) {
		name := strings.TrimSuffix(path.Base(f.Path), ".go")
		if f.Test || slices.ContainsFunc(platforms(), func(s string) bool { return strings.HasSuffix(name, "_"+s) }) {
			return
		}
		asks := func(es ...ast.Expr) {
			for _, e := range es {
				if sel, ok := e.(*ast.SelectorExpr); ok && sel.Sel.Name == "GOOS" && isName(sel.X, "runtime") {
					all = append(all, t.at(f, sel.Pos())+": a branch by runtime.GOOS; put what differs into files named by platform, or values into a table")
				}
			}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				asks(n.X, n.Y)
			case *ast.SwitchStmt:
				asks(n.Tag)
			case *ast.CaseClause:
				asks(n.List...)
			}
			return true
		})
	})
	return all
}

// logs finds loggers that are not log/slog, and testing in production code.
func logs(t *goTree) []string {
	var all []string
	t.each(func(f goFile) {
		if f.Test || workshop(path.Dir(f.Path)) {
			return
		}
		for _, spec := range f.AST.Imports {
			if name := strings.Trim(spec.Path.Value, `"`); name == "log" || name == "testing" {
				all = append(all, fmt.Sprintf("%s: imports %s in production code", t.at(f, spec.Pos()), name))
			}
		}
	})
	return all
}

// workshop says that a folder is part of the tests' own tools, which no
// production code may import: also packages like net/http/httptest.
func workshop(dir string) bool {
	return dir == "e2e" || strings.HasPrefix(dir, "e2e/") || strings.HasSuffix(path.Base(dir), "test") ||
		slices.Contains([]string{"internal/peers", "internal/pace", "internal/check", "internal/arch", "internal/usertest"}, dir)
}

// pure finds input and output in the waist. The clock is allowed:
// testing/synctest makes it virtual. Of os and path/filepath only what looks
// at the text of a path is.
func pure(t *goTree) []string {
	var all []string
	t.each(func(f goFile) {
		if f.Test || !strings.HasPrefix(f.Path, "internal/core/") {
			return
		}
		for _, spec := range f.AST.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			for _, bad := range []string{"net", "io/fs", "os/exec", "os/signal", "syscall", "embed"} {
				if name == bad || strings.HasPrefix(name, bad+"/") {
					all = append(all, fmt.Sprintf("%s: the waist imports %s; it does no I/O", t.at(f, spec.Pos()), name))
				}
			}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && touches(sel) {
				all = append(all, fmt.Sprintf("%s: the waist uses %s; it does no I/O", t.at(f, sel.Pos()), sel.Sel.Name))
			}
			return true
		})
	})
	return all
}

// maxImports is how many packages of this repository one of them may import.
const maxImports = 15

// fanOuts finds packages that import so many others that nobody can know what a change in them touches.
func fanOuts(t *goTree) []string {
	var all []string
	for _, p := range t.Packages {
		if n := len(p.imported()); n > maxImports && !workshop(p.Dir) {
			all = append(all, fmt.Sprintf("%s: imports %d packages of this repository; %d is the most: split it by what it does", p.Dir, n, maxImports))
		}
	}
	return all
}

// rooms finds what names an agent where the table of package agent should be asked: an agent's own room is imported by package agent
// and its neighbours below internal/agent alone. Gemini CLI's contract is the house's own. Package companion names no view either.
func rooms(t *goTree) []string {
	var all []string
	t.each(func(f goFile) {
		if f.Test || strings.HasPrefix(f.Path, "internal/agent/") {
			return
		}
		for _, spec := range f.AST.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			for _, room := range []string{"claude", "qwen", "copilot", "codex"} {
				if strings.HasSuffix(name, "internal/agent/"+room) {
					all = append(all, fmt.Sprintf("%s: it knows the agent %s; ask the table of internal/agent", t.at(f, spec.Pos()), room))
				}
			}
			if strings.HasPrefix(f.Path, "internal/companion/") && strings.Contains(name, "/internal/editor/") {
				all = append(all, fmt.Sprintf("%s: a companion names no view; it knows its Editor and its Page", t.at(f, spec.Pos())))
			}
		}
	})
	return all
}

// agents are the names by which the table of package agent knows them.
func agents() []string {
	return []string{"gemini", "qwen", "claude", "opencode", "copilot", "codex"}
}

// strangers finds code outside an agent's own room that asks whether an agent is one in particular: a comparison, or a case of a switch,
// with an agent's name or a constant that holds it. Where agents differ, a column of the table says so.
func strangers(t *goTree) []string {
	named := map[string]bool{} // constants that hold a name, as other packages write them: claude.Name
	t.each(func(f goFile) {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				for i, value := range spec.Values {
					named[f.AST.Name.Name+"."+spec.Names[i].Name] = named[f.AST.Name.Name+"."+spec.Names[i].Name] || isAgent(value)
				}
			}
			return true
		})
	})
	var all []string
	t.each(func(f goFile) {
		inRoom := slices.ContainsFunc(agents(), func(a string) bool { return strings.HasPrefix(f.Path, "internal/agent/"+a+"/") })
		if f.Test || inRoom || workshop(path.Dir(f.Path)) {
			return
		}
		is := func(e ast.Expr) bool {
			switch e := e.(type) {
			case *ast.Ident:
				return named[f.AST.Name.Name+"."+e.Name]
			case *ast.SelectorExpr:
				x, ok := e.X.(*ast.Ident)
				return ok && named[x.Name+"."+e.Sel.Name]
			}
			return isAgent(e)
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			var compared []ast.Expr
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					compared = []ast.Expr{n.X, n.Y}
				}
			case *ast.CaseClause:
				compared = n.List
			}
			if i := slices.IndexFunc(compared, is); i >= 0 {
				all = append(all, t.at(f, compared[i].Pos())+": asks for one agent by name; give the table of internal/agent a column for what differs")
			}
			return true
		})
	})
	return all
}

// isAgent says whether an expression is an agent's name, as a string.
func isAgent(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING && slices.Contains(agents(), strings.Trim(lit.Value, "\"`"))
}

// touches says whether a selector is one of os or path/filepath that asks the system.
func touches(sel *ast.SelectorExpr) bool {
	switch name := sel.Sel.Name; {
	case isName(sel.X, "os"):
		return !slices.Contains([]string{"IsPathSeparator", "PathSeparator", "PathListSeparator"}, name)
	case isName(sel.X, "filepath"):
		return slices.Contains([]string{"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"}, name)
	}
	return false
}

// docs finds exported names without a comment: top-level names and methods of exported types.
func docs(t *goTree) []string {
	var all []string
	t.each(func(f goFile) {
		if f.Test || f.Generated {
			return
		}
		for _, d := range f.AST.Decls {
			for _, name := range undocumented(d) {
				all = append(all, fmt.Sprintf("%s: %s is exported and not documented", t.at(f, name.Pos()), name.Name))
			}
		}
	})
	return all
}

func undocumented(d ast.Decl) []*ast.Ident {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && receiverExported(d) && !wellKnown(d) && d.Doc.Text() == "" {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		var all []*ast.Ident
		for _, spec := range d.Specs {
			all = append(all, undocumentedSpec(d, spec)...)
		}
		return all
	}
	return nil
}

func undocumentedSpec(d *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() && spec.Doc.Text()+d.Doc.Text() == "" {
			return []*ast.Ident{spec.Name}
		}
	case *ast.ValueSpec:
		if spec.Doc.Text()+spec.Comment.Text()+d.Doc.Text() != "" {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(spec.Names), func(n *ast.Ident) bool { return !n.IsExported() })
	}
	return nil
}

func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

// wellKnown methods mean what the standard library says.
func wellKnown(d *ast.FuncDecl) bool {
	return d.Recv != nil && slices.Contains([]string{"Error", "String", "Unwrap", "Read", "Write", "ServeHTTP"}, d.Name.Name)
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func (t *goTree) each(do func(goFile)) {
	for _, p := range t.Packages {
		for _, f := range p.Files {
			do(f)
		}
	}
}

func (t *goTree) line(pos token.Pos) int { return t.Fset.Position(pos).Line }

func (t *goTree) at(f goFile, pos token.Pos) string { return fmt.Sprintf("%s:%d", f.Path, t.line(pos)) }
