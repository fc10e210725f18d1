package arch

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The table of ARCHITECTURE.md stands between these lines.
const (
	tableStart = "<!-- packages: written by go test ./internal/arch -update; only the layer is decided by hand -->"
	tableEnd   = "<!-- end of packages -->"
)

// Layers reads the table in ARCHITECTURE.md: the layer of each package, 1 at the top.
func Layers(page string) (map[string]int, error) {
	table, err := tableOf(page)
	if err != nil {
		return nil, err
	}
	layers := map[string]int{}
	for _, m := range regexp.MustCompile("(?m)^\\| *(\\d+) *\\| *`([^`]+)`").FindAllStringSubmatch(table, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return nil, err
		}
		if layers[m[2]] != 0 {
			return nil, fmt.Errorf("the table of ARCHITECTURE.md names %s twice", m[2])
		}
		layers[m[2]] = n
	}
	return layers, nil
}

func tableOf(page string) (string, error) {
	_, rest, ok := strings.Cut(page, tableStart+"\n")
	table, _, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return "", fmt.Errorf("ARCHITECTURE.md has no table between %q and %q", tableStart, tableEnd)
	}
	return table, nil
}

// Arrows finds imports that point up or sideways, packages that the table
// does not place, and rows of packages that are gone.
func Arrows(t *Tree, layers map[string]int) []string {
	var all []string
	there := map[string]bool{}
	for _, p := range t.Packages {
		there[p.Dir] = true
		if layers[p.Dir] == 0 {
			all = append(all, fmt.Sprintf("%s: not in the table of ARCHITECTURE.md; add a row \"| LAYER | `%s` |\" and run with -update", p.Dir, p.Dir))
			continue
		}
		for _, other := range p.Imports() {
			if Workshop(other) && !Workshop(p.Dir) {
				all = append(all, fmt.Sprintf("%s: production code imports %s, which is for tests", p.Dir, other))
			}
			if layers[other] != 0 && layers[other] <= layers[p.Dir] {
				all = append(all, fmt.Sprintf("%s (layer %d): imports %s (layer %d); arrows point down only", p.Dir, layers[p.Dir], other, layers[other]))
			}
		}
	}
	for dir := range layers {
		if !there[dir] {
			all = append(all, fmt.Sprintf("%s: in the table of ARCHITECTURE.md, not in the tree", dir))
		}
	}
	slices.Sort(all)
	return all
}

// Page writes the table anew from the tree: layers as they stand, sentences
// and arrows as the code has them.
func Page(page string, t *Tree, layers map[string]int) (string, error) {
	old, err := tableOf(page)
	if err != nil {
		return "", err
	}
	packages := slices.Clone(t.Packages)
	slices.SortStableFunc(packages, func(a, b *Package) int {
		if layers[a.Dir] != layers[b.Dir] {
			return layers[a.Dir] - layers[b.Dir]
		}
		return strings.Compare(a.Dir, b.Dir)
	})
	var b strings.Builder
	b.WriteString("| layer | package | what it is | imports |\n| --: | --- | --- | --- |\n")
	for _, p := range packages {
		if layers[p.Dir] == 0 {
			continue
		}
		arrows := "–"
		if imports := p.Imports(); len(imports) > 0 {
			arrows = "`" + strings.Join(short(imports), "` `") + "`"
		}
		fmt.Fprintf(&b, "| %d | `%s` | %s | %s |\n", layers[p.Dir], p.Dir, strings.ReplaceAll(p.Sentence(), "|", "\\|"), arrows)
	}
	return strings.Replace(page, old, b.String(), 1), nil
}

// short leaves out what every import path has in common.
func short(dirs []string) []string {
	var all []string
	for _, d := range dirs {
		all = append(all, strings.TrimPrefix(d, "internal/"))
	}
	return all
}
