package contract

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Each number of the specification that a peer can see the effect of, in the
// chapters of transport, discovery, authentication, context and diffs.
var chapters = map[string]int{"T": 11, "D": 7, "A": 4, "C": 8, "F": 12}

// The numbers of other agents that can be seen on the wire. What is not here is about their files, their processes and their own habits.
const agents = "CC-5 CC-6 CC-7 CC-8 CC-9 CC-10 CC-11 CC-12 CC-13 CC-17 OC-1 OC-2 OC-3 GC-1 GC-2 GC-3 GC-5 CX-1 CX-2"

// Every number has an archive, and every archive a number and something to do.
func TestEveryNumberHasAVector(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	name := regexp.MustCompile(`^[A-Z]+-[0-9]+[a-z]?$`)
	for _, a := range all {
		have[a.Number()] = true
		if !name.MatchString(a.Name) {
			t.Errorf("%s is not named after a number", a.Name)
		}
		if len(a.Steps) == 0 {
			t.Errorf("%s does nothing", a.Name)
		}
	}
	for number := range strings.FieldsSeq(agents) {
		if !have[number] {
			t.Errorf("%s has no vector", number)
		}
		delete(have, number)
	}
	for chapter, last := range chapters {
		for n := 1; n <= last; n++ {
			number := fmt.Sprintf("%s-%d", chapter, n)
			if !have[number] {
				t.Errorf("%s has no vector", number)
			}
			delete(have, number)
		}
	}
	for number := range have {
		t.Errorf("there is no %s in the specification", number)
	}
}

// Every archive is played: the tests of the package that it names ask for it,
// and something in it is expected.
func TestEveryVectorIsPlayed(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	asks := map[string]bool{}
	for _, a := range all {
		if _, known := asks[a.Player]; !known {
			name := strconv.Quote(a.Player)
			if a.Player == Wire {
				name = "contract.Wire"
			}
			asks[a.Player] = tests(t, a.Player, "contract.PlayedBy("+name+")")
		}
		if !asks[a.Player] {
			t.Errorf("%s: no test of %s plays it", a.Name, a.Player)
		}
		expects := false
		for _, s := range a.Steps {
			expects = expects || s.Expects()
		}
		if !expects {
			t.Errorf("%s expects nothing", a.Name)
		}
	}
}

// tests says whether a test file of a package holds a piece of source.
func tests(t *testing.T, folder, source string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), source) {
			return true
		}
	}
	return false
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "-- request --\n", "about\n-- settings --\nx\n", "about\n-- odd --\n"} {
		if _, err := parse("X-1", []byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// What stands for many characters is written as it is read.
func TestShorten(t *testing.T) {
	p := &player{}
	for _, short := range []string{"", "ab", "{{1000 a}}", "x{{1448 é}}\xff\xfe{{2000 😀}}é", "aaa{{empty}}"} {
		want := strings.ReplaceAll(short, "{{empty}}", "")
		if got := shorten(p.fill(short)); got != want {
			t.Errorf("%q became %q", want, got)
		}
	}
	if got := len(p.fill("{{3 ab}}")); got != 6 {
		t.Errorf("%d bytes, want 6", got)
	}
}
