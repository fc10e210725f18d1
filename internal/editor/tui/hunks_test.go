package tui

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func hunksOf(old, proposed string) []hunk { return newChange(old, false, proposed).hunks }

func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		name, old, new string
		want           []hunk
	}{
		{"same", "a\nb\n", "a\nb\n", nil},
		{"one line", "a\nb\nc\n", "a\nB\nc\n", []hunk{{oldFrom: 1, oldTo: 2, newFrom: 1, newTo: 2}}},
		{"added at the end", "a\n", "a\nb\n", []hunk{{oldFrom: 1, oldTo: 1, newFrom: 1, newTo: 2}}},
		{"removed at the start", "a\nb\n", "b\n", []hunk{{oldFrom: 0, oldTo: 1}}},
		{"two places", "a\nb\nc\nd\n", "A\nb\nc\nD\n", []hunk{{oldTo: 1, newTo: 1}, {oldFrom: 3, oldTo: 4, newFrom: 3, newTo: 4}}},
		{"the last line's end", "a", "a\n", []hunk{{oldFrom: 1, oldTo: 1, newFrom: 1, newTo: 2}}},
	} {
		if diff := cmp.Diff(tt.want, hunksOf(tt.old, tt.new), cmp.AllowUnexported(hunk{})); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	if h := newChange("", true, "a\n").hunks; len(h) != 1 || h[0].oldTo != 0 || h[0].newTo != 2 {
		t.Errorf("a new file: %+v", h)
	}
}

// Each hunk can be taken or left out, independent of the others.
func TestToggle(t *testing.T) {
	const old, proposed = "a\nb\nc\nd\ne\n", "A\nb\nc\nx\nd\ne"
	c := newChange(old, false, proposed)
	if len(c.hunks) != 3 {
		t.Fatalf("%+v", c.hunks)
	}
	for _, tt := range []struct {
		reverted [3]bool
		want     string
	}{
		{[3]bool{}, proposed},
		{[3]bool{true, false, false}, "a\nb\nc\nx\nd\ne"},
		{[3]bool{false, true, false}, "A\nb\nc\nd\ne"},
		{[3]bool{false, false, true}, "A\nb\nc\nx\nd\ne\n"},
		{[3]bool{true, true, true}, old},
	} {
		for i := range c.hunks {
			c.hunks[i].reverted = tt.reverted[i]
		}
		if got := c.text(); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.reverted, got, tt.want)
		}
	}
	c.toggle(1)
	c.toggle(9) // no such hunk
	if c.hunks[1].reverted {
		t.Error("a reverted hunk does not come back")
	}
}

// An edit that only leaves hunks out, here or in another view, keeps them on the screen.
func TestAdopt(t *testing.T) {
	c := newChange("a\nb\nc\nd\n", false, "A\nb\nC\nd\nE\n")
	if !c.adopt("A\nb\nc\nd\nE\n") || c.hunks[0].reverted || !c.hunks[1].reverted || c.hunks[2].reverted {
		t.Errorf("%+v", c.hunks)
	}
	if c.adopt("something else\n") || !c.hunks[1].reverted {
		t.Errorf("another text changes the hunks: %+v", c.hunks)
	}
}

func words(r *rand.Rand, n int) string {
	var b strings.Builder
	for range r.IntN(n) {
		b.WriteString([]string{"a", "b", "c", "\n", "\n"}[r.IntN(5)])
	}
	return b.String()
}

// For all texts: with nothing reverted the result is the proposal, with everything reverted the file, and no choice
// is mistaken for another.
func TestHunksHold(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		old, proposed := words(r, 40), words(r, 40)
		c := newChange(old, false, proposed)
		if got := c.text(); got != proposed {
			t.Fatalf("%q → %q: taken whole it is %q", old, proposed, got)
		}
		for i := range c.hunks {
			c.hunks[i].reverted = r.IntN(2) == 0
		}
		text := c.text()
		again := newChange(old, false, proposed)
		if again.adopt(text) && again.text() != text { // where lines repeat, the choice may not be found
			t.Fatalf("%q → %q: %q became %q", old, proposed, text, again.text())
		}
		for i := range c.hunks {
			c.hunks[i].reverted = true
		}
		if got := c.text(); got != old {
			t.Fatalf("%q → %q: reverted whole it is %q", old, proposed, got)
		}
		checkRows(t, c)
	}
}

// checkRows: every line is in exactly one row, in order, in either layout.
func checkRows(t *testing.T, c *change) {
	t.Helper()
	for _, o := range []rowOptions{{context: -1}, {side: true, context: -1}, {context: 2}, {side: true, context: 2}} {
		old, new := 0, 0
		for _, r := range c.rows(o) {
			if r.old >= 0 && r.old != old || r.new >= 0 && r.new != new {
				t.Fatalf("row %+v after lines %d and %d", r, old, new)
			}
			n := 1
			if r.kind == folded {
				n = r.count
			}
			if r.old >= 0 {
				old += n
			}
			if r.new >= 0 {
				new += n
			}
		}
		rest := c.new[new:]
		if len(rest) > 1 || len(rest) == 1 && rest[0] != "" {
			t.Fatalf("lines %q are in no row", rest)
		}
	}
}

