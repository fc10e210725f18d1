package e2e

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/e2e/browser"
	"github.com/pollux-companion/pollux/internal/peers"
)

// TestKeyboardOnly leads through a whole piece of work without the mouse:
// find a file in the tree, edit, save, decide a proposal.
func TestKeyboardOnly(t *testing.T) {
	b, _, d, a := newDesk(t, map[string]string{"a.txt": "old\n", "z.txt": "zed\n"})
	d.Wait(d.item("z.txt"))
	d.Press("Tab") // the way past the side bar comes first
	if got := browser.Eval[string](d.Page, "document.activeElement.id"); got != "skip" {
		t.Errorf("the first stop is %q, not the way to the editor", got)
	}
	d.Press("Control+Shift+E")
	if d.Focused() != "tree-item" {
		t.Fatalf("the focus is on %q, not in the tree", d.Focused())
	}
	d.Press("End", "Enter")
	d.shows("z.txt")
	d.Until("the editor has the focus", `document.activeElement.dataset.testid === "editor-content"`)
	d.Press("Control+End")
	d.Type("more\n")
	d.Press("Control+s")
	b.holds("z.txt", "zed\nmore\n")

	a.OpenDiff(b.path("a.txt"), "new\n")
	d.Wait(browser.ID("status-pending"))
	d.Press("F9")
	d.proposal("a.txt")
	d.Until("the proposal has the focus", `document.activeElement.dataset.testid === "diff-new"`)
	d.Press("Control+End")
	d.Type("by hand\n")
	d.Press("Control+Enter")
	expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("a.txt"), Content: "new\nby hand\n"})
	d.Until("the editor has the focus again", `document.activeElement.dataset.testid === "editor-content"`)

	var stops []string
	for range 8 {
		d.Press("F6")
		stops = append(stops, browser.Eval[string](d.Page, `document.activeElement.closest("#tree,#tabs,#panes,#status")?.id ?? "nowhere"`))
	}
	for _, part := range []string{"tree", "tabs", "panes", "status"} {
		if !slices.Contains(stops, part) {
			t.Errorf("F6 never stops at %s: %v", part, stops)
		}
	}
	d.Press("Control+Shift+E", "F1")
	d.Wait("dialog[open]")
	d.Press("Escape")
	d.Gone("dialog[open]")
	if d.Focused() != "tree-item" {
		t.Errorf("after the dialog the focus is on %q", d.Focused())
	}
}

// TestScreenReader: what a screen reader meets has roles and names, in the
// editor and in a proposal.
func TestScreenReader(t *testing.T) {
	b, _, d, a := newDesk(t, map[string]string{"a.txt": "old\n", "sub/b.txt": "b\n"})
	d.open("a.txt")
	has(t, d.AccessibilityTree(),
		browser.Accessible{Role: "tree", Name: "Files"}, browser.Accessible{Role: "treeitem", Name: "a.txt"},
		browser.Accessible{Role: "tablist", Name: "Open files"}, browser.Accessible{Role: "tab", Name: "a.txt"},
		browser.Accessible{Role: "main"}, browser.Accessible{Role: "complementary", Name: "Workspace"},
		browser.Accessible{Role: "heading", Name: "project"}, browser.Accessible{Role: "link", Name: "Skip to the editor"},
	)
	a.OpenDiff(b.path("a.txt"), "new\n")
	d.proposal("a.txt")
	if said := d.Text(browser.ID("live")) + d.Text(browser.ID("live-urgent")); !strings.Contains(said, "proposes a change to a.txt") {
		t.Errorf("the proposal is not announced; the live regions say %q", said)
	}
	tree := d.AccessibilityTree()
	has(t, tree,
		browser.Accessible{Role: "region", Name: "Proposal"}, browser.Accessible{Role: "button", Name: "Next change"},
		browser.Accessible{Role: "heading", Name: "Proposals"},
	)
	var nameless, boxes []string
	for _, n := range tree {
		if slices.Contains([]string{"button", "link", "textbox", "checkbox", "tab", "treeitem", "dialog"}, n.Role) && strings.TrimSpace(n.Name) == "" {
			nameless = append(nameless, n.Role)
		}
		if n.Role == "textbox" {
			boxes = append(boxes, n.Name)
		}
	}
	if len(nameless) > 0 {
		t.Errorf("without a name: %v", nameless)
	}
	if !slices.ContainsFunc(boxes, func(s string) bool { return strings.Contains(s, "Proposal, editable") }) {
		t.Errorf("no text box says that it is the editable proposal: %q", boxes)
	}
}

