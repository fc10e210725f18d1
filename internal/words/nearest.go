package words

import (
	"slices"
	"strings"
)

// Nearest returns up to three names that word may have been meant as, nearest first: names that differ in about a
// third of the letters, ignoring case, and names that contain word.
func Nearest(word string, names []string) []string {
	type near struct {
		name string
		d    int
	}
	var all []near
	low, limit := strings.ToLower(word), Third(word)
	for _, n := range names {
		name := strings.ToLower(n)
		d := distance(low, name, limit)
		if len(low) >= 3 && strings.Contains(name, low) {
			d = min(d, 1)
		}
		if d <= limit {
			all = append(all, near{n, d})
		}
	}
	slices.SortStableFunc(all, func(a, b near) int { return a.d - b.d })
	var out []string
	for _, n := range all[:min(3, len(all))] {
		out = append(out, n.name)
	}
	return out
}

// Closest returns the name that needs the fewest letters changed in word, ignoring case; at most limit letters.
func Closest(word string, names []string, limit int) (name string, ok bool) {
	low := strings.ToLower(word)
	for _, n := range names {
		if d := distance(low, strings.ToLower(n), limit); d <= limit && (!ok || d < limit) {
			name, ok, limit = n, true, d
		}
	}
	return name, ok
}

// Third returns how many letters of a word may be changed for it to count as mistyped: about a third, and never all.
func Third(word string) int { return max(0, min(len(word)/3+1, len(word)-1)) }

// maxWord is the length in bytes from which no word is compared, because the work grows with the square.
const maxWord = 100

// distance returns the number of bytes to add, drop or change to get from a to b; limit+1 if that exceeds limit.
func distance(a, b string, limit int) int {
	far := limit + 1
	if a == b {
		return 0
	}
	if len(a) > maxWord || len(b) > maxWord || len(a)-len(b) > limit || len(b)-len(a) > limit {
		return far
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], far)
}
