package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/e2e/browser"
)

const accepted, rejected = "ide/diffAccepted", "ide/diffRejected"

// expect waits for the next outcome and compares it (F-3: the path is the
// very string that was sent).
func expect(t *testing.T, a *agent.Agent, want agent.Outcome) {
	t.Helper()
	if got := a.Outcome(); got != want {
		t.Errorf("outcome %+v, want %+v", got, want)
	}
}

// TestHunks: each change of a proposal can be gone to, kept and taken back
// by keys and by clicks; what is accepted is what is left (F-5, F-6).
func TestHunks(t *testing.T) {
	lines := strings.Repeat("same\n", 20)
	b, _, d, a := newDesk(t, map[string]string{"a.txt": "first\n" + lines + "middle\n" + lines + "last\n"})
	a.OpenDiff(b.path("a.txt"), "FIRST\n"+lines+"MIDDLE\n"+lines+"LAST\n")
	d.proposal("a.txt")
	d.WaitText(browser.ID("hunk-summary"), "3")
	if old := d.Text(browser.ID("diff-old")); !strings.Contains(old, "first") {
		t.Errorf("the old side shows %q", old)
	}
	d.Press("F8")
	d.WaitText(browser.ID("hunk-summary"), "2")
	d.Press("Alt+Backspace") // takes MIDDLE back
	d.WaitText(browser.ID("hunk-summary"), "2")
	d.Press("F8")
	d.Click(browser.ID("revert-hunk")) // takes LAST back
	d.WaitText(browser.ID("hunk-summary"), "1")
	d.Press("Control+Enter")
	expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("a.txt"), Content: "FIRST\n" + lines + "middle\n" + lines + "last\n"})
	d.noProposal()
	if got := b.read("a.txt"); !strings.HasPrefix(got, "first\n") {
		t.Error("the companion wrote the file itself (F-8)")
	}
}

// TestRejecting: Escape rejects at once, but asks before it throws edits away.
func TestRejecting(t *testing.T) {
	b, _, d, a := newDesk(t, map[string]string{"a.txt": "old\n"})
	a.OpenDiff(b.path("a.txt"), "new\n")
	d.proposal("a.txt")
	d.Click(browser.ID("diff-new"))
	d.Press("Escape")
	expect(t, a, agent.Outcome{Method: rejected, FilePath: b.path("a.txt")})
	d.noProposal()

	a.OpenDiff(b.path("a.txt"), "new\n")
	d.proposal("a.txt")
	d.rewrite("my own words\n")
	d.Press("Escape")
	d.Click(browser.ID("choice-no"))
	a.Quiet()
	d.WaitText(browser.ID("diff-new"), "my own words")
	d.Press("Escape")
	d.Click(browser.ID("choice-yes"))
	expect(t, a, agent.Outcome{Method: rejected, FilePath: b.path("a.txt")})
}

// TestQueue: several proposals of two sessions wait in a list and are gone
// through; each outcome reaches the session that asked (F-3, F-7).
func TestQueue(t *testing.T) {
	b, c, d, a := newDesk(t, map[string]string{"a.txt": "a\n", "b.txt": "b\n"})
	other := agent.Start(t, c.DiscoveryFile)
	a.OpenDiff(b.path("a.txt"), "A\n")
	d.proposal("a.txt")
	a.OpenDiff(b.path("b.txt"), "B\n")
	other.OpenDiff(b.path("a.txt"), "from the other\n")
	d.WaitText(browser.ID("queue-count"), "3")
	d.WaitText(browser.ID("diff-position"), "1")
	d.Press("F9")
	d.proposal("b.txt")
	d.Click(browser.ID("accept"))
	expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("b.txt"), Content: "B\n"})
	d.WaitText(browser.ID("queue-count"), "2")

	d.Click(browser.ID("queue-item") + `:not([aria-current])`)
	d.WaitText(browser.ID("diff-owner"), "Gemini CLI #2")
	d.WaitText(browser.ID("diff-new"), "from the other")
	d.Click(browser.ID("accept"))
	expect(t, other, agent.Outcome{Method: accepted, FilePath: b.path("a.txt"), Content: "from the other\n"})
	d.WaitText(browser.ID("queue-count"), "1")
	a.Quiet()
	other.Quiet()
	d.Click(browser.ID("reject"))
	d.noProposal()
}

