package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one line of go test -json (see go doc test2json).
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// name is how a person would ask for the test.
type name struct{ pkg, test string }

// A tally counts the results of one go test. It is used by one goroutine.
type tally struct {
	w        io.Writer
	output   map[name][]string // what each unfinished test or package has printed
	build    map[string][]string
	parents  map[name]bool // tests with subtests: only leaves are counted
	results  map[name]string
	skips    []skip
	broken   []string // packages that failed as a whole
	grave    []name   // failed tests that raced or died
	unsteady []name   // tests that failed, and passed when they ran alone
	exit     error
}

type skip struct {
	name
	why string
}

func newTally(w io.Writer) *tally {
	return &tally{
		w: w, output: map[name][]string{}, build: map[string][]string{},
		parents: map[name]bool{}, results: map[name]string{},
	}
}

// line takes one line of go test -json; what is no JSON is shown as it is.
func (t *tally) line(line []byte) {
	if len(line) == 0 {
		return
	}
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		fmt.Fprint(t.w, string(line))
		return
	}
	t.event(e)
}

func (t *tally) event(e event) {
	n := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		t.build[e.ImportPath] = append(t.build[e.ImportPath], e.Output)
	case "run":
		t.results[n] = "running"
		if i := strings.LastIndex(e.Test, "/"); i > 0 {
			t.markParents(e.Package, e.Test)
		}
	case "output":
		t.output[n] = append(t.output[n], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.packageEnded(e)
		} else {
			t.testEnded(n, e.Action)
		}
	}
}

func (t *tally) markParents(pkg, test string) {
	for i := range test {
		if test[i] == '/' {
			t.parents[name{pkg, test[:i]}] = true
		}
	}
}

func (t *tally) testEnded(n name, action string) {
	t.results[n] = action
	switch action {
	case "fail":
		t.show(n)
		if slices.ContainsFunc(t.output[n], isGrave) {
			t.grave = append(t.grave, n)
		}
	case "skip":
		t.skips = append(t.skips, skip{n, reason(t.output[n])})
	}
	delete(t.output, n)
}

// show prints what a failed test printed.
func (t *tally) show(n name) {
	fmt.Fprintf(t.w, "\nFAIL %s %s\n", n.pkg, n.test)
	for _, out := range t.output[n] {
		if !strings.HasPrefix(out, "=== ") {
			fmt.Fprint(t.w, "    ", out)
		}
	}
}

// packageEnded prints the package's line. A package that fails without a
// failed test did not build, or died: that counts as one failure.
func (t *tally) packageEnded(e event) {
	n := name{pkg: e.Package}
	if e.Action == "fail" {
		died := t.unfinished(e.Package)
		if e.FailedBuild != "" || len(died) > 0 || !t.anyFailed(e.Package) {
			t.broken = append(t.broken, e.Package)
			t.show(n)
			for _, out := range t.build[e.FailedBuild] {
				fmt.Fprint(t.w, "    ", out)
			}
			for _, d := range died {
				t.show(d)
				t.results[d] = "fail"
			}
		}
	}
	if e.Action != "skip" { // "skip" is a package without tests
		fmt.Fprintf(t.w, "%-4s %s %.1fs\n", map[string]string{"pass": "ok", "fail": "FAIL"}[e.Action], e.Package, e.Elapsed)
	}
	delete(t.output, n)
}

// isGrave says whether a line tells of a race, or of the end of the program
// and of every test that it had yet to run.
func isGrave(output string) bool {
	return strings.Contains(output, "DATA RACE") || strings.Contains(output, "race detected") ||
		strings.HasPrefix(output, "panic: ") || strings.HasPrefix(output, "fatal error: ")
}

func (t *tally) unfinished(pkg string) []name {
	var all []name
	for n, result := range t.results {
		if n.pkg == pkg && result == "running" {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b name) int { return strings.Compare(a.test, b.test) })
	return all
}

func (t *tally) anyFailed(pkg string) bool {
	for n, result := range t.results {
		if n.pkg == pkg && result == "fail" {
			return true
		}
	}
	return false
}

// exited notes how go test itself ended.
func (t *tally) exited(err error) { t.exit = err }

// finish lists what was left out, prints the last line and returns the exit code.
func (t *tally) finish(require bool) int {
	if len(t.skips) > 0 {
		fmt.Fprintln(t.w, "\nLeft out:")
		for _, s := range t.skips {
			fmt.Fprintf(t.w, "  %s %s: %s\n", s.pkg, s.test, s.why)
		}
	}
	if len(t.unsteady) > 0 {
		fmt.Fprintln(t.w, "\nUnsteady: these failed at first, as shown above, and passed alone:")
		for _, n := range t.unsteady {
			fmt.Fprintf(t.w, "  %s %s\n", n.pkg, n.test)
		}
	}
	counts := map[string]int{}
	for n, result := range t.results {
		if !t.parents[n] || result == "fail" && !t.childFailed(n) {
			counts[result]++
		}
	}
	failed := counts["fail"] + counts["running"]
	if failed == 0 {
		failed = len(t.broken)
	}
	code := 0
	switch {
	case failed > 0:
		code = 1
	case t.exit != nil:
		fmt.Fprintf(t.w, "\ngo test ended with: %v\n", t.exit)
		code = 1
	case require && len(t.skips) > 0:
		fmt.Fprintln(t.w, "\nNothing may be left out in this run: the tests above count against it.")
		code = 1
	}
	fmt.Fprintf(t.w, "\n%d passed, %d failed, %d skipped\n", counts["pass"], failed, counts["skip"])
	return code
}

// childFailed says whether a subtest of n failed, so that n itself is no failure more.
func (t *tally) childFailed(n name) bool {
	for c, result := range t.results {
		if result == "fail" && c.pkg == n.pkg && strings.HasPrefix(c.test, n.test+"/") {
			return true
		}
	}
	return false
}

// reason is the last line that a skipped test printed, without its file name.
func reason(output []string) string {
	for _, out := range slices.Backward(output) {
		out = strings.TrimSpace(out)
		if out == "" || strings.HasPrefix(out, "---") || strings.HasPrefix(out, "===") {
			continue
		}
		if place, why, ok := strings.Cut(out, ": "); ok && strings.Contains(place, ".go:") {
			return why
		}
		return out
	}
	return "no reason given"
}
