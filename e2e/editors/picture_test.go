package editors

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/terminal"
	"github.com/pollux-companion/pollux/internal/peers"
)

var update = flag.Bool("update", false, "draw the pictures in docs/images anew") //nolint:gochecknoglobals // a flag

// comparable is a picture without what differs from one run to the next: blanks behind a
// message, which are those of the one before it.
func comparable(picture []byte) string {
	return regexp.MustCompile(`textLength="[0-9.]*"( lengthAdjust[^>]*>\[pollux\][^<]*?) *<`).ReplaceAllString(string(picture), "$1<")
}

// says is the first line that an editor's program prints.
func says(t *testing.T, name, argument string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), peers.Need(t, map[string]peers.Peer{"micro": peers.Micro, "kakoune": peers.Kakoune}[name]), argument).Output()
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// different is the first line in which two texts differ.
func different(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d is\n%s\nwant\n%s", i+1, strings.Join(g[min(i, len(g)):min(i+1, len(g))], ""), strings.Join(w[min(i, len(w)):min(i+1, len(w))], ""))
		}
	}
	return "nothing differs"
}

// The pictures of the manual are real screens: a diff in each editor. Each says
// with which version of the editor it was drawn, and with that one the screen
// of today must be the picture, text and colours. What that does not hold: with
// another version of the editor only some words are looked for; and nobody
// looks at how a browser shows the picture.
func TestPictures(t *testing.T) {
	t.Parallel()
	const before = "package greet\n\nimport \"fmt\"\n\n// Hello greets somebody.\nfunc Hello(name string) {\n\tfmt.Println(\"hello\", name)\n}\n\n// Bye takes leave.\nfunc Bye() {\n\tfmt.Println(\"bye\")\n}\n"
	after := strings.NewReplacer("Hello greets somebody.", "Hello greets somebody, by name if there is one.",
		"\tfmt.Println(\"hello\", name)\n", "\tif name == \"\" {\n\t\tname = \"you\"\n\t}\n\tfmt.Printf(\"hello, %s\\n\", name)\n").Replace(before)
	for name, e := range map[string]struct {
		flavour          flavour
		columns, version string // expressions; of an editor that answers none, the arguments by which its program says its version
		shown            func(b *bench)
	}{
		"neovim": {neovim(t), "&columns", `matchstr(execute('version'), 'v[0-9.]\+')`, func(b *bench) { b.is("&diff . winnr()", "12") }},
		"vim":    {vim(t), "&columns", "v:versionlong", func(b *bench) { b.is("&diff . winnr()", "12") }},
		"emacs":  {emacs(t), "(frame-width)", "emacs-version", func(b *bench) { b.is(windows, "(3 greet.go <proposal>)") }},
		"micro": {micro(t), "", "-version", func(b *bench) {
			b.until("the proposal", func() bool {
				return strings.Contains(b.tm.Screen(), "(proposal)") || strings.Contains(b.tm.Screen(), "> pollux review")
			})
			if !strings.Contains(b.tm.Screen(), "(proposal)") { // the bench has just typed
				b.microCommand("pollux review")
			}
			b.on("save accepts, quit rejects")
		}},
		"kakoune": {kakoune(t), "", "-version", func(b *bench) {
			b.on(":q rejects")
			b.ex("set-option global modelinefmt '%opt{pollux_status}  %val{bufname}'") // without Kakoune's process number
			b.on("Gemini 1 ±1  greet.go (proposal)")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, e.flavour, map[string]string{"greet.go": before})
			b.open("greet.go")
			b.tm.Resize(118, 22)
			var version string
			if e.columns != "" {
				b.is(e.columns, "118")
				version = b.eval(e.version)
			} else {
				version = says(t, name, e.version)
			}
			a := b.connect()
			a.OpenDiff(b.path("greet.go"), after)
			e.shown(b)
			drawn := "<desc>" + e.flavour.display + " " + version + "</desc>\n"
			draw := func() []byte {
				return []byte(strings.Replace(string(terminal.SVG(b.tm.Coloured())), "<rect", drawn+"<rect", 1))
			}
			path := filepath.Join(repository(t), "docs", "images", name+"-diff.svg")
			if *update {
				time.Sleep(time.Second) // no condition says that messages have been drawn
				if err := os.WriteFile(path, draw(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			const again = "draw it: go test ./e2e/editors -run TestPictures -update"
			for _, word := range []string{"greet.go", "Printf", "by name if there is one"} {
				b.until(word+" on the screen", func() bool { return strings.Contains(string(draw()), word) })
				if !strings.Contains(string(data), word) {
					t.Errorf("%s: there is no %q in it; %s", path, word, again)
				}
			}
			if !strings.Contains(string(data), drawn) {
				t.Logf("%s is of another version than %s: its words are in both", path, drawn)
				return
			}
			var got, want string
			for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
				if got, want = comparable(draw()), comparable(data); got == want {
					return
				} else if time.Now().After(end) {
					t.Fatalf("%s is not the screen: %s\n%s", path, different(want, got), again)
				}
			}
		})
	}
}
