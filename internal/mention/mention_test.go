package mention

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/control"
)

// A name is typed as a person would have to type it to that agent.
func TestTypedAs(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, name := range []string{"a b(1).txt", "plain"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	me, to := os.Getpid(), Mentioner{Lines: agent.LinesOf}
	for _, tt := range []struct {
		agent string
		m     control.Mention
		want  string
	}{
		{"gemini", control.Mention{Path: filepath.Join(dir, "plain")}, "@plain "},
		{"gemini", control.Mention{Path: filepath.Join(dir, "a b(1).txt"), First: 2, Last: 2}, `@a\ b\(1\).txt line 2 `},
		{"qwen", control.Mention{Path: filepath.Join(dir, "plain"), First: 2, Last: 4, Words: "why?"}, "@plain lines 2-4 why? "},
		{"claude", control.Mention{Path: filepath.Join(dir, "plain"), First: 2, Last: 4, Words: "why?"}, "@plain#L2-4 why? "},
		{"claude", control.Mention{Path: filepath.Join(dir, "plain"), First: 4, Last: 4}, "@plain#L4 "},
		{"gemini", control.Mention{Path: "/nowhere/x"}, "@/nowhere/x "},
	} {
		if got := to.typedAs(tt.agent, me, tt.m); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// The lines of what is no file are not read: the companion never waits for it.
func TestLinesOfNoFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(file, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{file: "two", dir: "", filepath.Join(dir, "none"): "", os.DevNull: "", "/proc/self/status": ""} {
		if got := linesOf(control.Mention{Path: path, First: 2, Last: 2}); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// The lines of a mention are the file's own, without the last line's end.
func TestLinesOf(t *testing.T) {
	a := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(a, []byte("one\r\ntwo\nthree"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := linesOf(control.Mention{Path: a, First: 1, Last: 2}); got != "one\r\ntwo" {
		t.Errorf("the lines: %q", got)
	}
}
