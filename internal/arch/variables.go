package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// variables finds package variables that somebody could change, or that are costly to make. Allowed are
// "_", embedded files, values that are immutable once made (errors, replacers,
// sync.OnceValue), and unexported tables that the package's code only reads.
// A regular expression or a template is compiled at every start of the program,
// whatever it is started for; so it belongs into a function.
func variables(t *goTree) []string {
	var all []string
	for _, p := range t.Packages {
		changed := written(p)
		for _, f := range p.production() {
			if f.Generated {
				continue
			}
			for _, d := range f.AST.Decls {
				for _, name := range mutable(d, changed) {
					all = append(all, fmt.Sprintf("%s: %s is a package variable that can change, or that every start pays for; put it into a type or a function", t.at(f, name.Pos()), name.Name))
				}
			}
		}
	}
	return all
}

func mutable(d ast.Decl, changed map[string]bool) []*ast.Ident {
	gen, ok := d.(*ast.GenDecl)
	if !ok || gen.Tok != token.VAR {
		return nil
	}
	var all []*ast.Ident
	for _, spec := range gen.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok || strings.Contains(comments(gen.Doc)+comments(v.Doc), "//go:embed ") {
			continue
		}
		for i, name := range v.Names {
			var value ast.Expr
			if i < len(v.Values) {
				value = v.Values[i]
			}
			if name.Name != "_" && (changed[name.Name] || !constantLike(name, value)) {
				all = append(all, name)
			}
		}
	}
	return all
}

// comments is the raw text of a group; CommentGroup.Text drops directives.
func comments(g *ast.CommentGroup) string {
	if g == nil {
		return ""
	}
	var b strings.Builder
	for _, c := range g.List {
		b.WriteString(c.Text + "\n")
	}
	return b.String()
}

// constantLike says whether a variable's value never changes if nobody
// assigns to its name.
func constantLike(name *ast.Ident, value ast.Expr) bool {
	switch v := value.(type) {
	case *ast.CallExpr:
		if !name.IsExported() && (called(v.Fun) == "fmt.Sprintf" || strings.HasPrefix(called(v.Fun), "strings.")) {
			return true // a string
		}
		return slices.Contains([]string{
			"cmp.Or", "errors.New", "fmt.Errorf", "strings.NewReplacer", "big.NewInt",
			"sync.OnceValue", "sync.OnceValues", "reflect.TypeFor", "jsontext.Value", "netip.MustParseAddr", "netip.MustParsePrefix",
		}, called(v.Fun))
	case *ast.CompositeLit:
		return !name.IsExported()
	case *ast.BasicLit, *ast.Ident, *ast.BinaryExpr, *ast.IndexExpr:
		return !name.IsExported()
	}
	return false
}

func called(fun ast.Expr) string {
	if index, ok := fun.(*ast.IndexExpr); ok {
		fun = index.X
	}
	if sel, ok := fun.(*ast.SelectorExpr); ok {
		if pkg, ok := sel.X.(*ast.Ident); ok {
			return pkg.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

// written lists the names that p's production code assigns to, changes in
// place, or takes the address of. It goes by name alone, so a local variable
// of the same name counts too: that is confusing to readers as well.
func written(p *goPackage) map[string]bool {
	all := map[string]bool{}
	note := func(e ast.Expr) {
		if name := root(e); name != "" {
			all[name] = true
		}
	}
	for _, f := range p.production() {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, e := range n.Lhs {
						note(e)
					}
				}
			case *ast.IncDecStmt:
				note(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					note(n.X)
				}
			case *ast.CallExpr:
				if isName(n.Fun, "delete") || isName(n.Fun, "clear") || isName(n.Fun, "copy") {
					note(n.Args[0])
				}
			}
			return true
		})
	}
	return all
}

// root is the variable that x[i].f = … changes; "" for what is no variable's part.
func root(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
