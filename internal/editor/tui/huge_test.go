package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/pace"
)

// A proposal of one line of many megabytes delays nobody: it appears, scrolls and is decided within moments.
func TestHugeLine(t *testing.T) {
	for name, text := range map[string]string{
		"ascii":    strings.Repeat("abcdefghi ", 800_000),
		"wide":     strings.Repeat("漢字\u0301 ", 800_000),
		"no words": strings.Repeat("x", 8_000_000),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 120, 40)
			b.propose("1", "/w/proj/a.json", text+"old"+text[:len(text)/2], text+"new"+text[:len(text)/2])
			b.sync()
			if shown := b.m.frame().String(); name != "no words" && (!strings.Contains(shown, "old") || !strings.Contains(shown, "new")) {
				t.Errorf("the change is not in view:\n%s", shown)
			}
			for range 200 {
				b.press("left")
			}
			if shown := b.m.frame().String(); !strings.Contains(shown, " bytes ⋯") && name != "no words" {
				t.Errorf("it does not say that the line is cut:\n%s", shown)
			}
			for what, do := range map[string]func(){
				"coming up": func() { b.sync() }, "the next hunk": func() { b.press("n") }, "to the right": func() { b.press("right", "right") },
				"unfolded": func() { b.press("f") }, "side by side": func() { b.press("s") },
			} {
				watch := pace.Start(t)
				do()
				_ = b.m.frame().String()
				took := watch.Took()
				t.Logf("%s: %v", what, took)
				if took > pace.Slack*500*time.Millisecond {
					t.Errorf("%s takes %v", what, took)
				}
			}
		})
	}
}
