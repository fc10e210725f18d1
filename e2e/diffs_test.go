package e2e

import (
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/browser"
	"github.com/pollux-companion/pollux/e2e/model"
)

// TestDecisions leads one CLI through every way a proposal can end (F-3, F-4,
// F-6, F-8, F-10), one after the other as a user's day does.
func TestDecisions(t *testing.T) {
	needCLI(t)
	b := newBench(t, map[string]string{"a.txt": "one\ntwo\nthree\n", "b.txt": "keep\n"})
	d := b.desk(b.serve())
	d.open("b.txt")
	s := b.gemini("")
	connected(s)

	propose := func(prompt string, turn model.Turn, file string) (from int) {
		t.Helper()
		from = len(s.Model.Requests())
		s.Ask(prompt, turn)
		d.proposal(file)
		s.Question()
		return from
	}
	b.step("accept", func() {
		from := propose("change the second line", model.WriteFile("a.txt", "one\n2\nthree\n"), "a.txt")
		if owner := d.Text(browser.ID("diff-owner")); !strings.Contains(owner, "Gemini CLI #1") {
			t.Errorf("the title does not say who asks: %q", owner)
		}
		d.Click(browser.ID("accept"))
		b.holds("a.txt", "one\n2\nthree\n")
		if r := result(t, s, from); !strings.Contains(r.Response.Output, "Successfully overwrote file: "+b.path("a.txt")) {
			t.Errorf("the model is told %+v", r)
		}
		d.noProposal()
	})
	b.step("edit and accept", func() {
		from := propose("change it again", model.Replace("a.txt", "three", "3"), "a.txt")
		d.rewrite("one\n2\ndrei 🎈\n")
		d.Press("Control+Enter")
		b.holds("a.txt", "one\n2\ndrei 🎈\n")
		if r := result(t, s, from); !strings.Contains(r.Response.Output, "drei 🎈") {
			t.Errorf("the model does not hear of the edit: %+v", r)
		}
	})
	b.step("reject", func() {
		propose("now something unwanted", model.WriteFile("a.txt", "bad\n"), "a.txt")
		d.Click(browser.ID("reject"))
		s.Wait("Request cancelled", second(60))
		d.noProposal()
		if got := b.read("a.txt"); got != "one\n2\ndrei 🎈\n" {
			t.Errorf("a rejected change was written: %q", got)
		}
		if r := s.Ask("what happened"); r.Context() == nil || r.Context().Changes != nil {
			t.Errorf("after a refusal the whole context is due, sent was %+v", r.Context())
		}
	})
	b.step("accept in the terminal after edits in the page", func() {
		from := propose("write a new file", model.WriteFile("sub/new.txt", "proposed\n"), "new.txt")
		d.rewrite("edited in the page\n")
		b.journal("edited in the page")
		s.Keys("Enter") // "Allow once" is chosen
		b.holds("sub/new.txt", "edited in the page\n")
		if r := result(t, s, from); !strings.Contains(r.Response.Output, "edited in the page") {
			t.Errorf("the model is told %+v", r)
		}
		d.noProposal()
	})
	b.step("answered in the terminal", func() {
		from := propose("one more file", model.WriteFile("plain.txt", "as proposed\n"), "plain.txt")
		s.Keys("Enter")
		b.holds("plain.txt", "as proposed\n")
		if r := result(t, s, from); strings.Contains(r.Response.Output, "User modified") {
			t.Errorf("the model is told of an edit that nobody made: %+v", r)
		}
		d.noProposal()
	})
	b.step("reject in the terminal", func() {
		propose("and something else unwanted", model.WriteFile("b.txt", "gone\n"), "b.txt")
		s.Keys("Escape")
		s.Until("the refusal", second(60), func(screen string) bool {
			return strings.Count(s.All(), "Request cancelled") >= 2
		})
		d.noProposal()
		if got := b.read("b.txt"); got != "keep\n" {
			t.Errorf("a rejected change was written: %q", got)
		}
	})
	b.step("two proposals", func() {
		s.Ask("change two files", model.Turn{Calls: append(
			model.WriteFile("b.txt", "first\n").Calls, model.WriteFile("a.txt", "second\n").Calls...)})
		d.proposal("b.txt")
		d.Click(browser.ID("accept"))
		d.proposal("a.txt")
		d.Click(browser.ID("accept"))
		b.holds("b.txt", "first\n")
		b.holds("a.txt", "second\n")
	})
}

