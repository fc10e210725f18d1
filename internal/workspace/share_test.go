package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/pollux-companion/pollux/internal/pace"
)

// utf16le is how the shells of Windows write what is echoed into a file.
func utf16le(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i)
	}
	return b.String()
}

// SPEC C-8: what an ignore file hides is hidden, or nothing of its folder is shared.
func TestWithheld(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		problem string // "" where it can be followed
	}{
		"whole":               {numbered(9999, "f%d") + "secret", ""},
		"too many patterns":   {numbered(10000, "f%d") + "secret", "more than 10,000 patterns"},
		"too many folders":    {numbered(10000, "!f%d/") + "secret", "more than 10,000 patterns"},
		"comments count not":  {numbered(20000, "# %d") + "secret", ""},
		"too large":           {strings.Repeat("#", 1<<20) + "\nsecret", "larger than 1 MiB"},
		"just large enough":   {strings.Repeat("#", 1<<20-7) + "\nsecret", ""},
		"UTF-16":              {utf16le("secret\r\n"), "UTF-8"},
		"Latin-1":             {"secret\ngehe\xefm\n", "UTF-8"},
		"NUL":                 {"secret\n\x00", "UTF-8"},
		"byte order mark":     {"\xef\xbb\xbfsecret\n", ""},
		"no line end":         {"secret", ""},
		"carriage returns":    {"secret\r\nother\r\n", ""},
		"folders of the name": {"secret\n!secret/\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var told []Withheld
			b := newBox(t, &Options{Withholds: func(w Withheld) { told = append(told, w) }})
			b.put("sub/.geminiignore", tc.content)
			secret, other, beside := b.put("sub/deep/secret", ""), b.put("sub/other.txt", ""), b.put("beside", "")
			for range 3 {
				share := b.Sharing()
				if share(secret) {
					t.Fatal("the secret is shared")
				}
				if share(other) != (tc.problem == "") || !share(beside) {
					t.Errorf("shared in the folder: %v, beside it: %v", share(other), share(beside))
				}
			}
			list := b.Withheld()
			if tc.problem == "" {
				if len(list)+len(told) > 0 {
					t.Errorf("%v, told %v", list, told)
				}
				return
			}
			if len(told) != 1 || len(list) != 1 || list[0] != told[0] || list[0].Folder != b.path("sub") || !strings.Contains(list[0].String(), tc.problem) {
				t.Errorf("%v, told %v", list, told)
			}
			b.put("sub/.geminiignore", "secret\n")
			if list := b.Withheld(); len(list) != 0 || b.MayShare(secret) || !b.MayShare(other) {
				t.Errorf("after it was mended: %v", list)
			}
			b.put("sub/.geminiignore", tc.content)
			if b.MayShare(other); len(told) != 2 {
				t.Errorf("told %d times of two breaks", len(told))
			}
			if err := os.Remove(b.path("sub/.geminiignore")); err != nil || !b.MayShare(other) || len(b.Withheld()) != 0 {
				t.Error("withheld without a file", err)
			}
		})
	}
}

// What stands in the place of an ignore file and is none withholds its folder; a link is followed wherever it leads.
func TestWithheldPlaces(t *testing.T) { // SPEC C-8
	b := newBox(t, nil)
	f := b.put("a/f", "")
	if err := os.Mkdir(b.path("a/.geminiignore"), 0o777); err != nil {
		t.Fatal(err)
	}
	if b.MayShare(f) {
		t.Error("a folder was taken for no rule")
	}
	if err := os.Remove(b.path("a/.geminiignore")); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]bool{
		b.put(filepath.Join(b.outside, "rules"), "g\n"): true, // the user's own, kept elsewhere
		b.put(filepath.Join(b.outside, "hides"), "f\n"): false,
		filepath.Join(b.outside, "none"):                false,
		".geminiignore":                                 false, // round and round
		os.DevNull:                                      false,
		"/proc/self/environ":                            false,
		b.outside:                                       false,
	} {
		link := b.link(target, "a/.geminiignore")
		promptly(t, target, func() {
			if got := b.MayShare(f); got != want {
				t.Errorf("with a link to %s: %v", target, got)
			}
		})
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(b.path("a/.geminiignore"), []byte("g\n"), 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 && runtime.GOOS != "windows" && b.MayShare(f) {
		t.Error("a file that cannot be read was taken for no rule")
	}
	if b.MayShare(b.path("a/gehe\xefm")) {
		t.Error("a name that JSON would change is shared")
	}
}

// A rule that is exchanged for another of the same size and time is seen.
func TestRulesChangeUnseen(t *testing.T) { // SPEC C-8
	b := newBox(t, nil)
	x, y := b.put("x", ""), b.put("y", "")
	at := time.Now().Add(-time.Hour)
	put := func(name, rule string, at time.Time) {
		if err := os.Chtimes(b.put(name, rule), at, at); err != nil {
			t.Fatal(err)
		}
	}
	put(".geminiignore", "x\n", at)
	if b.MayShare(x) || !b.MayShare(y) {
		t.Fatal("the rule does not hold")
	}
	put("next", "y\n", at)
	if err := os.Rename(b.path("next"), b.path(".geminiignore")); err != nil {
		t.Fatal(err)
	}
	if !b.MayShare(x) || b.MayShare(y) {
		t.Error("another file in its place goes unseen")
	}
	now := time.Now()
	for i := range 20 { // within one tick of the file system's clock
		rule, hidden, open := "x\n", x, y
		if i%2 == 1 {
			rule, hidden, open = "y\n", y, x
		}
		put(".geminiignore", rule, now)
		if b.MayShare(hidden) || !b.MayShare(open) {
			t.Fatal("a quick change goes unseen")
		}
	}
}

// Long honest lists are followed, for as many files as an editor has open.
func TestManyHonestPatterns(t *testing.T) {
	pace.NotRaced(t, "one goroutine, and a minute of it")
	b := newBox(t, nil)
	b.put(".geminiignore", numbered(4000, "gen%d.go")+numbered(4000, "/out/gen%d/")+numbered(1900, "!gen%d.go.keep")+numbered(90, "*.ext%d")+"secret*\n")
	for i := range 500 {
		dir := fmt.Sprintf("pkg%d/sub/", i%20)
		if !b.MayShare(b.put(fmt.Sprintf("%sf%d.go", dir, i), "")) {
			t.Fatal("an honest file is withheld: ", b.Withheld())
		}
		for _, hidden := range []string{fmt.Sprintf("%sgen%d.go", dir, i), fmt.Sprintf("out/gen%d/f", i), fmt.Sprintf("%ssecret%d", dir, i), fmt.Sprintf("f%d.ext%d", i, i%90)} {
			if b.MayShare(b.put(hidden, "")) {
				t.Fatal(hidden, " is shared")
			}
		}
	}
	share, shared := b.Sharing(), 0
	for i := range 500 {
		if share(b.path(fmt.Sprintf("pkg%d/sub/f%d.go", i%20, i))) {
			shared++
		}
	}
	if shared != 500 {
		t.Errorf("%d of 500 open files are shared in one context: %v", shared, b.Withheld())
	}
}
