package manifest

import (
	"cmp"
	"strings"
)

// CompareVersions compares two semantic versions. order is negative if a is older than b, and 0 if they are equal. ok
// is false if one of them is not a semantic version.
func CompareVersions(a, b string) (order int, ok bool) {
	if !semver().MatchString(a) || !semver().MatchString(b) {
		return 0, false
	}
	coreA, preA := versionParts(a)
	coreB, preB := versionParts(b)
	if order := compareDotted(coreA, coreB); order != 0 {
		return order, true
	}
	switch {
	case preA == "" || preB == "": // a release is newer than its pre-releases
		return cmp.Compare(len(preB), len(preA)), true
	default:
		return compareDotted(preA, preB), true
	}
}

// versionParts returns the numbers of a semantic version and its pre-release part. Build metadata does not affect the
// order.
func versionParts(v string) (core, pre string) {
	v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "+")
	core, pre, _ = strings.Cut(v, "-")
	return core, pre
}

// compareDotted compares dotted words: numbers by value and before other words, other words as text.
func compareDotted(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x, y := as[i], bs[i]
		numX, numY := number(x), number(y)
		var order int
		switch {
		case numX && numY:
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			order = cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y))
		case numX != numY:
			order = 1
			if numX {
				order = -1
			}
		default:
			order = strings.Compare(x, y)
		}
		if order != 0 {
			return order
		}
	}
	return cmp.Compare(len(as), len(bs))
}

func number(word string) bool { return word != "" && strings.Trim(word, "0123456789") == "" }
