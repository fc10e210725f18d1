package review

import (
	"fmt"

	"github.com/pollux-companion/pollux/internal/core/text"
)

// A diff keeps a few earlier texts within these bounds, to merge an edit that was
// made on one of them.
const (
	maxEarlier     = 8
	maxEarlierSize = 64 << 10 // bytes of one text
)

// An earlier text of a diff, with its version: one that a view may still show, and whose edit is on its way.
type earlier struct {
	version int
	text    string
}

// Edit records the text as one view has it now, and returns that text's version. When
// others have edited the diff meanwhile, Edit merges both: the view must then be shown the newer
// version. Lines that both changed stay as this edit has them, and the other text is told as Event.Lost.
// When the registry no longer has the text that was edited, it takes this edit whole; the edit then
// conflicts with changes of the file. Edit fails with ErrSettled when the diff is not open, with
// ErrTooBig when a bound forbids the text (nothing is recorded), and with ErrReadOnly when the agent takes no edits.
func (r *Registry) Edit(id string, e Edit) (version int, err error) {
	defer r.lock()()
	d, ok := r.byID[id]
	if !ok {
		return 0, ErrSettled
	}
	return r.edit(d, e)
}

// edit is Edit with mu held. The caller took it with lock.
func (r *Registry) edit(d *Diff, e Edit) (version int, err error) {
	if d.unedited(e.Text) {
		e.Text = d.text
	}
	if err := r.editable(d, e.Text); err != nil {
		return d.version, err
	}
	u := r.unite(d, e)
	switch {
	case u.idle:
		return *e.From, nil
	case e.Text == d.text:
		d.editor = e.By
		return d.version, nil
	}
	// The user's own text is a version, and the merged text the next one. The caller gets the first: the user goes on
	// typing in it until the view is shown the merge, and the next edit then names a version that at still has.
	by := e.By
	r.put(d, e.Text, by)
	version = d.version
	if u.text != e.Text || u.lost != "" && !e.Unsure { // a view that is unsure may have the other's text already
		by = nil // no view has it yet
		r.put(d, u.text, by)
	}
	r.announce(d)
	r.events = append(r.events, Event{Kind: Edited, Diff: d, By: by, Lost: u.lost})
	if u.unknown { // nobody knows which of the file's changes the text has, so all of them are merged again, or conflict
		d.agreed = File{Text: d.proposal.Old, Exists: !d.proposal.IsNew}
	}
	if before := d.conflict; before != nil || u.unknown { // an edit of the conflicting lines may end the conflict
		r.merge(d, d.base)
		if !d.conflict.same(before) {
			r.events = append(r.events, Event{Kind: Rebased, Diff: d})
		}
	}
	return version, nil
}

// A union is an edit merged with what became of the text meanwhile. Two views may edit at the same time, and a view
// may be slow; so most edits are of the newest text, and the others must not undo what came in between.
type union struct {
	text string
	lost string // Event.Lost
	// idle: the edit changed nothing.
	idle bool
	// unknown: the edited text is forgotten, so nobody knows which of the file's changes the edit has.
	unknown bool
}

// unite merges an edit with the newest text. Where both changed the same lines, the edit's lines stand: they are what the
// user has just typed and sees. The replaced lines are not lost, but go to the history by Event.Lost. The caller holds mu.
func (r *Registry) unite(d *Diff, e Edit) union {
	if e.From == nil || e.Text == d.text || !e.Unsure && d.newest(Seen{Text: *e.From, By: e.By}) {
		return union{text: e.Text}
	}
	was, known := d.at(*e.From)
	if e.Was != nil {
		was, known = *e.Was, true
	}
	m := text.Merge(text.ToLF(was), text.ToLF(e.Text), text.ToLF(d.text))
	u := union{text: text.FromLF(e.Text, m.Text), unknown: !known}
	switch {
	case u.text != e.Text && r.editable(d, u.text) != nil: // too big together: the user's stands, the other goes to the history
		return union{text: e.Text, lost: d.text, unknown: true}
	case known && e.Text == was && !e.Unsure: // the view only repeats what it was shown, which must not undo newer edits
		u.idle = true
	case len(m.Conflicts) > 0, e.Unsure && e.Was == nil:
		u.lost = d.text
	case e.Unsure && u.text != e.Text:
		u.lost = e.Text
	}
	return u
}

// put makes content the diff's text. The caller holds mu, and queues the event. It keeps small texts only: eight
// earlier ones of 16 MiB would outweigh the diff, and no bound counts them.
func (r *Registry) put(d *Diff, content string, by any) {
	if len(d.text) <= maxEarlierSize {
		d.earlier = append(d.earlier, earlier{d.version, d.text})
		d.earlier = d.earlier[max(0, len(d.earlier)-maxEarlier):]
	}
	r.total -= d.size()
	d.text, d.editor = content, by
	d.version++
	r.total += d.size()
}

// at returns the text of a version, and whether it is exactly that version. When the
// version is forgotten, it returns the nearest earlier text, at worst the proposal. The
// caller holds registry.mu.
func (d *Diff) at(version int) (was string, known bool) {
	was, known = d.proposal.New, version == 0 && !d.restored
	for _, e := range d.earlier {
		if e.version <= version {
			was, known = e.text, e.version == version
		}
	}
	return was, known
}

// unedited says whether content is the text of a read-only proposal. Line endings do not count: a view may have its own.
// The caller holds registry.mu.
func (d *Diff) unedited(content string) bool {
	return d.proposal.ReadOnly != "" && text.ToLF(content) == text.ToLF(d.text)
}

// editable says why the text of d may not become content. The caller holds mu.
func (r *Registry) editable(d *Diff, content string) error {
	switch {
	case d.proposal.ReadOnly != "" && content != d.text:
		return fmt.Errorf("%w: %s", ErrReadOnly, d.proposal.ReadOnly)
	case int64(len(content)) > r.opt.MaxProposal:
		return fmt.Errorf("%w: %d bytes where %d are allowed", ErrTooBig, len(content), r.opt.MaxProposal)
	case content != d.proposal.New && r.total+r.held.Load()-d.size()+int64(len(d.proposal.Old)+len(d.proposal.New)+len(content)) > r.opt.MaxTotal:
		return fmt.Errorf("%w: all open diffs together would exceed %d bytes", ErrTooBig, r.opt.MaxTotal)
	}
	return nil
}
