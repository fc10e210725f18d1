package proc

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// residentCode is how much of the program's own code is in this process's memory, in KB.
func residentCode(t *testing.T) int {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?s) r-xp [^\n]* ` + regexp.QuoteMeta(program) + `\n.*?\nRss: +(\d+) kB`).FindSubmatch(smaps)
	if m == nil {
		t.Fatal("the program's code is not mapped")
	}
	kb, _ := strconv.Atoi(string(m[1]))
	return kb
}

// Budget of docs/figures.md: what only the start needed is not resident, and the program goes on.
func TestDropCode(t *testing.T) {
	before := residentCode(t)
	if err := DropCode(); err != nil {
		t.Fatal(err)
	}
	if after := residentCode(t); after >= before {
		t.Errorf("%d KB of code were resident, and %d KB are", before, after)
	}
}
