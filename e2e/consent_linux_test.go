package e2e

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/browser"
)

// TestConsentOnThePage: the question about a tool stands on the page, in
// lines; a key that was meant for something else keeps nothing, and the button
// that is clicked is the answer (SPEC S-2).
func TestConsentOnThePage(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "text\n", "x/t.sh": "cat a.txt",
		"x/gemini-extension.json": `{"name":"x","version":"1.0.0","permissions":{"filesystem":{"read":"workspace"}},
			"tools":[{"name":"t","description":"d","executable":"t.sh","runtime":"shell"}]}`})
	d := b.desk(b.serve())
	b.pollux("extensions", "install", b.path("x"), "--yes")
	run := func() (ended func() string) {
		cmd := exec.CommandContext(t.Context(), shared.pollux, "extensions", "run", "x", "t")
		cmd.Dir, cmd.Env = b.dir, b.home.Env()
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return func() string { _ = cmd.Wait(); return out.String() }
	}
	ended := run()
	d.Wait(browser.ID("ask-dialog"))
	text := d.Text(browser.ID("ask-dialog"))
	for _, part := range []string{`May the tool "t" of the extension "x" run?`, "\nWhat the sandbox lets its tools do:\n", "may read the files of the workspace", b.dir} {
		if !strings.Contains(text, part) {
			t.Errorf("the page does not say %q:\n%s", part, text)
		}
	}
	d.Press("Enter")
	if out := ended(); !strings.Contains(out, "did not agree") || strings.Contains(out, "text\n") {
		t.Errorf("after Enter: %s", out)
	}
	if out := b.pollux("extensions", "consent", "list"); !strings.Contains(out, "nothing was answered") {
		t.Errorf("Enter was kept: %s", out)
	}
	ended = run()
	d.Wait(browser.ID("choice-Allow always for this content"))
	d.Click(browser.ID("choice-Allow always for this content"))
	if out := ended(); !strings.HasSuffix(out, "text\n") {
		t.Errorf("after Allow always: %s", out)
	}
	if out := b.pollux("extensions", "run", "x", "t"); out != "text\n" {
		t.Errorf("asked again: %s", out)
	}
}
