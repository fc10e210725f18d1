package arch

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A measure is one row of the table "Measures" of ARCHITECTURE.md, with what the tree says today.
type measure struct {
	row   string // how the row begins
	value int
	about int // the page rounds to this, and may be off by a fiftieth; 0: it is exact
}

// measures are the rows that a tree answers.
func measures(t *goTree) []measure {
	var lines, product, names, most int
	for _, p := range t.Packages {
		for _, f := range p.production() {
			lines += f.Lines
			if p.Dir != "e2e" && !strings.HasPrefix(p.Dir, "e2e/") {
				product += f.Lines
			}
			for _, d := range f.AST.Decls {
				names += exported(d)
			}
		}
		if !workshop(p.Dir) {
			most = max(most, len(p.imported()))
		}
	}
	return []measure{
		{"packages with code", len(t.Packages), 0},
		{"lines of Go outside tests", lines, 100},
		{"the same without e2e", product, 100},
		{"exported names", names, 10},
		{"longest import chain", len(longestChain(t)), 0},
		{"imports of the package with most", most, 0},
	}
}

// exported counts the exported names of a declaration; a method's counts with its exported type.
func exported(d ast.Decl) (n int) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && receiverExported(d) {
			n++
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			var names []*ast.Ident
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = []*ast.Ident{s.Name}
			case *ast.ValueSpec:
				names = s.Names
			}
			for _, name := range names {
				if name.IsExported() {
					n++
				}
			}
		}
	}
	return n
}

// longestChain returns the longest way along imports, by folder. The tests' tools do not count.
func longestChain(t *goTree) []string {
	below := map[string][]string{}
	for _, p := range t.Packages {
		if !workshop(p.Dir) {
			below[p.Dir] = p.imported()
		}
	}
	known := map[string][]string{}
	var from func(dir string) []string
	from = func(dir string) []string {
		if known[dir] == nil {
			var longest []string
			for _, other := range below[dir] {
				if next := from(other); len(next) > len(longest) {
					longest = next
				}
			}
			known[dir] = append([]string{dir}, longest...)
		}
		return known[dir]
	}
	var longest []string
	for dir := range below {
		if chain := from(dir); len(chain) > len(longest) || len(chain) == len(longest) && slices.Compare(chain, longest) < 0 {
			longest = chain
		}
	}
	return longest
}

// measured returns the page with each measure as the tree has it; a figure that is near enough stays as it stands.
func measured(page string, all []measure) (string, error) {
	for _, m := range all {
		row := regexp.MustCompile(`(?m)^(\| ` + regexp.QuoteMeta(m.row) + `.* \| )(?:about )?(\d+(?:,\d{3})*)(.* \|)$`)
		at := row.FindStringSubmatch(page)
		if at == nil {
			return "", fmt.Errorf("ARCHITECTURE.md has no row %q below \"Measures\"", m.row)
		}
		stands, _ := strconv.Atoi(strings.ReplaceAll(at[2], ",", ""))
		if stands == m.value || m.about > 0 && max(stands-m.value, m.value-stands) <= m.value/50 {
			continue
		}
		now := strconv.Itoa(m.value)
		if m.about > 0 {
			now = "about " + thousands((m.value+m.about/2)/m.about*m.about)
		}
		page = strings.Replace(page, at[0], at[1]+now+at[3], 1)
	}
	return page, nil
}

// thousands writes a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
