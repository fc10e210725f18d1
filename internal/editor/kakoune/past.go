package kakoune

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// A past is a proposal that was decided.
type past struct {
	ID       string    `json:"id"`
	Path     string    `json:"path"`
	Owner    string    `json:"owner"`
	At       time.Time `json:"at"`
	Outcome  string    `json:"outcome"`
	Edited   bool      `json:"edited"`
	Policy   bool      `json:"policy"`
	Undoable bool      `json:"undoable"`
	Undone   bool      `json:"undone"`
}

// line says it in one.
func (p past) line() string {
	what := p.Outcome
	for _, is := range []struct {
		so   bool
		word string
	}{{p.Edited, "edited"}, {p.Policy, "by a rule"}, {p.Undone, "undone"}} {
		if is.so {
			what += ", " + is.word
		}
	}
	return fmt.Sprintf("%s  %s  %s  %s", p.At.Local().Format("2006-01-02 15:04"), p.Path, what, p.Owner)
}

// execute runs a command of pollux's.
func (b *bridge) execute(ctx context.Context, name string, argument obj, out any) error {
	return b.call(ctx, "workspace/executeCommand", obj{"command": name, "arguments": []obj{argument}}, out)
}

// list asks for the past proposals, newest first. The numbers of a list on the screen stay those of that list.
func (b *bridge) list(ctx context.Context) ([]past, error) {
	var out struct {
		Entries []past `json:"entries"`
	}
	err := b.execute(ctx, "pollux.history", obj{}, &out)
	return out.Entries, err
}

// numbered is the entry of the list that was shown last, by the number that the user gives, from 1.
func (b *bridge) numbered(e Event) (past, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := number(e.Args)
	if n < 1 || n > len(b.past) {
		return past{}, errors.New("there is no such entry; :pollux-history lists them")
	}
	return b.past[n-1], nil
}

// history lists past proposals, or shows the one of a number.
func (b *bridge) history(ctx context.Context, e Event) string {
	if len(e.Args) > 0 {
		return b.showPast(ctx, e)
	}
	all, err := b.list(ctx)
	if err == nil && len(all) == 0 {
		err = errors.New("nothing was proposed here yet")
	}
	lines := ""
	for _, p := range all {
		lines += p.line() + "\n"
	}
	if err == nil {
		err = safefile.Write(filepath.Join(b.o.Dir, "history"), []byte(lines), nil)
	}
	if err != nil {
		return fail("%v", err)
	}
	b.mu.Lock()
	b.past = all
	b.mu.Unlock()
	return "pollux-list\n"
}

func (b *bridge) showPast(ctx context.Context, e Event) string {
	p, err := b.numbered(e)
	var out struct {
		Old   string `json:"oldText"`
		Final string `json:"finalText"`
	}
	if err == nil {
		err = b.execute(ctx, "pollux.history", obj{"id": p.ID}, &out)
	}
	if err == nil {
		err = errors.Join(safefile.Write(filepath.Join(b.o.Dir, "past.old"), []byte(whole(out.Old)), nil),
			safefile.Write(filepath.Join(b.o.Dir, "past.new"), []byte(whole(out.Final)), nil))
	}
	if err != nil {
		return fail("%v", err)
	}
	return command("pollux-past", p.Outcome)
}

// undo takes a change back: that of a number, or the newest one that can be.
func (b *bridge) undo(ctx context.Context, e Event) string {
	p, err := b.numbered(e)
	if len(e.Args) == 0 {
		var all []past
		all, err = b.list(ctx)
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].Undoable && !all[i].Undone {
				p = all[i]
			}
		}
		if err == nil && p.ID == "" {
			err = errors.New("there is nothing to undo")
		}
	}
	if err == nil {
		err = b.execute(ctx, "pollux.undo", obj{"id": p.ID}, nil)
	}
	if err != nil {
		return fail("%v", err)
	}
	return "try %{ " + command("evaluate-commands -buffer "+quote(p.Path), "pollux-reload") + "}\n" + say("%s has its earlier text again", filepath.Base(p.Path))
}

// rules shows what decides without the user.
func (b *bridge) rules(ctx context.Context, _ Event) string {
	var out struct {
		Rules []struct {
			Mode    string `json:"mode"`
			Owner   string `json:"owner"`
			Pattern string `json:"pattern"`
		} `json:"rules"`
	}
	if err := b.execute(ctx, "pollux.status", obj{}, &out); err != nil {
		return fail("%v", err)
	}
	lines := ""
	for _, r := range out.Rules {
		of := r.Owner + r.Pattern
		if of == "" {
			of = "everything"
		}
		lines = fmt.Sprintf("%-8s  %s\n", r.Mode, of) + lines
	}
	if lines == "" {
		return say("there is no rule: you are asked about everything")
	}
	return command("info -title", "rules, the newest first", lines)
}

// policy makes a rule: what is done, and for which session, file or pattern.
func (b *bridge) policy(ctx context.Context, e Event) string {
	if len(e.Args) == 0 {
		return fail("which rule? :pollux-policy ask, accept or terminal, and a path or a pattern where it is not for everything")
	}
	argument, of := obj{"policy": e.Args[0]}, "everything"
	if of2 := strings.Join(e.Args[1:], " "); of2 != "" {
		of = of2
		if !filepath.IsAbs(of) {
			of = filepath.Join(e.Dir, of)
		}
		argument["scope"], argument["pattern"] = "pattern", of
	}
	if err := b.execute(ctx, "pollux.setPolicy", argument, nil); err != nil {
		return fail("%v", err)
	}
	return say("%s: %s", e.Args[0], of)
}

// acceptAll accepts a proposal, and makes a rule that accepts what follows of its session, or of its file.
func (b *bridge) acceptAll(ctx context.Context, e Event) string {
	p := b.proposalOf(e)
	if p == nil {
		return fail("this proposal waits no more")
	}
	scope := "session"
	if e.Args[len(e.Args)-1] == "file" {
		scope = "file"
	}
	b.report(p) // the rule decides only what nobody edited
	if err := b.execute(ctx, "pollux.setPolicy", obj{"policy": "accept", "scope": scope, "diffId": p.ID}, nil); err != nil {
		return fail("%v", err)
	}
	return b.accept(ctx, e)
}
