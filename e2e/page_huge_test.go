package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/e2e/browser"
)

// worked is how long the page has worked for what do started, until it has drawn that.
func (d *desk) worked(do func()) time.Duration {
	before := d.Busy()
	do()
	browser.Eval[bool](d.Page, `(async () => {
		for (let i = 0; i < 3; i++) await new Promise(r => requestAnimationFrame(() => setTimeout(r)));
		return true;
	})()`)
	return d.Busy() - before
}

// A proposal of one huge line answers keys as one of the same size in many lines does, and what is accepted is exact.
// One of five megabytes is on the page after two seconds of the page's own time (SPEC F-5, F-6).
func TestHugeLinePage(t *testing.T) {
	b, _, d, a := newDesk(t, nil)
	const unit = `{"key": "value", "n": [1, 2, 3], "ü": "☃"}, `
	open := func(name, end string, units int) (proposed string) {
		old := "[" + strings.Repeat(unit+end, units) + "]\n"
		proposed = strings.Replace(old, "value", "CHANGED", 1)
		b.write(name, old)
		took := d.worked(func() {
			a.OpenDiff(b.path(name), proposed)
			d.proposal(name)
			d.Until("the proposal has the focus", `document.activeElement.dataset.testid === "diff-new"`)
		})
		t.Logf("%s: %d bytes, opened in %v of the page's time", name, len(proposed), took)
		if took > 2*time.Second {
			t.Errorf("the page needs %v to open %s", took, name)
		}
		return proposed
	}
	keys := map[string]time.Duration{}
	for name, end := range map[string]string{"many.json": "\n", "one.json": ""} {
		proposed := open(name, end, 8_000)
		keys[name] = d.worked(func() {
			for _, key := range []string{"Control+Home", "x", "End", "x", "Backspace", "Home", "Delete", "F8", "Control+End"} {
				d.Press(key)
			}
		})
		d.Press("Control+Enter")
		expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path(name), Content: proposed})
	}
	t.Logf("nine keys took %v", keys)
	if keys["one.json"] > keys["many.json"]+500*time.Millisecond {
		t.Errorf("keys take longer in one line than in many: %v", keys)
	}
	proposed := open("five.json", "", 120_000)
	d.Press("Control+Enter")
	expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("five.json"), Content: proposed})
}