// has fails for each node that is missing; names may go on ("a.txt, unsaved"), an empty one fits all.
func has(t *testing.T, tree []browser.Accessible, wanted ...browser.Accessible) {
	t.Helper()
	for _, w := range wanted {
		if !slices.ContainsFunc(tree, func(n browser.Accessible) bool { return n.Role == w.Role && strings.HasPrefix(n.Name, w.Name) }) {
			t.Errorf("the accessibility tree has no %s %q", w.Role, w.Name)
		}
	}
}

// TestThemes: light and dark, by the system's wish and by the button; no text
// in any view is too faint in either (WCAG 2.2 AA).
func TestThemes(t *testing.T) {
	b, _, d, a := newDesk(t, map[string]string{"main.go": goSample, "README.md": "# Title\n\n`code` and *text*\n", "old.txt": "one\ntwo\n", "dist/x.js": "", ".gitignore": "dist\n"})
	d.Click(browser.ID("show-ignored"))
	d.Wait(d.item("dist"))
	for _, theme := range []string{"light", "dark"} {
		d.Media("color-scheme", theme)
		d.Until("the page is "+theme, `matchMedia("(prefers-color-scheme: `+theme+`)").matches`)
		if dark := luminance(d) < 0.5; dark != (theme == "dark") {
			t.Errorf("the system wants %s, the page's luminance is %.2f", theme, luminance(d))
		}
		d.open("README.md")
		readable(t, d, theme+", a page of Markdown")
		d.open("main.go")
		readable(t, d, theme+", a program")
		a.OpenDiff(b.path("main.go"), strings.ReplaceAll(goSample, "world", "pollux"))
		d.proposal("main.go")
		readable(t, d, theme+", a proposal")
		d.Click(browser.ID("toggle-layout"))
		d.Wait(`.diff[data-layout="unified"]`)
		d.Until("deleted lines have the colours of their language",
			`[...document.querySelectorAll(".cm-deletedLine span")].some(e => [...e.classList].some(c => c.startsWith("ͼ")))`)
		readable(t, d, theme+", a unified proposal")
		d.Click(browser.ID("toggle-layout"))
		d.Click(browser.ID("reject"))
		a.Outcome()
		d.history()
		readable(t, d, theme+", the history")
		d.Press("F1")
		d.Wait("dialog[open]")
		readable(t, d, theme+", the help")
		d.Press("Escape")
	}
	d.Click(browser.ID("toggle-theme")) // from the system's to light
	if luminance(d) < 0.5 {
		t.Error("the button does not overrule the system's dark")
	}
}

const goSample = `// Package main greets.
package main

import "fmt"

const times = 3

func main() {
	for i := range times {
		fmt.Printf("hello, world %d\n", i) // again and again
	}
}
`

// luminance of the page's background, 0 to 1.
func luminance(d *desk) float64 {
	return browser.Eval[float64](d.Page, `(() => {
		const c = document.createElement("canvas").getContext("2d");
		c.fillStyle = getComputedStyle(document.body).backgroundColor;
		c.fillRect(0, 0, 1, 1);
		const [r, g, b] = c.getImageData(0, 0, 1, 1).data;
		return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
	})()`)
}

func readable(t *testing.T, d *desk, what string) {
	t.Helper()
	d.Until("colours have come to rest", atRest)
	faint, measured := d.Contrast()
	if measured < 10 {
		t.Errorf("%s: only %d pieces of text were measured", what, measured)
	}
	for _, f := range faint {
		t.Errorf("%s: %v", what, f)
	}
}

// The pictures' program, before and after what the CLI proposes.
const (
	countBefore = `// Package words counts them.
package words

import "strings"

// Count returns how often each word of text occurs.
func Count(text string) map[string]int {
	counts := map[string]int{}
	for _, word := range strings.Split(text, " ") {
		if word == "" {
			continue
		}
		counts[word] = counts[word] + 1
	}
	return counts
}
`
	countAfter = `// Package words counts them.
package words

import (
	"strings"
	"unicode"
)

// Count returns how often each word of text occurs, in lower case.
func Count(text string) map[string]int {
	counts := map[string]int{}
	for word := range strings.FieldsFuncSeq(text, notLetter) {
		counts[strings.ToLower(word)]++
	}
	return counts
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) }
`
)

// TestPictures makes the pictures of the manual; with -update it writes them
// to docs/images. Without, it checks that the committed ones are there.
func TestPictures(t *testing.T) {
	peers.Need(t, peers.Chromium)
	t.Parallel()
	b := newBenchAt(t, "wordcount", map[string]string{
		"words.go": countBefore, "words_test.go": "package words\n", "go.mod": "module example.com/words\n", "README.md": "# Words\n\nCounts them.\n", "cmd/words/main.go": "package main\n",
	})
	c := b.serve()
	d := b.desk(c)
	a := agent.Start(t, c.DiscoveryFile)
	d.Size(1200, 640)
	d.Media("color-scheme", "light")
	d.open("README.md")
	d.open("words.go")
	d.cursor(9, 23, 24)
	picture(d, "editor-light.png")
	a.OpenDiff(b.path("README.md"), "# Words\n\nCounts them, in lower case.\n")
	a.OpenDiff(b.path("words.go"), countAfter)
	d.Click(browser.ID("queue-item") + `[title$="words.go"]`)
	d.proposal("words.go")
	d.Gone(browser.ID("note"))
	picture(d, "diff-light.png")
	d.Media("color-scheme", "dark")
	picture(d, "diff-dark.png")
}