// TestHeldKey: a key that is still down when the next proposal comes up
// answers and edits only the one on which it was pressed.
func TestHeldKey(t *testing.T) {
	b, _, d, a := newDesk(t, map[string]string{"a.txt": "old\n", "b.txt": "old\n"})
	a.OpenDiff(b.path("a.txt"), "new\n")
	d.proposal("a.txt")
	a.OpenDiff(b.path("b.txt"), "new\n")
	d.WaitText(browser.ID("queue-count"), "2")
	d.Press("Control+Enter")
	expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("a.txt"), Content: "new\n"})
	d.proposal("b.txt")
	d.Until("the proposal has the focus", `document.activeElement.dataset.testid === "diff-new"`)
	for _, key := range []string{`key: "Enter", ctrlKey: true`, `key: "Enter"`, `key: "Escape"`} {
		if !browser.Eval[bool](d.Page, `!document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {`+key+`, repeat: true, bubbles: true, cancelable: true}))`) {
			t.Errorf("{%s} goes on from one proposal to the next", key)
		}
	}
	if d.Has("dialog[open]") {
		t.Error("a held Escape asks")
	}
	d.Press("Escape")
	expect(t, a, agent.Outcome{Method: rejected, FilePath: b.path("b.txt")})
	a.Quiet()
}

// TestWithdrawn: a CLI that takes its proposal back gets the text as the user
// edited it, and the view goes (F-4).
func TestWithdrawn(t *testing.T) {
	b, _, d, a := newDesk(t, map[string]string{"a.txt": "old\n"})
	a.OpenDiff(b.path("a.txt"), "new\n")
	d.proposal("a.txt")
	d.rewrite("edited\n")
	if got, want := a.CloseDiff(b.path("a.txt")), `{"content":"edited\n"}`; got != want {
		t.Errorf("closeDiff says %s, want %s", got, want)
	}
	d.noProposal()
	a.OpenDiff(b.path("a.txt"), "new\n")
	d.proposal("a.txt")
	if got, want := a.CloseDiff(b.path("a.txt")), `{"finalContent":"new\n"}`; got != want {
		t.Errorf("closeDiff of an unedited proposal says %s, want %s", got, want)
	}
	d.noProposal()
	a.Quiet()
}

// TestDirtyFile: unsaved changes of the file are pointed out before a
// proposal is accepted, and are still there afterwards (F-8). What changes
// during that question is not accepted by its answer (F-13).
func TestDirtyFile(t *testing.T) {
	const rest = "two\nthree\n"
	b, _, d, a := newDesk(t, map[string]string{"a.txt": "old\n" + rest})
	d.open("a.txt")
	d.cursor(1, 1, 0)
	d.Type("unsaved ")
	d.Wait(d.tab("a.txt") + ".dirty")
	a.OpenDiff(b.path("a.txt"), "new\n"+rest)
	d.Wait(browser.ID("status-pending"))
	d.Press("F9") // a diff does not take the screen from somebody who types
	d.proposal("a.txt")
	d.WaitText(browser.ID("diff-notice"), "unsaved")
	d.Press("Control+Enter")
	d.Click(browser.ID("choice-back"))
	a.Quiet()
	d.Press("Control+Enter")
	d.Wait(browser.ID("choice-accept"))
	b.write("a.txt", "old\n"+rest+"last\n")
	d.WaitText(browser.ID("diff-new"), "last")
	d.Click(browser.ID("choice-accept"))
	d.WaitText(browser.ID("note"), "look at it again")
	a.Quiet()
	d.Press("Control+Enter")
	d.Click(browser.ID("choice-accept"))
	expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("a.txt"), Content: "new\n" + rest + "last\n"})
	b.write("a.txt", "new\n"+rest+"last\n") // the CLI does
	d.WaitText(browser.ID("conflict-bar"), "changed on disk")
	d.WaitText(browser.ID("editor-content"), "unsaved old")
}