// TestTexts: line ends, paths and sizes that other companions get wrong (F-5, F-6, T-4).
func TestTexts(t *testing.T) {
	needCLI(t)
	const odd = "mit Leerzeichen/Größe 🎈.txt"
	b := newBenchAt(t, "Projekt mit Umlaut ä", map[string]string{
		"dos.txt": "eins\r\nzwei\r\ndrei\r\n", odd: "alt\n", "big.txt": big('a'), "none.txt": "no newline",
	})
	d := b.desk(b.serve())
	s := b.gemini("")
	connected(s)

	b.step("a file with CRLF", func() {
		s.Ask("change a file of DOS", model.Replace("dos.txt", "zwei", "2"))
		d.proposal("dos.txt")
		if n := strings.TrimSpace(d.Text(browser.ID("hunk-summary"))); !strings.Contains(n, "1") || strings.Contains(n, "3") {
			t.Errorf("one line changes, the page counts %q", n)
		}
		d.Click(browser.ID("accept"))
		b.holds("dos.txt", "eins\r\n2\r\ndrei\r\n")
	})
	b.step("blanks and Unicode in the path", func() {
		s.Ask("change the odd file", model.WriteFile(odd, "neu — 中文\n"))
		d.proposal(odd)
		d.Click(browser.ID("accept"))
		b.holds(odd, "neu — 中文\n")
	})
	b.step("no final newline", func() {
		s.Ask("change the file without an end", model.WriteFile("none.txt", "still no newline"))
		d.proposal("none.txt")
		d.Click(browser.ID("accept"))
		b.holds("none.txt", "still no newline")
	})
	b.step("an emptied proposal cannot be accepted", func() {
		s.Ask("empty it", model.WriteFile("none.txt", "something\n"))
		d.proposal("none.txt")
		d.rewrite("x")
		d.Press("Backspace")
		d.WaitText(browser.ID("diff-notice"), "empt")
		d.Press("Control+Enter")
		if !d.Has(browser.ID("diff-new")) {
			t.Error("the emptied proposal is gone")
		}
		d.Click(browser.ID("reject"))
		s.Wait("Request cancelled", second(60))
		if got := b.read("none.txt"); got != "still no newline" {
			t.Errorf("the file holds %q", got)
		}
	})
	// Last: the CLI counts what it has written and refuses to go on after so much.
	b.step("5 MB", func() {
		s.Ask("change the big file", model.WriteFile("big.txt", big('b')))
		d.proposal("big.txt")
		d.Click(browser.ID("accept"))
		b.holds("big.txt", big('b'))
	})
}

// big is a text of 5 MB in short lines, one of which depends on c.
func big(c rune) string {
	return strings.Repeat("a line of the big file\n", 5<<20/23/2) + strings.Repeat(string(c), 20) + "\n" +
		strings.Repeat("a line of the big file\n", 5<<20/23/2)
}

// TestTwoCLIs: each CLI gets its own diffs and its own answers (T-3, F-3, F-7).
func TestTwoCLIs(t *testing.T) {
	needCLI(t)
	b := newBench(t, map[string]string{"same.txt": "old\n"})
	d := b.desk(b.serve())
	first, second2 := b.gemini(""), b.gemini("")
	connected(first)
	connected(second2)
	d.WaitText(browser.ID("status-sessions"), "2 CLIs")

	n, m := len(first.Model.Requests()), len(second2.Model.Requests())
	first.Ask("the first one writes", model.WriteFile("same.txt", "by the first\n"))
	first.Question()
	d.proposal("same.txt")
	second2.Ask("the second one writes", model.WriteFile("same.txt", "by the second\n"))
	second2.Question()
	d.WaitText(browser.ID("queue-count"), "2")

	// The second CLI answers in its terminal; the first one's proposal stays.
	second2.Keys("Enter")
	b.holds("same.txt", "by the second\n")
	result(t, second2, m)
	d.WaitText(browser.ID("queue-count"), "1")
	if text := d.Text(browser.ID("diff-new")); !strings.Contains(text, "by the first") {
		t.Errorf("the page shows %q", text)
	}
	// Both have changed the same line: the first one's proposal stands against the file now (F-13).
	d.Click(browser.ID("take-proposal"))
	d.Click(browser.ID("accept"))
	result(t, first, n)
	b.holds("same.txt", "by the first\n")
	d.noProposal()
}