// picture takes one when the page is at rest.
func picture(d *desk, name string) {
	d.b.t.Helper()
	d.Until("colours have come to rest", atRest)
	photograph(d.b.t, d.Page, name)
}

// photograph takes a picture for the manual, and writes it to docs/images with -update.
func photograph(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	root, err := peers.Root()
	if err != nil {
		t.Fatal(err)
	}
	images := filepath.Join(root, "docs", "images")
	file := filepath.Join(t.TempDir(), name)
	if *update {
		if err := os.MkdirAll(images, 0o755); err != nil {
			t.Fatal(err)
		}
		file = filepath.Join(images, name)
	}
	p.Screenshot(file)
	check(t, file)
	check(t, filepath.Join(images, name))
}

// atRest is true when nothing on the page is moving that will stop.
const atRest = `document.getAnimations().every(a => a.playState !== "running" || a.effect?.getTiming().iterations === Infinity)`

// check fails unless file is a picture of the right size with something on it.
func check(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("%v; make the pictures with: go test ./e2e -run TestPictures -update", err)
		return
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Errorf("%s: %v", file, err)
		return
	}
	if size := img.Bounds().Size(); size.X < 1200 || size.Y < 640 || len(data) < 10_000 || len(data) > 300_000 {
		t.Errorf("%s: %v, %d bytes", file, size, len(data))
	}
}

// TestNarrow: in a narrow window, which is also a wide one at two and four
// times the size (WCAG 2.2, 1.4.10), nothing of a proposal sticks out, and the
// side bar comes when it is asked for and goes when something was chosen.
func TestNarrow(t *testing.T) {
	b, _, d, a := newDesk(t, map[string]string{"a.txt": "old\n", "b.txt": "b\n"})
	d.open("b.txt")
	a.OpenDiff(b.path("a.txt"), "new\n")
	d.proposal("a.txt")
	a.OpenDiff(b.path("b.txt"), "new\n")
	d.WaitText(browser.ID("queue-count"), "2")
	for _, size := range [][2]int64{{800, 600}, {640, 400}, {400, 700}, {320, 256}} {
		d.Size(size[0], size[1])
		d.Until("the page has its width", fmt.Sprintf("innerWidth === %d", size[0]))
		out := browser.Eval[string](d.Page, `[...document.querySelectorAll("button, .status-item, h2")].filter((e) => {
			const r = e.getBoundingClientRect();
			return r.width > 0 && (r.right > innerWidth + 1 || r.left < -1) && !e.closest(".tabs");
		}).map((e) => e.dataset.testid ?? e.className).join(" ")`)
		if out != "" {
			t.Errorf("at %d × %d these stick out: %s", size[0], size[1], out)
		}
	}
	d.Size(420, 700)
	d.Until("the page has its width", "innerWidth === 420")
	rows := browser.Eval[string](d.Page, `[...new Set([...document.querySelectorAll(".review-tools button")].map((e) => Math.round(e.getBoundingClientRect().top / 20)))].join(" ")`)
	if strings.Contains(rows, " ") {
		t.Errorf("at 420 pixels the buttons above a diff stand in rows at %s", rows)
	}
	for _, layout := range []string{"side", "unified"} { // what the button chooses is what comes
		d.Click(browser.ID("toggle-layout"))
		d.Until("the layout is "+layout, fmt.Sprintf("document.querySelector('.diff').dataset.layout === %q", layout))
	}
	d.Size(400, 700)
	if d.Has(d.item("b.txt")) {
		t.Error("the side bar lies over the proposal unasked")
	}
	d.Press("Control+Shift+E")
	if d.Focused() != "tree-item" {
		t.Errorf("the focus is on %q, not in the tree", d.Focused())
	}
	d.Click(d.item("b.txt"))
	d.shows("b.txt")
	d.Gone(d.item("b.txt"))
	d.Press("F1")
	d.Wait(browser.ID("help-dialog"))
	if at := browser.Eval[float64](d.Page, `document.querySelector("dialog").scrollTop`); at != 0 {
		t.Errorf("the list of keys opens %v pixels from its top", at)
	}
	d.Press("Escape")
	d.Size(1280, 800)
	d.Wait(d.item("b.txt"))
}