// TestProposalFollowsItsFile: what changes on disk is merged into the proposal on the page, and what does not go together
// stands beside the text until the user has said which of the two stands (F-13).
func TestProposalFollowsItsFile(t *testing.T) {
	const rest = "two\nthree\nfour\nfive\nsix\nseven\neight\n"
	b, _, d, a := newDesk(t, map[string]string{"a.txt": "one\n" + rest + "nine\n"})
	for take, last := range map[string]string{"proposal": "NINE\n", "file": "neuf\n"} {
		b.write("a.txt", "one\n"+rest+"nine\n")
		a.OpenDiff(b.path("a.txt"), "one\n"+rest+"NINE\n")
		d.proposal("a.txt")
		b.write("a.txt", "ONE\n"+rest+"nine\n")
		d.WaitText(browser.ID("diff-new"), "ONE")
		d.WaitText(browser.ID("diff-old"), "ONE")
		b.write("a.txt", "ONE\n"+rest+"neuf\n")
		d.WaitText(browser.ID("diff-notice"), "the file has changed on disk where the proposal changes it")
		d.WaitText(browser.ID("diff-old"), "neuf")
		d.WaitText(browser.ID("diff-new")+" .cm-conflict", "NINE")
		if text := d.Text(browser.ID("diff-new")); strings.Contains(text, "neuf") || strings.Contains(text, "<<<") {
			t.Errorf("the conflict stands in the text: %q", text)
		}
		d.Press("Control+Enter")
		d.WaitText(browser.ID("diff-notice"), "take the file's lines")
		a.Quiet()
		d.Click(browser.ID("take-" + take))
		d.Gone(browser.ID("take-" + take))
		d.WaitText(browser.ID("diff-new"), strings.TrimSpace(last))
		a.Quiet() // that was no acceptance
		d.Click(browser.ID("accept"))
		expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("a.txt"), Content: "ONE\n" + rest + last})
		d.noProposal()
	}
}

// TestTypingMeetsChanges: while the user types without a pause the file changes again and again, and no key is lost or moved (F-13).
func TestTypingMeetsChanges(t *testing.T) {
	const rest = "two\nthree\nfour\nfive\nsix\nseven\neight\n"
	b, _, d, a := newDesk(t, map[string]string{"a.txt": "one\n" + rest + "nine\n"})
	a.OpenDiff(b.path("a.txt"), "one\n"+rest+"NINE\n")
	d.proposal("a.txt")
	d.Click(browser.ID("diff-new"))
	d.Press("Control+End", "ArrowUp", "End")
	sentence := ""
	for i := range 60 {
		word := fmt.Sprintf(" w%d", i)
		sentence += word
		d.Type(word)
		if i%3 == 2 {
			b.write("a.txt", fmt.Sprintf("one %d\n%snine\n", i/3, rest))
		}
	}
	want := "one 19\n" + rest + "NINE" + sentence + "\n"
	d.WaitText(browser.ID("diff-new"), "one 19")
	d.WaitText(browser.ID("diff-old"), "one 19")
	d.Click(browser.ID("accept"))
	expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("a.txt"), Content: want})
	d.noProposal()
}

// TestTabsAgree: two tabs show the same proposal and the same edits; an
// answer in one closes it in both.
func TestTabsAgree(t *testing.T) {
	b, _, d, a := newDesk(t, map[string]string{"a.txt": "old\n"})
	e := b.anotherDesk()
	a.OpenDiff(b.path("a.txt"), "new\n")
	d.proposal("a.txt")
	e.proposal("a.txt")
	d.rewrite("edited in the first tab\n")
	e.WaitText(browser.ID("diff-new"), "edited in the first tab")
	e.rewrite("and then in the second\n")
	d.WaitText(browser.ID("diff-new"), "and then in the second")
	d.Click(browser.ID("accept"))
	expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("a.txt"), Content: "and then in the second\n"})
	e.noProposal()
	d.noProposal()
	a.Quiet()
}

// TestNobodyLooks: without a page a proposal is refused with what to do; a
// page that leaves keeps its proposals open for the next one (F-2, F-9).
func TestNobodyLooks(t *testing.T) {
	b, c, d, a := newDesk(t, map[string]string{"a.txt": "old\n"})
	a.OpenDiff(b.path("a.txt"), "new\n")
	d.proposal("a.txt")
	d.rewrite("edited\n")
	b.journal("edited")
	d.Go("about:blank")
	e := b.anotherDesk()
	e.proposal("a.txt")
	e.WaitText(browser.ID("diff-new"), "edited")
	e.Click(browser.ID("accept"))
	expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("a.txt"), Content: "edited\n"})
	_ = c
}

