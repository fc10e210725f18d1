package companion

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
)

const (
	fileBefore = "one\ntwo\nthree\nfour\nfive\n"
	fileAfter  = "one\ntwo\nthree\nfour\nFIVE\n"
)

// SPEC F-13: the file of a proposal is changed by another program, in place
// or by a rename over it: every view is told, and nothing is accepted over it.
func TestFileChangesF13(t *testing.T) {
	for name, write := range map[string]func(path, text string) error{
		"in place": func(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) },
		"by a rename, as sed -i does": func(path, text string) error {
			if err := os.WriteFile(path+".tmp", []byte(text), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".tmp", path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, a, _ := options(t)
			c := start(t, o)
			file := filepath.Join(a, "a.txt")
			if err := os.WriteFile(file, []byte(fileBefore), 0o600); err != nil {
				t.Fatal(err)
			}
			reviewer, ctx := join(t, o, a), t.Context()
			if err := reviewer.Attach(ctx); err != nil {
				t.Fatal(err)
			}
			owner := &reviewtest.Owner{Name: "Gemini CLI #1"}
			owner.Propose(t, c.reg, file, fileBefore, fileAfter)
			shown := until(t, reviewer, "the proposal", one).Diffs[0]
			if err := write(file, strings.Replace(fileBefore, "one", "ONE", 1)); err != nil {
				t.Fatal(err)
			}
			// At once, before the watcher can have said anything, and after it has.
			if err := reviewer.Decide(ctx, control.Decision{ID: shown.ID, Accept: true}); err == nil || !strings.Contains(err.Error(), "the file has changed since this was shown") {
				t.Errorf("accepted over a change that was not shown: %v", err)
			}
			// Who writes in place empties the file first, and that may be seen as well.
			shows := func(old string) func(control.Queue) bool {
				return func(q control.Queue) bool {
					if !one(q) || q.Diffs[0].Base == 0 {
						return false
					}
					texts, err := reviewer.Texts(ctx, q.Diffs[0].ID)
					return err == nil && texts.Old == old && texts.Base == q.Diffs[0].Base
				}
			}
			until(t, reviewer, "the change", shows(strings.Replace(fileBefore, "one", "ONE", 1)))
			if err := write(file, strings.Replace(fileBefore, "five", "5", 1)); err != nil {
				t.Fatal(err)
			}
			told := until(t, reviewer, "the conflict", shows(strings.Replace(fileBefore, "five", "5", 1))).Diffs[0]
			if told.Conflict == nil {
				t.Error("both have changed the same line, and that is no conflict")
			}
			seen := control.Seen{Version: told.Version, Base: told.Base}
			if err := reviewer.Decide(ctx, control.Decision{ID: told.ID, Accept: true, Seen: seen}); err == nil {
				t.Error("accepted in a conflict")
			}
			if err := reviewer.Resolve(ctx, told.ID, seen, false); err != nil {
				t.Fatal(err)
			}
			if err := reviewer.Decide(ctx, control.Decision{ID: told.ID, Accept: true, Seen: seen}); err != nil {
				t.Fatal(err)
			}
			if o := owner.ExpectTold(t, review.Accepted)[0].Outcome; o.Content != fileAfter {
				t.Errorf("accepted %q", o.Content)
			}
			// What was written over can be had back.
			eventuallyKept(t, reviewer, strings.Replace(fileBefore, "five", "5", 1))
		})
	}
}

// eventuallyKept waits until the history's newest entry has that text as what was there before.
func eventuallyKept(t *testing.T, c *control.Client, old string) {
	t.Helper()
	until(t, c, "the history", func(q control.Queue) bool { return q.Past > 0 })
	list, err := c.History(t.Context())
	if err != nil || len(list) == 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	if e, err := c.PastTexts(t.Context(), list[0].ID); err != nil || e.Old != old {
		t.Errorf("kept %q, %v", e.Old, err)
	}
}
