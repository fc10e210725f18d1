package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/peers"
)

// play feeds lines of go test -json to a tally and returns its exit code and
// what it printed.
func play(require bool, lines ...string) (int, string) {
	var out bytes.Buffer
	tl := newTally(&out)
	for _, line := range lines {
		tl.line([]byte(line + "\n"))
	}
	return tl.finish(require), out.String()
}

// TestCountsLeaves: a test with subtests is not counted itself, and the last
// line is the plain one.
func TestCountsLeaves(t *testing.T) {
	code, out := play(true,
		`{"Action":"run","Package":"p","Test":"TestA"}`,
		`{"Action":"run","Package":"p","Test":"TestA/one"}`,
		`{"Action":"run","Package":"p","Test":"TestA/two"}`,
		`{"Action":"pass","Package":"p","Test":"TestA/one"}`,
		`{"Action":"pass","Package":"p","Test":"TestA/two"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"run","Package":"p","Test":"TestB"}`,
		`{"Action":"pass","Package":"p","Test":"TestB"}`,
		`{"Action":"pass","Package":"p","Elapsed":1.25}`)
	if code != 0 || !strings.HasSuffix(out, "\n3 passed, 0 failed, 0 skipped\n") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// TestSkipsSayWhy: what was left out is listed with the test's own reason,
// and is a failure where skips are forbidden.
func TestSkipsSayWhy(t *testing.T) {
	lines := []string{
		`{"Action":"run","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:12: tmux: no tmux in PATH; get it with: …\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}`,
		`{"Action":"skip","Package":"p","Test":"TestA"}`,
		`{"Action":"pass","Package":"p"}`,
	}
	code, out := play(false, lines...)
	if code != 0 || !strings.Contains(out, "  p TestA: tmux: no tmux in PATH; get it with: …\n") ||
		!strings.HasSuffix(out, "\n0 passed, 0 failed, 1 skipped\n") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if code, out := play(true, lines...); code != 1 || !strings.Contains(out, "Nothing may be left out") {
		t.Errorf("with skips forbidden: exit %d:\n%s", code, out)
	}
}

// TestFailuresAreShown: a failed subtest is one failure, with its output.
func TestFailuresAreShown(t *testing.T) {
	code, out := play(false,
		`{"Action":"run","Package":"p","Test":"TestA"}`,
		`{"Action":"run","Package":"p","Test":"TestA/one"}`,
		`{"Action":"output","Package":"p","Test":"TestA/one","Output":"    a_test.go:3: 1 is not 2\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestA/one"}`,
		`{"Action":"fail","Package":"p","Test":"TestA"}`,
		`{"Action":"fail","Package":"p"}`)
	if code != 1 || !strings.Contains(out, "1 is not 2") || !strings.HasSuffix(out, "\n0 passed, 1 failed, 0 skipped\n") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// TestBrokenPackagesFail: a package that does not build, or dies in the
// middle of a test, is a failure with its output.
func TestBrokenPackagesFail(t *testing.T) {
	code, out := play(false,
		`{"ImportPath":"p [p.test]","Action":"build-output","Output":"p.go:1: syntax error\n"}`,
		`{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`)
	if code != 1 || !strings.Contains(out, "syntax error") || !strings.HasSuffix(out, "\n0 passed, 1 failed, 0 skipped\n") {
		t.Errorf("does not build: exit %d:\n%s", code, out)
	}
	code, out = play(false,
		`{"Action":"run","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: ouch\n"}`,
		`{"Action":"fail","Package":"p"}`)
	if code != 1 || !strings.Contains(out, "panic: ouch") || !strings.HasSuffix(out, "\n0 passed, 1 failed, 0 skipped\n") {
		t.Errorf("dies: exit %d:\n%s", code, out)
	}
	code, out = play(false, `go: some trouble before any test`)
	if code != 0 || !strings.Contains(out, "some trouble") {
		t.Errorf("lines that are no JSON must be shown: exit %d:\n%s", code, out)
	}
}

// TestBatches: whole programs come last, one package at a time.
func TestBatches(t *testing.T) {
	root, err := peers.Root()
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/pollux-companion/pollux/"
	for want, packages := range map[string][]string{
		"[{[" + module + "internal/check] false } {[" + module + "e2e " + module + "e2e/terminal] true }]": {"./e2e", "./internal/check", "./e2e/terminal"},
		"[{[" + module + "e2e/model] true }]": {"./e2e/model"},
		"[{[./none ./e2e] false }]":           {"./none", "./e2e"},
	} {
		if got := fmt.Sprint(batches(t.Context(), config{packages: packages}, root)); got != want {
			t.Errorf("%q: %s, want %s", packages, got, want)
		}
	}
}

// TestRunsGoTest runs the whole command in a small module of its own.
func TestRunsGoTest(t *testing.T) {
	root := t.TempDir()
	for file, content := range map[string]string{
		"go.mod": "module github.com/pollux-companion/pollux\n\ngo 1.26\n",
		"a/a_test.go": `package a
import "testing"
func TestGood(t *testing.T) {}
func TestLeft(t *testing.T) { t.Skip("no such program") }
`,
		"b/b_test.go": "package b\nimport \"testing\"\nfunc TestBad(t *testing.T) { t.Error(\"one is not two\") }\n",
	} {
		file = filepath.Join(root, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	t.Setenv(peers.RequireEnv, "")
	for _, c := range []struct {
		args []string
		code int
		last string
	}{
		{[]string{"./a"}, 0, "\n1 passed, 0 failed, 1 skipped\n"},
		{[]string{"--require-peers", "./a"}, 1, "\n1 passed, 0 failed, 1 skipped\n"},
		{nil, 1, "\n1 passed, 1 failed, 1 skipped\n"},
		{[]string{"./none"}, 1, " failed, 0 skipped\n"},
		{[]string{"--no-such-flag"}, 2, ""},
	} {
		var out, problems bytes.Buffer
		if code := run(c.args, &out, &problems); code != c.code || !strings.HasSuffix(out.String(), c.last) {
			t.Errorf("check %q: exit %d, want %d\n%s%s", c.args, code, c.code, &out, &problems)
		}
	}
}

// TestAgain: a test that fails once and passes alone is reported and does
// not fail the run; one that fails again does, and so does one that raced,
// one that panicked, and more failures than were allowed for.
func TestAgain(t *testing.T) {
	once := "package a\nimport (\"os\"; \"testing\")\nfunc TestOnce(t *testing.T) { t.Run(\"in\", func(t *testing.T) {\n" +
		"\tif os.Mkdir(os.Getenv(\"MARK\"), 0o700) == nil { %s }\n}) }\nfunc TestGood(t *testing.T) {}\n"
	for _, c := range []struct {
		name, file string
		args       []string
		code       int
		last       string
	}{
		{"once", fmt.Sprintf(once, `t.Error("not yet")`), []string{"-again", "1"}, 0, "\n2 passed, 0 failed, 0 skipped\n"},
		{"not allowed", fmt.Sprintf(once, `t.Error("not yet")`), nil, 1, "\n1 passed, 1 failed, 0 skipped\n"},
		{"always", "package a\nimport \"testing\"\nfunc TestBad(t *testing.T) { t.Error(\"never\") }\n", []string{"-again", "1"}, 1, "\n0 passed, 1 failed, 0 skipped\n"},
		{"raced", fmt.Sprintf(once, `t.Error("WARNING: DATA RACE")`), []string{"-again", "1"}, 1, "\n1 passed, 1 failed, 0 skipped\n"},
		{"panicked", fmt.Sprintf(once, `panic("ouch")`), []string{"-again", "1"}, 1, " failed, 0 skipped\n"},
		{"two", fmt.Sprintf(once, `t.Error("not yet")`) + "func TestBad(t *testing.T) { t.Error(\"never\") }\n", []string{"-again", "1"}, 1, "\n1 passed, 2 failed, 0 skipped\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for file, content := range map[string]string{"go.mod": "module github.com/pollux-companion/pollux\n\ngo 1.26\n", "a_test.go": c.file} {
				if err := os.WriteFile(filepath.Join(root, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(root)
			t.Setenv(peers.RequireEnv, "")
			t.Setenv("MARK", filepath.Join(root, "mark"))
			var out, problems bytes.Buffer
			code := run(c.args, &out, &problems)
			if code != c.code || !strings.HasSuffix(out.String(), c.last) {
				t.Errorf("exit %d, want %d\n%s%s", code, c.code, &out, &problems)
			}
			if unsteady := strings.Contains(out.String(), "\nUnsteady: these failed at first, as shown above, and passed alone:\n  github.com/pollux-companion/pollux TestOnce\n"); unsteady != (c.code == 0) {
				t.Errorf("unsteady %v\n%s", unsteady, &out)
			}
		})
	}
}
