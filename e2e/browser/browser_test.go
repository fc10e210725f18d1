package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sample = `<!doctype html><title>sample</title><body style="background:#fff">
<button data-testid="go" onclick="document.querySelector('#out').textContent += ' clicked'">Go</button>
<p id="out" style="color:#111">ready</p>
<p style="color:#aaa" data-testid="pale">too pale to read</p>
<p style="color:#aaa" hidden>hidden text does not count</p>
<textarea data-testid="box" onkeydown="if (event.ctrlKey && event.key === 'Enter') this.value += '!'"></textarea>
<a href="#" aria-label="A link that is named">x</a>`

// TestDrivesAPage proves the harness itself: what it clicks, types, presses
// and measures is what the page sees.
func TestDrivesAPage(t *testing.T) {
	b := Start(t)
	t.Cleanup(b.Stop)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, sample)
	}))
	t.Cleanup(srv.Close)
	p := b.Open(t, srv.URL)
	p.Expect("favicon")
	p.Click(ID("go"))
	p.WaitText("#out", "ready clicked")
	p.Click(ID("box"))
	p.Type("täxt 🎈")
	p.Press("Control+Enter", "A")
	if got := Eval[string](p, "document.querySelector('textarea').value"); got != "täxt 🎈!A" {
		t.Errorf("the box holds %q", got)
	}
	if p.Focused() != "box" {
		t.Errorf("the focus is on %q", p.Focused())
	}
	faint, measured := p.Contrast()
	if measured < 3 || len(faint) != 1 || faint[0].Element != "p[pale]" || faint[0].Ratio > 2.4 || faint[0].Ratio < 2.2 {
		t.Errorf("of %d texts these are faint: %v", measured, faint)
	}
	var named bool
	for _, n := range p.AccessibilityTree() {
		named = named || n == Accessible{"link", "A link that is named"}
	}
	if !named {
		t.Errorf("the link is not in the accessibility tree: %v", p.AccessibilityTree())
	}
	file := filepath.Join(t.TempDir(), "shot.png")
	p.Screenshot(file)
	if png, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(png), "\x89PNG") {
		t.Errorf("the screenshot is no PNG: %v", err)
	}
	if !p.Has(ID("go")) || p.Has("#none") || p.Count("p") != 3 {
		t.Error("Has or Count see something else than the page")
	}
}
