package text

import (
	"slices"
	"testing"
)

// SPEC F-13: two changes of one text merge where they do not touch.
func TestMerge(t *testing.T) {
	for name, tt := range map[string]struct {
		base, mine, theirs string
		want               string
		conflicts          []Conflict
	}{
		"nobody":              {"a\nb\n", "a\nb\n", "a\nb\n", "a\nb\n", nil},
		"mine alone":          {"a\nb\n", "a\nB", "a\nb\n", "a\nB", nil},
		"theirs alone":        {"a\nb\n", "a\nb\n", "A\nb", "A\nb", nil},
		"apart":               {"a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n", nil},
		"the same":            {"a\nb\nc\n", "A\nb\nc\n", "A\nb\nC\n", "A\nb\nC\n", nil},
		"both delete":         {"a\nb\nc\nd\n", "b\nc\nd\n", "b\nc\n", "b\nc\n", nil},
		"insert and change":   {"a\nb\nc\n", "0\na\nb\nc\n", "a\nb\nC\n", "0\na\nb\nC\n", nil},
		"one line":            {"a\nb\nc\n", "a\nX\nc\n", "a\nY\nc\n", "a\nX\nc\n", []Conflict{{1, 2, "Y\n"}}},
		"neighbours":          {"a\nb\nc\n", "a\nX\nc\n", "a\nb\nY\n", "a\nX\nc\n", []Conflict{{1, 3, "b\nY\n"}}},
		"both add at the end": {"a\n", "a\nX\n", "a\nY\n", "a\nX\n", []Conflict{{1, 2, "Y\n"}}},
		"change and delete":   {"a\nb\nc\n", "a\nX\nc\n", "a\nc\n", "a\nX\nc\n", []Conflict{{1, 2, ""}}},
		"both new":            {"", "X\n", "Y\n", "X\n", []Conflict{{0, 1, "Y\n"}}},
		"last newline":        {"a\nb\nc", "A\nb\nc", "a\nb\nc\n", "A\nb\nc\n", nil},
		"clean beside":        {"a\nb\nc\nd\ne\n", "a\nX\nc\nd\ne\n", "a\nY\nc\nd\nE\n", "a\nX\nc\nd\nE\n", []Conflict{{1, 2, "Y\n"}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := Merge(tt.base, tt.mine, tt.theirs)
			if m.Text != tt.want || !slices.Equal(m.Conflicts, tt.conflicts) {
				t.Errorf("%+v", m)
			}
			if again := Merge(m.Rest, m.Text, tt.theirs); again.Text != m.Text || len(again.Conflicts) != len(m.Conflicts) {
				t.Errorf("merged again: %+v, then %+v", m, again)
			}
			if len(tt.conflicts) == 0 && m.Rest != tt.theirs {
				t.Errorf("the rest is %q", m.Rest)
			}
		})
	}
	m := Merge("a\nb\nc\nd\ne\n", "a\nX\nc\nd\ne\n", "a\nY\nZ\nc\nd\nE\n")
	if got := m.TakeTheirs(); got != "a\nY\nZ\nc\nd\nE\n" {
		t.Errorf("theirs: %q", got)
	}
}

// SPEC F-13: a side that changed nothing leaves the other alone; what both
// did is done once; a clean merge does not depend on who is asked first; and
// the places of conflicts are in order and in the text.
func FuzzMerge(f *testing.F) {
	f.Add("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC")
	f.Add("", "x", "y\n")
	f.Add("a\na\na\n", "a\na\n", "a\nb\na\na\n")
	f.Add("a\n\nb", "\n\n", "b\na\n\n\n")
	f.Fuzz(func(t *testing.T, base, mine, theirs string) {
		if m := Merge(base, mine, base); m.Text != mine || len(m.Conflicts) > 0 {
			t.Errorf("mine alone: %+v", m)
		}
		if m := Merge(base, base, theirs); m.Text != theirs || len(m.Conflicts) > 0 {
			t.Errorf("theirs alone: %+v", m)
		}
		if m := Merge(base, mine, mine); m.Text != mine || len(m.Conflicts) > 0 {
			t.Errorf("the same: %+v", m)
		}
		m, back := Merge(base, mine, theirs), Merge(base, theirs, mine)
		if len(m.Conflicts) != len(back.Conflicts) || len(m.Conflicts) == 0 && m.Text != back.Text {
			t.Errorf("the other way round: %+v and %+v", m, back)
		}
		lines := linesOf(m.Text)
		end := 0
		for _, c := range m.Conflicts {
			if c.Start < end || c.End < c.Start || c.End > len(lines) {
				t.Fatalf("places out of order: %+v in %d lines", m.Conflicts, len(lines))
			}
			end = c.End
		}
	})
}
