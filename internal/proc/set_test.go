package proc

import (
	"os"
	"slices"
	"testing"
)

// A set forgets processes that have ended. A number's new owner takes the old one's place. When a living process does not fit, the set says so.
func TestSet(t *testing.T) {
	self, _ := Lookup(os.Getpid())
	cmd := start(t, "sleep")
	other, _ := Lookup(cmd.Process.Pid)
	var s Set
	s.Add(self, Info{PID: other.PID, Start: other.Start + 1}, self)
	if all, full := s.Living(); !slices.Equal(all, []Info{self}) || full {
		t.Errorf("a number that is another's: %v, %v", all, full)
	}
	s.Add(Info{PID: other.PID, Start: other.Start + 1})
	s.Add(other)
	if all, _ := s.Living(); len(all) != 2 || !slices.Contains(all, other) {
		t.Errorf("%v", all)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if all := s.All(); len(all) != 2 {
		t.Errorf("without a look: %v", all)
	}
	if all, _ := s.Living(); !slices.Equal(all, []Info{self}) {
		t.Errorf("after its end: %v", all)
	}

	for i := range maxSet {
		s.Add(Info{PID: 1<<29 + i, Start: 1}) // beyond every system's numbers: they have ended
	}
	if all, full := s.Living(); !slices.Equal(all, []Info{self}) || full {
		t.Errorf("many that have ended: %d, %v", len(all), full)
	}
	full := Set{most: 1}
	full.Add(self)
	if full.Has(other) {
		t.Error("it has a process that nobody added")
	}
	if full.Add(Info{PID: os.Getppid()}); !full.full || !full.Has(Info{PID: os.Getppid()}) {
		t.Error("a living process was left out, and nobody hears of it")
	}
}
