package lsp_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
	"github.com/pollux-companion/pollux/internal/editor/lsp/lsptest"
)

var typings = flag.Int("typings", 24, "how many random interleavings TestTypingMeetsUpdates plays")

// extend puts what is typed at the end of the line that begins with start.
func extend(text, start, typed string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, start) {
			lines[i] = strings.TrimSuffix(line, "\n") + typed + "\n"
		}
	}
	return strings.Join(lines, "")
}

// A typist has one proposal in a plugin, whose messages take their time.
type typist struct {
	t     *testing.T
	r     *rand.Rand
	slow  int // how long a message takes at most, in ms
	disk  *disk
	reg   *review.Registry
	p     *lsptest.Plugin
	d     *review.Diff
	owner *reviewtest.Owner
	typed string // all that was typed after "three"
	heads int    // lines that were put before the file
	tails int    // lines that another view put behind the proposal
	pad   string // more of the file
}

// SPEC F-13: whatever is on its way while a user types, each key stays where it was typed, and what others change arrives.
func TestTypingMeetsUpdates(t *testing.T) {
	for n := range *typings {
		ok := t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := &typist{t: t, r: rand.New(rand.NewPCG(uint64(n), 3)), owner: &reviewtest.Owner{Name: "a"}}
				y.slow = []int{1, 50, 400, 3000}[n%4]
				if n%8 == 0 {
					y.pad = strings.Repeat("this file is long\n", 5000)
				}
				y.open()
				for range 120 {
					y.step()
				}
				y.end()
			})
		})
		if !ok {
			break
		}
	}
}

func (y *typist) open() {
	y.disk = &disk{text: before + y.pad}
	p, err := lsptest.Start(y.t.Context(), lsptest.Options{
		Delay:     lsptest.Delays(y.r.Uint64(), time.Duration(y.slow)*time.Millisecond),
		TakesOver: y.takesOver,
		Start: func(view review.View) *review.Registry {
			y.reg = review.New(review.Options{View: view, Files: y.disk, ShowTimeout: patience, ContentTimeout: patience})
			return y.reg
		},
	})
	if err != nil {
		y.t.Fatal(err)
	}
	y.p = p
	y.d = y.owner.Propose(y.t, y.reg, "/p/a", before+y.pad, after+y.pad)
}

// takesOver fails when an update lacks what was typed.
func (y *typist) takesOver(v lsptest.View, text string) {
	if !strings.Contains(text, "three"+y.typed+"\n") {
		i := strings.Index(text, "three")
		y.t.Errorf("an update overwrites %q with %.60q", "three"+y.typed, text[max(0, i):])
	}
}

func (y *typist) step() {
	switch k := y.r.IntN(12); {
	case k < 9:
		key := string(rune('a' + y.r.IntN(26)))
		y.typed += key
		y.p.Type(y.d.ID(), func(text string) string { return extend(text, "three", key) })
	case k == 9:
		y.heads++
		y.disk.write(strings.Repeat("0\n", y.heads) + before + y.pad)
		y.reg.Look("/p/a")
	case k == 10:
		y.tails++
		text, version := y.d.Text()
		if _, err := y.reg.Edit(y.d.ID(), review.Edit{Text: text + "9\n", From: &version}); err != nil {
			y.t.Error(err)
		}
	default:
		time.Sleep(time.Duration(y.r.IntN(2*y.slow)) * time.Millisecond)
	}
	time.Sleep(time.Duration(y.r.IntN(120)) * time.Millisecond)
	synctest.Wait()
}

// end waits until all has arrived everywhere, and accepts.
func (y *typist) end() {
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	want := strings.Repeat("0\n", y.heads) + extend(after, "three", y.typed) + y.pad + strings.Repeat("9\n", y.tails)
	view, _ := y.p.See(y.d.ID())
	now := y.d.Now()
	if now.Text != want || now.Conflict != nil {
		y.t.Errorf("the proposal is %.300q, conflict %v; want %.300q", now.Text, now.Conflict, want)
	}
	if view.Text != now.Text || view.Old != now.Base.Text {
		y.t.Errorf("the editor shows %.300q on %.100q and is never told better; the newest is %.300q on %.100q", view.Text, view.Old, now.Text, now.Base.Text)
	}
	y.p.Decide(y.d.ID(), "accepted", func(_ lsptest.View, err error) {
		if err != nil {
			y.t.Errorf("what is on the screen is refused: %v", err)
		}
	})
	time.Sleep(time.Minute)
	if o, ok := y.d.Outcome(); !ok || o.Content != want {
		y.t.Errorf("accepted %.300q", o.Content)
	}
	y.p.Close()
	y.reg.Shut()
	time.Sleep(time.Minute) // what waits for agents to write
}