// TestHistory: a decided proposal can be looked at again, and an accepted one
// undone (F-12).
func TestHistory(t *testing.T) {
	b, _, d, a := newDesk(t, map[string]string{"a.txt": "old\n"})
	a.OpenDiff(b.path("a.txt"), "new\n")
	d.proposal("a.txt")
	d.Click(browser.ID("accept"))
	expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("a.txt"), Content: "new\n"})
	b.write("a.txt", "new\n") // the CLI does
	d.history()
	d.WaitText(browser.ID("history-item"), "a.txt")
	d.Click(browser.ID("history-item"))
	d.Click(browser.ID("history-undo"))
	if d.Has(browser.ID("choice-yes")) {
		d.Click(browser.ID("choice-yes"))
	}
	b.holds("a.txt", "old\n")
}

// TestPolicy: the user's standing answers (F-11), for one file and for all
// that a session asks.
func TestPolicy(t *testing.T) {
	b, _, d, a := newDesk(t, map[string]string{"a.txt": "old\n", "b.txt": "old\n"})
	a.OpenDiff(b.path("a.txt"), "new\n")
	d.proposal("a.txt")
	d.Click(browser.ID("policy"))
	d.Click(browser.ID("policy-accept-session"))
	expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("a.txt"), Content: "new\n"})
	a.OpenDiff(b.path("b.txt"), "new\n")
	expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("b.txt"), Content: "new\n"})
	d.noProposal()
	d.Click(browser.ID("status-policy"))
	d.Click(browser.ID("rule-remove"))
	d.Click(browser.ID("rules-close"))
	a.OpenDiff(b.path("b.txt"), "newer\n")
	d.proposal("b.txt")
	d.Click(browser.ID("reject"))
	expect(t, a, agent.Outcome{Method: rejected, FilePath: b.path("b.txt")})
}

// TestPolicyByPattern: a rule for the paths that fit a pattern decides what
// is proposed for them, and nothing else (F-11).
func TestPolicyByPattern(t *testing.T) {
	b, _, d, a := newDesk(t, map[string]string{"a.txt": "old\n", "docs/b.md": "old\n", "docs/deep/c.md": "old\n"})
	a.OpenDiff(b.path("docs/b.md"), "new\n")
	d.proposal("docs/b.md")
	d.Click(browser.ID("policy"))
	d.Click(browser.ID("policy-accept-pattern"))
	d.Wait(browser.ID("prompt-input"))
	d.Press("Control+a")
	d.Type(b.path("docs/**/*.md"))
	d.Press("Enter")
	expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("docs/b.md"), Content: "new\n"})
	a.OpenDiff(b.path("docs/deep/c.md"), "new\n")
	expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("docs/deep/c.md"), Content: "new\n"})
	a.OpenDiff(b.path("a.txt"), "new\n")
	d.proposal("a.txt")
	d.Click(browser.ID("policy"))
	d.Click(browser.ID("policy-accept-file"))
	expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("a.txt"), Content: "new\n"})
	d.noProposal()
	d.WaitText(browser.ID("status-policy"), "2 rules")
}

// TestPolicyTerminal: proposals that are left to the terminal are refused
// with a word of why, until the rule is taken back (F-11).
func TestPolicyTerminal(t *testing.T) {
	b, _, d, a := newDesk(t, map[string]string{"a.txt": "old\n", "b.txt": "old\n"})
	a.OpenDiff(b.path("a.txt"), "new\n")
	d.proposal("a.txt")
	d.Click(browser.ID("policy"))
	d.Click(browser.ID("policy-terminal-session"))
	d.WaitText(browser.ID("status-policy"), "1 rule")
	if why := a.Refused(b.path("b.txt"), "new\n"); !strings.Contains(why, "terminal") {
		t.Errorf("the CLI is told %q", why)
	}
	d.proposal("a.txt") // it was on show before the rule, and stays decidable
	d.Click(browser.ID("reject"))
	expect(t, a, agent.Outcome{Method: rejected, FilePath: b.path("a.txt")})
	d.noProposal()
	d.Click(browser.ID("status-policy"))
	d.Click(browser.ID("rule-remove"))
	d.Click(browser.ID("rules-close"))
	a.OpenDiff(b.path("b.txt"), "new\n")
	d.proposal("b.txt")
	d.Press("Control+Enter")
	expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("b.txt"), Content: "new\n"})
}
