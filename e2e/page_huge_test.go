package e2e

import (
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/e2e/browser"
)

// frozen is how long the page stood still since the last call, in milliseconds, by the browser's own count of long tasks.
func (d *desk) frozen() int {
	return browser.Eval[int](d.Page, `(async () => {
		window.frozen ??= (() => {
			const all = {sum: 0};
			new PerformanceObserver(list => list.getEntries().forEach(e => all.sum += e.duration)).observe({type: "longtask"});
			return all;
		})();
		for (let i = 0; i < 3; i++) await new Promise(r => requestAnimationFrame(() => setTimeout(r)));
		const sum = window.frozen.sum;
		window.frozen.sum = 0;
		return Math.round(sum);
	})()`)
}

// A proposal of one huge line answers keys as one of the same size in many lines does, and what is accepted is exact (SPEC F-6).
func TestHugeLinePage(t *testing.T) {
	b, _, d, a := newDesk(t, nil)
	const unit = `{"key": "value", "n": [1, 2, 3], "ü": "☃"}, `
	d.frozen()
	took := map[string]int{}
	for name, end := range map[string]string{"many.json": "\n", "one.json": ""} {
		old := "[" + strings.Repeat(unit+end, 8_000) + "]\n"
		proposed := strings.Replace(old, "value", "CHANGED", 1)
		b.write(name, old)
		a.OpenDiff(b.path(name), proposed)
		d.proposal(name)
		d.Until("the proposal has the focus", `document.activeElement.dataset.testid === "diff-new"`)
		opening := d.frozen()
		for _, key := range []string{"Control+Home", "x", "End", "x", "Backspace", "Home", "Delete", "F8", "Control+End"} {
			d.Press(key)
			took[name] += d.frozen()
		}
		t.Logf("%s: %d bytes, froze %d ms as it opened and %d ms for 9 keys", name, len(proposed), opening, took[name])
		d.Press("Control+Enter")
		expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path(name), Content: proposed})
	}
	if took["one.json"] > took["many.json"]+500 {
		t.Errorf("one line froze the page longer than many: %v", took)
	}
}
