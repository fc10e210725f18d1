package e2e

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/e2e/browser"
	"github.com/pollux-companion/pollux/internal/peers"
)

// newDesk is a project with its companion, its page and an agent.
func newDesk(t *testing.T, files map[string]string) (*bench, *companion, *desk, *agent.Agent) {
	t.Helper()
	peers.Need(t, peers.Chromium)
	t.Parallel()
	b := newBench(t, files)
	c := b.serve()
	d := b.desk(c)
	// An agent's own children may not ask for the page, and the agent is this
	// very process: what the test needs is asked before it connects.
	b.spare = strings.TrimSpace(b.pollux("page"))
	return b, c, d, agent.Start(t, c.DiscoveryFile)
}

// TestQuiet: the cursor of a page that nobody types into stops blinking, so that an idle page wakes no processor.
func TestQuiet(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "a\n"})
	d := b.desk(b.serve())
	d.Media("reduced-motion", "no-preference")
	d.open("a.txt")
	const layer = `getComputedStyle(document.querySelector(".cm-focused .cm-cursorLayer"))`
	d.Until("the cursor blinks", layer+`.animationName.startsWith("cm-blink")`)
	if blinks := browser.Eval[string](d.Page, layer+".animationIterationCount"); blinks != "8" {
		t.Errorf("it blinks %s times", blinks)
	}
}

// TestEditing: tree, tabs, editing, finding and saving; what is ignored is
// not shown (page); unsaved changes are marked and survive a reload.
func TestEditing(t *testing.T) {
	b, c, d, a := newDesk(t, map[string]string{
		"main.go": "package main\n\nfunc main() {}\n", "docs/guide.md": "# Guide\n\nneedle and needle\n",
		"dist/built.js": "no\n", ".gitignore": "dist/\n", "ohne.txt": "no end",
	})
	d.Wait(d.item("main.go"))
	if d.Has(d.item("dist")) {
		t.Error("an ignored folder is in the tree")
	}
	d.Click(browser.ID("show-ignored"))
	d.Wait(d.item("dist"))

	d.open("docs/guide.md")
	d.open("main.go")
	d.cursor(3, 14, 0)
	d.Type(" println(1) ")
	d.Wait(d.tab("main.go") + ".dirty")
	if got := b.read("main.go"); strings.Contains(got, "println") {
		t.Error("an unsaved change is on the disk")
	}
	d.Press("Control+s")
	b.holds("main.go", "package main\n\nfunc main() { println(1) }\n")
	d.Gone(d.tab("main.go") + ".dirty")

	// A save keeps what the editor does not show: no final newline stays none.
	d.open("ohne.txt")
	d.cursor(1, 1, 0)
	d.Type("still ")
	d.Press("Control+s")
	b.holds("ohne.txt", "still no end")

	// Finding by name, and within a file.
	d.Press("Control+p")
	d.Wait(browser.ID("quick-input"))
	d.Type("guide")
	d.Press("Enter") // as fast as a person types: what was typed counts, not what the list showed before
	d.shows("docs/guide.md")
	d.Click(browser.ID("editor-content"))
	d.Press("Control+f")
	d.Wait(".cm-search input")
	d.Press("n", "e", "e", "d", "l", "e", "Enter")
	d.WaitText(browser.ID("status-position"), "6 selected")
	a.Context("the selection", func(files []agent.File) bool {
		return len(files) == 3 && files[0].Path == b.path("docs/guide.md") && files[0].SelectedText == "needle"
	})

	// A draft survives a reload.
	d.Press("Escape")
	d.cursor(1, 8, 0)
	d.Type(" draft")
	d.Wait(d.tab("docs/guide.md") + ".dirty")
	d.drafted("draft")
	d.Go("about:blank")
	d.Go(c.origin() + "/") // the tab has its token
	d.online()
	d.shows("docs/guide.md")
	d.Wait(d.tab("docs/guide.md") + ".dirty")
	d.WaitText(browser.ID("editor-content"), "draft")
}

// TestNewRenamedDeleted: files are made, renamed and deleted in the page.
func TestNewRenamedDeleted(t *testing.T) {
	b, _, d, _ := newDesk(t, map[string]string{"a.txt": "a\n"})
	d.Wait(d.item("a.txt"))
	d.Click(browser.ID("new-file"))
	d.Wait(browser.ID("prompt-input"))
	d.Type("fresh.txt")
	d.Press("Enter")
	d.shows("fresh.txt")
	d.Type("fresh\n")
	d.Press("Control+s")
	b.holds("fresh.txt", "fresh\n")

	d.Click(d.item("fresh.txt"))
	d.Press("Control+Shift+E")
	d.Press("F2")
	d.Wait(browser.ID("prompt-input"))
	d.Press("Control+a")
	d.Type("renamed.txt")
	d.Press("Enter")
	d.Wait(d.tab("renamed.txt"))
	b.holds("renamed.txt", "fresh\n")

	d.Press("Control+Shift+E")
	d.Press("Delete")
	d.Click(browser.ID("choice-yes"))
	d.Gone(d.item("renamed.txt"))
	if _, err := os.Stat(b.path("renamed.txt")); !os.IsNotExist(err) {
		t.Errorf("the deleted file: %v", err)
	}
}

