package editors

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/terminal"
)

var update = flag.Bool("update", false, "draw the pictures in docs/images anew") //nolint:gochecknoglobals // a flag

// The pictures of the manual are real screens: a diff in each editor.
func TestPictures(t *testing.T) {
	t.Parallel()
	const before = "package greet\n\nimport \"fmt\"\n\n// Hello greets somebody.\nfunc Hello(name string) {\n\tfmt.Println(\"hello\", name)\n}\n\n// Bye takes leave.\nfunc Bye() {\n\tfmt.Println(\"bye\")\n}\n"
	after := strings.NewReplacer("Hello greets somebody.", "Hello greets somebody, by name if there is one.",
		"\tfmt.Println(\"hello\", name)\n", "\tif name == \"\" {\n\t\tname = \"you\"\n\t}\n\tfmt.Printf(\"hello, %s\\n\", name)\n").Replace(before)
	for name, e := range map[string]struct {
		flavour flavour
		columns string // an expression
		shown   func(b *bench)
	}{
		"neovim": {neovim(t), "&columns", func(b *bench) { b.is("&diff . winnr()", "12") }},
		"vim":    {vim(t), "&columns", func(b *bench) { b.is("&diff . winnr()", "12") }},
		"emacs":  {emacs(t), "(frame-width)", func(b *bench) { b.is(windows, "(3 greet.go <proposal>)") }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, e.flavour, map[string]string{"greet.go": before})
			b.open("greet.go")
			b.tm.Resize(118, 22)
			b.is(e.columns, "118")
			a := b.connect()
			a.OpenDiff(b.path("greet.go"), after)
			e.shown(b)
			b.pause(300)
			picture := terminal.SVG(b.tm.Coloured())
			for _, word := range []string{"greet.go", "Printf", "by name if there is one"} {
				if !strings.Contains(string(picture), word) {
					t.Errorf("%q is not on the screen", word)
				}
			}
			path := filepath.Join(repository(t), "docs", "images", name+"-diff.svg")
			if *update {
				if err := os.WriteFile(path, picture, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), "by name if there is one") {
				t.Errorf("%s: %v; draw it: go test ./e2e/editors -run TestPictures -update", path, err)
			}
		})
	}
}
