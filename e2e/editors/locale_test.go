package editors

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// inC is an editor of a user without a locale.
func inC(f flavour) flavour {
	f.env = append(f.env, "LANG=C", "LC_ALL=C", "LC_CTYPE=POSIX")
	return f
}

// C-4, C-5 in the locale C: Neovim, and a Vim that is told its encoding.
func TestLocaleC(t *testing.T) {
	playOn(t, vis, map[string]func(*testing.T, flavour){"cursor": func(t *testing.T, f flavour) {
		b, a := user(t, inC(f), map[string]string{"ünï 😀.go": sample}, "ünï 😀.go")
		b.is("&encoding", "utf-8")
		b.sees(a, "ünï 😀.go 1:1")
		b.text("3G$")
		b.sees(a, "ünï 😀.go 3:17")
		b.text("0wv$h")
		b.sees(a, `ünï 😀.go 3:17 "hällo wörld 😀 x"`)
	}})
}

// A Vim that takes each byte for a character, as it does by itself in the
// locale C: the context counts what the file holds, a diff that it can hold is
// its own, and the page shows the others; all byte for byte.
func TestVimBytes(t *testing.T) {
	t.Parallel()
	f := inC(vim(t))
	start := f.start
	f.start = func(t *testing.T, b *bench, files []string) []string {
		args := start(t, b, files)
		rc := filepath.Join(b.root, "vimrc")
		data, err := os.ReadFile(rc)
		if err == nil {
			err = os.WriteFile(rc, []byte(strings.Replace(string(data), " encoding=utf-8", "", 1)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return args
	}
	b := newBench(t, f, map[string]string{"ünï.go": sample, "plain": "old\n", "latin": "gr\xfc\xdfe x\n"})
	b.browse()
	b.open("ünï.go")
	b.is("&encoding . &fileencoding", "latin1")
	a := b.connect()
	b.sees(a, "ünï.go 1:1")
	for _, tt := range []struct{ bytes, want string }{
		{"3, 1", "3:1"}, {"3, 3", "3:3"}, {"3, 4", "3:3"}, {"3, 5", "3:4"}, // within ä
		{"3, 16", "3:14"}, {"3, 19", "3:14"}, {"3, 20", "3:16"}, {"3, 21", "3:17"}, // within the emoji
	} {
		b.ex("call cursor(" + tt.bytes + ")")
		b.is("line('.') . ', ' . col('.')", tt.bytes)
		b.sees(a, "ünï.go "+tt.want)
	}
	b.text("3G0lv$h")
	b.sees(a, `ünï.go 3:17 "hällo wörld 😀 x"`)
	b.escape()
	for place, stands := range map[string]string{"ünï.go:3:4": "3, 5", "ünï.go:3:3": "3, 3", "ünï.go:3:14": "3, 16", "ünï.go:3:17": "3, 21", "ünï.go:3:99": "3, 21", "latin:1:4": "1, 4", "latin:1:7": "1, 7"} {
		cmd := exec.Command(binary(), "open", place)
		cmd.Dir, cmd.Env = b.project, b.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		b.is("expand('%:t') . ' ' . line('.') . ', ' . col('.')", place[:strings.Index(place, ":")]+" "+stands)
	}
	b.ex("e ünï.go")
	b.is("expand('%:t')", "ünï.go")
	b.ex("e latin")
	b.text("$")
	b.sees(a, "latin 1:7") // what is no UTF-8 has a character for each byte
	b.ex("e #")

	a.OpenDiff(b.path("plain"), "plain <&>\r\ntext\r\n")
	b.is("&diff . winnr()", "12")
	b.types(1, "and more")
	b.ex("w")
	b.accepted(a, "plain", "plain <&>and more\r\ntext\r\n")
	b.is("&diff . tabpagenr('$')", "01")
	a.OpenDiff(b.path("ünï.go"), sample+"ü\n")
	b.acceptOn(b.page())
	b.accepted(a, "ünï.go", sample+"ü\n")
	b.is("&diff . tabpagenr('$')", "01")
}