// Many small changes in a large file remain many small hunks.
func TestManyHunks(t *testing.T) {
	var old, proposed lines
	for i := range 50000 {
		old = append(old, fmt.Sprintf("line %d", i))
		switch i % 500 {
		case 3:
			proposed = append(proposed, fmt.Sprintf("changed %d", i))
		case 200:
		case 300:
			proposed = append(proposed, old[i], "added", "")
		default:
			proposed = append(proposed, old[i])
		}
	}
	c := newChange(strings.Join(old, "\n"), false, strings.Join(proposed, "\n"))
	if added, removed := c.count(); len(c.hunks) != 300 || added != 300 || removed != 200 {
		t.Errorf("%d hunks, +%d −%d", len(c.hunks), added, removed)
	}
	if c.text() != strings.Join(proposed, "\n") {
		t.Error("taken whole it is not the proposal")
	}
	for i := range c.hunks {
		c.hunks[i].reverted = true
	}
	if c.text() != strings.Join(old, "\n") {
		t.Error("reverted whole it is not the file")
	}
	checkRows(t, c)
	// The same with lines that repeat, in another order.
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		a, b := words(r, 20000), words(r, 20000)
		c := newChange(a, false, b)
		if c.text() != b {
			t.Fatal("taken whole it is not the proposal")
		}
		for i := range c.hunks {
			c.hunks[i].reverted = true
		}
		if c.text() != a {
			t.Fatal("reverted whole it is not the file")
		}
		checkRows(t, c)
	}
}

// 5 MB that differ everywhere, or in one line of 5 MB, take no time that a person notices. The test only logs the
// figure, because a machine may be slow.
func TestLarge(t *testing.T) {
	old := strings.Repeat("a line of the file\n", 5<<20/19)
	proposed := strings.ReplaceAll(old, "line", "word")
	c := newChange(old, false, proposed)
	if c.text() != proposed {
		t.Error("the proposal is not what was proposed")
	}
	c.rows(rowOptions{side: true, context: 3})
	long := strings.Repeat("x", 5<<20)
	a, b := changedWords(long+"a"+long, long+"b"+long)
	if size(a) == 0 && size(b) == 0 && a != nil {
		t.Errorf("%v %v", a, b)
	}
	if l := layOut(long, 100, 80); l.width != 80 || !l.left || !l.right {
		t.Errorf("%+v", l.width)
	}
}

func TestChangedWords(t *testing.T) {
	show := func(s string, spans []span) string {
		var b strings.Builder
		at := 0
		for _, x := range spans {
			b.WriteString(s[at:x.from] + "[" + s[x.from:x.to] + "]")
			at = x.to
		}
		return b.String() + s[at:]
	}
	for _, tt := range []struct{ a, b, wantA, wantB string }{
		{`name := "world"`, `name := "moon"`, `name := "[world]"`, `name := "[moon]"`},
		{"foo(a, b)", "foo(a, c, b)", "foo(a, b)", "foo(a, [c, ]b)"},
		{"größer", "größter", "größer", "größter"}, // the whole word: no marks
		{"x = größer + 1", "x = größter + 1", "x = [größer] + 1", "x = [größter] + 1"},
		{"same", "same", "same", "same"},
		{"entirely", "different", "entirely", "different"},
		{"return 1", "return 12", "return [1]", "return [12]"},
	} {
		a, b := changedWords(tt.a, tt.b)
		if got := show(tt.a, a); got != tt.wantA {
			t.Errorf("%q → %q: %s", tt.a, tt.b, got)
		}
		if got := show(tt.b, b); got != tt.wantB {
			t.Errorf("%q → %q: %s", tt.a, tt.b, got)
		}
	}
}

func FuzzChange(f *testing.F) {
	f.Add("a\nb\n", "a\nc\n", uint64(1))
	f.Fuzz(func(t *testing.T, old, proposed string, choice uint64) {
		c := newChange(old, false, proposed)
		for i := range c.hunks {
			c.hunks[i].reverted = choice>>(i%64)&1 == 1
		}
		checkRows(t, c)
		again := newChange(old, false, proposed)
		if again.adopt(c.text()) && again.text() != c.text() {
			t.Error("another choice is found")
		}
		for _, h := range c.hunks {
			for l := h.oldFrom; l < h.oldTo; l++ {
				if j := h.partner(l, -1); j >= 0 {
					checkSpans(t, c.old[l], c.new[j])
				}
			}
		}
	})
}

func checkSpans(t *testing.T, a, b string) {
	t.Helper()
	inA, inB := changedWords(a, b)
	for i, spans := range [][]span{inA, inB} {
		at := 0
		for _, s := range spans {
			if s.from < at || s.to <= s.from || s.to > len([]string{a, b}[i]) {
				t.Fatalf("%q, %q: spans %v", a, b, spans)
			}
			at = s.to
		}
	}
}
