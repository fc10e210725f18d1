package consent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/words"
)

// ErrNobody: no person can be asked. It may wrap the reason.
var ErrNobody = errors.New("nobody can be asked")

// An Asker puts a question to the person who uses this machine, never to a model. It
// returns "" when the person dismissed the question, and ErrNobody when no person can be
// reached. Its methods may be called from several goroutines.
type Asker interface {
	Ask(ctx context.Context, q Question) (Answer, error)
}

// A Question asks whether the tools of an extension may run.
type Question struct {
	Subject
	Verdict     Verdict // why it is asked
	Description string  // the extension's, as its author wrote it
	// Tool is the tool that should run; the zero value for none.
	Tool manifest.Tool
	// Tools are the names of all its tools: a lasting answer covers them all.
	Tools []string
	// DocsOnly says that it has no tools: the question is about reading its documents.
	DocsOnly bool
	// Workspace is the folder that the level "workspace" means now; "" for none.
	Workspace string
	// By says who wants to run it; "" for the user.
	By string
}

// NewQuestion words a question about an extension whose manifest is m.
func NewQuestion(subject Subject, v Verdict, m *manifest.Manifest, tool manifest.Tool, workspace, by string) Question {
	q := Question{Subject: subject, Verdict: v, Description: m.Description, Tool: tool, Workspace: workspace, By: by}
	q.DocsOnly = len(m.Tools) == 0
	for _, t := range m.Tools {
		q.Tools = append(q.Tools, t.Name)
	}
	return q
}

// Title returns the question in one line, safe for a terminal.
func (q Question) Title() string {
	if q.DocsOnly {
		return words.Printable(fmt.Sprintf("May models use the documents of the extension %q?", q.Extension))
	}
	if q.Tool.Name == "" {
		return words.Printable(fmt.Sprintf("May tools of the extension %q run?", q.Extension))
	}
	return words.Printable(fmt.Sprintf("May the tool %q of the extension %q run?", q.Tool.Name, q.Extension))
}

// Lines returns what the user must know for an answer, in plain language, each line safe
// for a terminal.
func (q Question) Lines() []string {
	var lines []string
	add := func(format string, args ...any) {
		lines = append(lines, words.Printable(fmt.Sprintf(format, args...)))
	}
	head := q.Extension + " " + q.Version
	if q.Commit != "" {
		head += ", commit " + q.Commit[:min(12, len(q.Commit))]
	}
	add("%s", head)
	if text := strings.Join(strings.Fields(q.Description), " "); text != "" {
		add("  Its author says: %s", words.Shorten(text, 200))
	}
	add("  From: %s", words.Address(q.Source))
	if q.Tool.Name != "" {
		add("  Tool: %s, which runs %s with %s", q.Tool.Signature(), q.Tool.Executable, q.Tool.Runtime)
	}
	if q.By != "" {
		add("  Asked for by: %s", q.By)
	}
	switch q.Verdict.Status {
	case Changed:
		add("You have allowed it before; its content has changed since.")
	case Wider:
		add("You have allowed it before; it may do more now than you agreed to.")
	}
	for _, s := range q.Verdict.Change.Wider {
		add("  New: %s", s)
	}
	if !q.DocsOnly {
		add("What the sandbox lets its tools do:")
		for _, s := range Sentences(q.Permissions) {
			add("  %s", s)
		}
	}
	if max(q.Permissions.Read, q.Permissions.Write) == permission.Workspace && q.Workspace != "" {
		add("  The workspace is %s now.", q.Workspace)
	}
	if len(q.Tools) > 1 {
		add("To allow always, or never, covers all of its %d tools: %s", len(q.Tools), words.Shorten(strings.Join(q.Tools, ", "), 400))
	}
	if q.Linked() {
		add("It is linked to a folder under development: your answer holds for whatever that folder contains later.")
	}
	return lines
}

// Sentences describes permissions in plain language, one right in each sentence. Access to
// this computer's own programs, or to devices in its network, gets a sentence of its own:
// those often trust everybody who can contact them.
func Sentences(p permission.Permissions) []string {
	var here, near, far []string
	for _, h := range p.Hosts {
		text := strings.NewReplacer(", your own machine or network)", ")", " (your own machine or network)", "").Replace(h.String())
		switch {
		case !h.Local():
			far = append(far, text)
		case loopback(h.Name):
			here = append(here, text)
		default:
			near = append(near, text)
		}
	}
	lines := p.Sentences()[:2]
	switch {
	case len(far) > 0:
		lines = append(lines, "Its tools may contact "+strings.Join(far, ", ")+", and nothing else on the internet.")
	case len(p.Hosts) > 0:
		lines = append(lines, "Its tools may contact nothing on the internet.")
	default:
		lines = append(lines, "Its tools may not use the network.")
	}
	if len(here) > 0 {
		lines = append(lines, "Its tools may contact programs that run on this computer, and may trust whoever does: "+strings.Join(here, ", ")+".")
	}
	if len(near) > 0 {
		lines = append(lines, "Its tools may contact devices of your own network: "+strings.Join(near, ", ")+".")
	}
	return lines
}

// loopback says whether a host is this computer itself.
func loopback(name string) bool {
	addr, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || err == nil && addr.Unmap().IsLoopback()
}

// A Choice is an answer and the words of its button.
type Choice struct {
	Answer Answer
	Label  string
	Key    string // what is typed for it in a terminal; "" for Enter alone
}

// Choices returns the possible answers. Editors number them. Answers that are kept come first in every question, so that a
// number never means always in one question and never in another. The last choice keeps nothing: editors focus
// it, and a key that was meant for something else may press it.
func (q Question) Choices() []Choice {
	always := "Allow always for this content"
	if q.Linked() {
		always = "Allow always for this link"
	}
	choices := []Choice{{Always, always, "a"}, {Never, "Never", "n"}, {Once, "Allow once", "o"}, {"", "Not now", ""}}
	if q.Tool.Name == "" {
		return slices.Delete(choices, 2, 3) // nothing here could be done once
	}
	return choices
}

// AnswerOf returns the answer whose label or key is text; "" when there is none.
func (q Question) AnswerOf(text string) Answer {
	text = strings.TrimSpace(text)
	choices := q.Choices()
	i := slices.IndexFunc(choices, func(c Choice) bool {
		return strings.EqualFold(text, c.Label) || strings.EqualFold(text, c.Key) || strings.EqualFold(text, string(c.Answer))
	})
	if i < 0 {
		return ""
	}
	return choices[i].Answer
}
