package editors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The example stays as short as its page says.
func TestExampleIsShort(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(repository(t), "examples", "plugin", "plugin.lua"))
	if err != nil {
		t.Fatal(err)
	}
	code := 0
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			code++
		}
	}
	if code >= 150 || code < 50 {
		t.Errorf("%d lines of code", code)
	}
}

// The worked example of docs/spec/write-a-plugin.md, played by keys: what that page promises after an afternoon.
func TestExamplePlugin(t *testing.T) {
	t.Parallel()
	f := neovim(t)
	f.name, f.display, f.running = "example", "Example", ""
	start := f.start
	f.start = func(t *testing.T, b *bench, files []string) []string {
		args := start(t, b, nil)
		for i, arg := range args {
			if strings.HasPrefix(arg, "set rtp^=") {
				args[i] = "luafile " + filepath.Join(repository(t), "examples", "plugin", "plugin.lua")
			}
		}
		return append(args, files...)
	}
	b, a := user(t, f, map[string]string{"a.go": sample, "b.txt": "b\n"}, "a.go")
	b.sees(a, "a.go 1:1") // C-1 to C-4
	b.text("3G$")
	b.sees(a, "a.go 3:17")
	b.text("V")
	b.sees(a, `a.go 3:17 "\thällo wörld 😀 x\n"`)
	b.escape()
	b.ex("split b.txt")
	b.sees(a, "b.txt 1:1")
	b.ex("help")
	b.sees(a, "none") // C-6
	b.ex("q")
	b.sees(a, "b.txt 1:1")

	for _, text := range []string{"one\r\ntwo\n", "no end", "\n\n", "mixed\r\nlines\n", "😀\n"} { // F-3, F-6
		a.OpenDiff(b.path("a.go"), text)
		b.is("&diff . &buftype", "1acwrite")
		b.ex("w")
		b.accepted(a, "a.go", text)
		b.is("tabpagenr('$')", "1")
	}
	a.OpenDiff(b.path("a.go"), "edited\n")
	b.is("&diff . getline(1)", "1edited")
	b.text("Aby hand")
	b.escape()
	b.ex("w")
	b.accepted(a, "a.go", "editedby hand\n")
	b.is("tabpagenr('$')", "1")
	a.OpenDiff(b.path("b.txt"), "other\n")
	b.is("&diff . getline(1)", "1other")
	b.ex("q!")
	b.rejected(a, "b.txt")
	b.is("tabpagenr('$')", "1")
	a.OpenDiff(b.path("b.txt"), "taken back\n") // F-4
	b.is("&diff . getline(1)", "1taken back")
	b.text("A, edited")
	b.escape()
	if got := a.CloseDiff(b.path("b.txt")); !strings.Contains(got, `"content":"taken back, edited\n"`) {
		t.Errorf("closeDiff answers %s", got)
	}
	b.is("tabpagenr('$')", "1")
	a.Quiet()
}
