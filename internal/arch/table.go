package arch

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The table of ARCHITECTURE.md stands between these lines.
const (
	tableStart = "<!-- packages: written by go test ./internal/arch -update; floor and half are decided by hand -->"
	tableEnd   = "<!-- end of packages -->"
)

// floors are the floors of the house from the top, and beside them what only tests use. A package imports nothing that
// lies above it.
func floors() []string {
	return []string{"programs", "assemblies", "edges", "domain", "ground", "tests"}
}

// The halves of the house. A package of one half imports nothing of the other, and one of both imports no half; but for
// the programs of both, which bring them together.
const (
	companionHalf = "companion"
	extensionHalf = "extension"
	bothHalves    = "both"
)

// interfaces are the packages by which one half may use the other, each with what for.
func interfaces() map[string]string {
	return map[string]string{"internal/control": "asks the person in front of the editor"}
}

// A place is where a package stands in the house.
type place struct{ Floor, Half string }

func (from place) String() string { return from.Floor + ", " + from.Half }

// placesOf reads the table in ARCHITECTURE.md.
func placesOf(page string) (map[string]place, error) {
	table, err := tableOf(page)
	if err != nil {
		return nil, err
	}
	places := map[string]place{}
	for _, m := range regexp.MustCompile("(?m)^\\| *(\\w+) *\\| *(\\w+) *\\| *`([^`]+)`").FindAllStringSubmatch(table, -1) {
		p, dir := place{m[1], m[2]}, m[3]
		switch {
		case !slices.Contains(floors(), p.Floor):
			return nil, fmt.Errorf("%s: there is no floor %q; there are %s", dir, p.Floor, strings.Join(floors(), ", "))
		case !slices.Contains([]string{companionHalf, extensionHalf, bothHalves}, p.Half):
			return nil, fmt.Errorf("%s: there is no half %q; there are %s, %s and %s", dir, p.Half, companionHalf, extensionHalf, bothHalves)
		case places[dir] != place{}:
			return nil, fmt.Errorf("the table of ARCHITECTURE.md names %s twice", dir)
		}
		places[dir] = p
	}
	return places, nil
}

func tableOf(page string) (string, error) {
	_, rest, ok := strings.Cut(page, tableStart+"\n")
	table, _, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return "", fmt.Errorf("ARCHITECTURE.md has no table between %q and %q", tableStart, tableEnd)
	}
	return table, nil
}

// arrowsOf finds imports that point up or into the other half, packages that the table does not place, and rows of
// packages that are gone. Within a floor the table itself is the rule: rewritten differs when the code imports what it does not say.
func arrowsOf(t *goTree, places map[string]place) []string {
	var all []string
	there := map[string]bool{}
	for _, p := range t.Packages {
		there[p.Dir] = true
		from := places[p.Dir]
		switch {
		case from == place{}:
			all = append(all, fmt.Sprintf("%s: not in the table of ARCHITECTURE.md; add a row \"| FLOOR | HALF | `%s` |\" and run with -update", p.Dir, p.Dir))
			continue
		case (from.Floor == "tests") != workshop(p.Dir):
			all = append(all, fmt.Sprintf("%s (%s): the floor tests is for what only tests use", p.Dir, from))
		case from.Floor == "ground" && from.Half != bothHalves:
			all = append(all, fmt.Sprintf("%s (%s): the ground is below both halves", p.Dir, from))
		}
		for _, other := range p.imported() {
			if why := from.mayNot(other, places[other]); why != "" && places[other] != (place{}) {
				all = append(all, fmt.Sprintf("%s (%s): imports %s (%s); %s", p.Dir, from, other, places[other], why))
			}
		}
	}
	for dir := range places {
		if !there[dir] {
			all = append(all, fmt.Sprintf("%s: in the table of ARCHITECTURE.md, not in the tree", dir))
		}
	}
	slices.Sort(all)
	return all
}

// mayNot says why a package at from may not import another one at to; "" when it may.
func (from place) mayNot(other string, to place) string {
	switch {
	case from.Floor == "tests":
		return ""
	case to.Floor == "tests":
		return "that is for tests"
	case slices.Index(floors(), to.Floor) < slices.Index(floors(), from.Floor):
		return "arrows point down only"
	case from == place{"programs", bothHalves} || to.Half == bothHalves || to.Half == from.Half || interfaces()[other] != "":
		return ""
	case from.Half == bothHalves:
		return "what both halves share imports neither"
	}
	return "the halves know nothing of each other"
}

// rewritten writes the table anew from the tree: places as they stand, sentences
// and arrows as the code has them.
func rewritten(page string, t *goTree, places map[string]place) (string, error) {
	old, err := tableOf(page)
	if err != nil {
		return "", err
	}
	packages := slices.Clone(t.Packages)
	slices.SortStableFunc(packages, func(a, b *goPackage) int {
		pa, pb := places[a.Dir], places[b.Dir]
		return cmp.Or(slices.Index(floors(), pa.Floor)-slices.Index(floors(), pb.Floor), strings.Compare(pa.Half, pb.Half), strings.Compare(a.Dir, b.Dir))
	})
	var b strings.Builder
	b.WriteString("| floor | half | package | what it is | imports |\n| --- | --- | --- | --- | --- |\n")
	for _, p := range packages {
		if places[p.Dir] == (place{}) {
			continue
		}
		arrows := "–"
		if imports := p.imported(); len(imports) > 0 {
			arrows = "`" + strings.Join(short(imports), "` `") + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %s |\n", places[p.Dir].Floor, places[p.Dir].Half, p.Dir, strings.ReplaceAll(p.sentence(), "|", "\\|"), arrows)
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