// TestOutsideChanges: a file that changes on disk is shown anew by itself;
// with unsaved changes the user decides, and neither text is lost (F-8).
func TestOutsideChanges(t *testing.T) {
	b, _, d, _ := newDesk(t, map[string]string{"a.txt": "first\n"})
	d.open("a.txt")
	b.write("a.txt", "second\n")
	d.WaitText(browser.ID("editor-content"), "second")
	b.write("new.txt", "appears\n")
	d.Wait(d.item("new.txt"))

	d.cursor(1, 1, 0)
	d.Type("mine ")
	d.Wait(d.tab("a.txt") + ".dirty")
	b.write("a.txt", "third\n")
	d.WaitText(browser.ID("conflict-bar"), "changed on disk")
	if text := d.Text(browser.ID("editor-content")); !strings.Contains(text, "mine second") {
		t.Errorf("the unsaved text is gone: %q", text)
	}
	d.Click(browser.ID("conflict-compare"))
	d.Wait(browser.ID("compare-dialog"))
	d.WaitText(browser.ID("compare-dialog")+" "+browser.ID("diff-old"), "third")
	d.Click(browser.ID("compare-mine"))
	d.Gone(browser.ID("conflict-bar"))
	d.Press("Control+s")
	b.holds("a.txt", "mine second\n")

	d.Click(browser.ID("editor-content"))
	d.Type("x")
	b.write("a.txt", "fourth\n")
	d.Click(browser.ID("conflict-disk"))
	d.WaitText(browser.ID("editor-content"), "fourth")
}

// TestLostConnection: the page says so when its companion is gone, keeps what
// was written, and comes back by itself.
func TestLostConnection(t *testing.T) {
	b, c, d, _ := newDesk(t, map[string]string{"a.txt": "text\n"})
	d.open("a.txt")
	d.cursor(1, 1, 0)
	d.Expect("WebSocket")
	d.Expect("net::ERR_")
	c.end(syscall.SIGKILL)
	d.WaitText(browser.ID("banner"), "connection")
	d.Type("written meanwhile ")
	d.Wait(d.tab("a.txt") + ".dirty")
	b.serve()
	d.online()
	d.Gone(browser.ID("banner"))
	d.WaitText(browser.ID("editor-content"), "written meanwhile text")
	d.Click(browser.ID("editor-content"))
	d.Press("Control+s")
	b.holds("a.txt", "written meanwhile text\n")
}

// TestDoor: without a fresh address the page is of no use, and an address is
// good once (SPEC §11.2).
func TestDoor(t *testing.T) {
	b, c, d, _ := newDesk(t, map[string]string{"a.txt": "text\n"})
	stranger := shared.chromium(t).Open(t, c.origin()+"/")
	stranger.WaitText(browser.ID("denied"), "pollux page")
	used := shared.chromium(t).Open(t, c.Page)
	used.Expect("403")
	used.WaitText(browser.ID("denied"), "used")
	if hash := browser.Eval[string](d.Page, "location.hash"); hash != "" {
		t.Errorf("the code stays in the address: %q", hash)
	}
	d.Wait(d.item("a.txt"))
	_ = b
}

// TestUnknownPage: a page whose token is not known (any more) says so, goes on
// with a fresh address in the same tab, and has every draft that it had.
func TestUnknownPage(t *testing.T) {
	b, c, d, _ := newDesk(t, map[string]string{"a.txt": "text\n"})
	d.open("a.txt")
	d.cursor(1, 1, 0)
	d.Type("draft ")
	d.Wait(d.tab("a.txt") + ".dirty")
	d.drafted("draft")
	browser.Eval[bool](d.Page, `(sessionStorage.setItem("pollux.key", "x".repeat(43)), true)`)
	d.Go("about:blank")
	d.Go(c.origin() + "/")
	d.WaitText(browser.ID("denied"), "does not know this page")
	d.Go("about:blank") // a reload in between keeps the drafts as well
	d.Go(c.origin() + "/")
	d.WaitText(browser.ID("denied"), "needs an address")
	browser.Eval[bool](d.Page, `(location.href = `+strconv.Quote(b.spare)+`, true)`)
	d.online()
	d.Gone(browser.ID("denied"))
	d.shows("a.txt")
	d.Wait(d.tab("a.txt") + ".dirty")
	d.WaitText(browser.ID("editor-content"), "draft text")
}
