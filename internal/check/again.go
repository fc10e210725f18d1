package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// again runs the tests that failed once more, each alone on the machine, when
// there are no more than c.again of them. What real programs do on a busy
// machine is not all ours to decide; so a test that passes alone is reported
// as unsteady and does not fail the run. What raced, died or did not build
// has no second chance, and then nothing else has one either: the run has
// failed anyway.
func again(ctx context.Context, c config, root string, t *tally, stderr io.Writer) error {
	failed := t.failed()
	if len(failed) == 0 || len(failed) > c.again || len(t.broken) > 0 || slices.ContainsFunc(failed, t.isGrave) {
		return nil
	}
	for _, n := range failed {
		if ctx.Err() != nil {
			return nil // interrupted
		}
		fmt.Fprintf(t.w, "\nonce more, alone: %s %s\n", n.pkg, n.test)
		second := newTally(t.w)
		if err := test(ctx, c, batch{packages: []string{n.pkg}, tests: "^" + n.test + "$"}, root, second, stderr); err != nil {
			return err
		}
		if second.results[n] != "pass" || second.exit != nil {
			return nil
		}
		t.replace(n, second)
	}
	t.exit = nil // it told of these tests
	return nil
}

// failed are the tests of their own, not those within others, that failed.
func (t *tally) failed() []name {
	var all []name
	for n, result := range t.results {
		if result == "fail" && !strings.Contains(n.test, "/") {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b name) int { return strings.Compare(a.pkg+" "+a.test, b.pkg+" "+b.test) })
	return all
}

// isGrave says whether n, or a test within it, raced or died.
func (t *tally) isGrave(n name) bool {
	return slices.ContainsFunc(t.grave, n.holds)
}

// holds says whether c is n or a test within it.
func (n name) holds(c name) bool {
	return c.pkg == n.pkg && (c.test == n.test || strings.HasPrefix(c.test, n.test+"/"))
}

// replace puts the second results of n and of the tests within it in place of the first.
func (t *tally) replace(n name, second *tally) {
	for old := range t.results {
		if n.holds(old) {
			delete(t.results, old)
		}
	}
	for c, result := range second.results {
		t.results[c] = result
	}
	for c := range second.parents {
		t.parents[c] = true
	}
	t.skips = append(slices.DeleteFunc(t.skips, func(s skip) bool { return n.holds(s.name) }), second.skips...)
	t.unsteady = append(t.unsteady, n)
}
