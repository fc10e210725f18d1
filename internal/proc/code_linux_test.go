package proc

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// resident returns how many KB of the program's code and constants are resident in this process.
func resident(t *testing.T) (kb int) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	parts := regexp.MustCompile(`(?s) r-[x-]p [^\n]* `+regexp.QuoteMeta(program)+`\n.*?\nRss: +(\d+) kB`).FindAllSubmatch(smaps, -1)
	if len(parts) < 2 {
		t.Fatalf("the program is mapped in %d parts", len(parts))
	}
	for _, part := range parts {
		n, _ := strconv.Atoi(string(part[1]))
		kb += n
	}
	return kb
}

// Budget of docs/figures.md: code that only the start needed is not resident, and the program continues to work.
func TestDropCode(t *testing.T) {
	before := resident(t)
	if err := DropCode(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t); after >= before {
		t.Errorf("%d KB of the program were resident, and %d KB are", before, after)
	}
}
