package editor

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

func userChecks() []check {
	all := []check{
		{"EP-5/edit", "the user's edit comes as didChangeDiff, and counts in closeDiff", (*play).edits},
		{"EP-5/accept an edit", "the accepted text is the edited one", (*play).acceptsEdit},
		{"EP-5/reject", "the user rejects: one decision, and the diff is closed", (*play).rejects},
		{"EP-5/writes nothing", "accepting does not write the file: the agent does", (*play).acceptWritesNothing},
		{"EP-5/refused", "when a newer proposal is on its way (-32004) the view stays", (*play).keepsView},
	}
	for _, t := range texts() {
		if len(t.text) < 1<<16 {
			all = append(all, check{"EP-5/exact: " + t.name, "accepting gives every byte back", func(p *play) error { return p.acceptsExact(t.text) }})
		}
	}
	return all
}

// proposed opens a diff where the user is in a file, and waits until it has the focus.
func (p *play) proposed(kind, content string, keys ...string) (id, path string, err error) {
	return p.proposedAs(kind, content, nil, keys...)
}

// proposedAs is proposed, with more members of openDiff.
func (p *play) proposedAs(kind, content string, more map[string]any, keys ...string) (id, path string, err error) {
	if err := p.can(keys...); err != nil {
		return "", "", err
	}
	if path, err = p.active(p.fresh(kind), "old\n"); err != nil {
		return "", "", err
	}
	mark := p.link.mark()
	if id, err = p.open(path, "old\n", content, more); err != nil {
		return "", "", err
	}
	if p.can("review") == nil {
		err = p.press("review")
	}
	_, unseen := p.look(mark, "textDocument null, since the diff has the focus", func(c lookedAt) bool { return c.TextDocument == nil })
	return id, path, errors.Join(err, unseen)
}

// decision waits for a diff's outcome, once and no more.
func (p *play) decision(id, want string) (content string, err error) {
	_, err = p.link.wait(0, p.o.Wait, "decision of the diff", func(m message) bool {
		return (m.Method == "pollux/diffResolved" || m.Method == "pollux/resolveDiff") && strings.Contains(string(m.Params), `"`+id+`"`)
	})
	if err == nil {
		err = p.quiet(id, 1)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.diffs[id]
	if err == nil && d.outcome != want {
		err = fmt.Errorf("the outcome is %q, not %q", d.outcome, want)
	}
	return d.given, err
}

// edited types into the proposal at hand, and waits until that is told.
func (p *play) edited(id string) error {
	mark := p.link.mark()
	if err := p.press("edit", "{text}", "edited "); err != nil {
		return err
	}
	_, err := p.link.wait(mark, p.o.Wait, `didChangeDiff whose content begins with "edited "`, func(m message) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return m.Method == "pollux/didChangeDiff" && strings.HasPrefix(p.diffs[id].content, "edited ")
	})
	return err
}

func (p *play) edits() error {
	id, _, err := p.proposed("edit", "proposed\n", "edit")
	if err != nil {
		return err
	}
	if err := p.edited(id); err != nil {
		return err
	}
	return p.closes(id, "edited proposed\n")
}

func (p *play) acceptsEdit() error {
	id, _, err := p.proposed("edited", "first\r\nsecond", "edit", "accept")
	if err != nil {
		return err
	}
	if err := p.edited(id); err != nil {
		return err
	}
	return p.accepts(id, "edited first\r\nsecond")
}

func (p *play) accepts(id, want string) error {
	if err := p.press("accept"); err != nil {
		return err
	}
	got, err := p.decision(id, "accepted")
	if err == nil && got != want {
		err = fmt.Errorf("accepted are %s", differ(want, got))
	}
	return err
}

func (p *play) rejects() error {
	id, path, err := p.proposed("reject", "unwanted\n", "reject")
	if err != nil {
		return err
	}
	if err := p.press("reject"); err != nil {
		return err
	}
	if _, err := p.decision(id, "rejected"); err != nil {
		return err
	}
	if _, err := p.closeDiff(id); err == nil {
		return errors.New("closeDiff gives a text of a diff that the user has rejected")
	}
	return p.holds(path, "old\n")
}

func (p *play) acceptWritesNothing() error {
	id, path, err := p.proposed("accept", "wanted\n", "accept")
	if err != nil {
		return err
	}
	if err := p.accepts(id, "wanted\n"); err != nil {
		return err
	}
	return p.holds(path, "old\n")
}

func (p *play) keepsView() error {
	if p.hi.Version < 2 {
		return skipError("only a plugin of version 2 is told so")
	}
	id, path, err := p.proposed("newer", "proposed\n", "accept")
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.refuse = true
	p.mu.Unlock()
	mark := p.link.mark()
	if err := p.press("accept"); err != nil {
		return err
	}
	if _, err := p.link.wait(mark, p.o.Wait, "decision of "+filepath.Base(path), func(m message) bool { return m.Method == "pollux/resolveDiff" }); err != nil {
		return err
	}
	if err := p.quiet(id, 0); err != nil {
		return err
	}
	return p.closes(id, "proposed\n")
}

func (p *play) acceptsExact(content string) error {
	id, _, err := p.proposed("bytes", content, "accept")
	if err != nil {
		return err
	}
	return p.accepts(id, content)
}
