package review

import (
	"fmt"
	"slices"

	"github.com/pollux-companion/pollux/internal/core/text"
)

// Bounds on the texts of before that a diff keeps, so that an edit that was
// made on one of them can be merged.
const (
	maxEarlier     = 8
	maxEarlierSize = 64 << 10 // bytes of one
)

// An earlier text of a diff.
type earlier struct {
	version int
	text    string
}

// Edit records the text as the user has it now in one view, and returns the
// version of just that: newer is what the view has to be shown. Where others have edited meanwhile, both edits are merged; where
// that cannot be, this one stands and the other is told as Event.Lost.
// ErrSettled when the diff is not open, ErrTooBig when a bound forbids the
// text, which is then not recorded.
func (r *Registry) Edit(id string, e Edit) (version int, err error) {
	r.mu.Lock()
	defer r.unlock()
	d, ok := r.byID[id]
	if !ok {
		return 0, ErrSettled
	}
	return r.edit(d, e)
}

// edit is Edit with mu held; the caller lets go with unlock.
func (r *Registry) edit(d *Diff, e Edit) (version int, err error) {
	if err := r.editable(d, e.Text); err != nil {
		return d.version, err
	}
	content, lost, merged := e.Text, "", e.Text
	if e.From != nil && (e.Unsure || !d.newest(Seen{Text: *e.From, By: e.By})) && content != d.text {
		was := d.at(*e.From)
		if e.Was != nil {
			was = *e.Was
		}
		m := text.Merge(text.ToLF(was), text.ToLF(content), text.ToLF(d.text))
		switch {
		case content == was && !e.Unsure:
			return *e.From, nil // nothing was edited
		case len(m.Conflicts) > 0:
			lost = d.text
		default:
			merged = text.FromLF(content, m.Text)
		}
		switch {
		case e.Unsure && e.Was == nil:
			lost = d.text
		case e.Unsure && lost == "" && merged != content:
			lost = content
		}
	}
	if content == d.text {
		d.editor = e.By
		return d.version, nil
	}
	by := e.By
	r.put(d, content, by)
	version = d.version
	switch {
	case merged != content && r.editable(d, merged) == nil:
		by = nil // no view has it yet
		r.put(d, merged, by)
	case lost != "" && !e.Unsure: // the view itself may have taken the other's meanwhile
		by = nil
		r.put(d, content, by)
	}
	r.announce(d)
	r.events = append(r.events, Event{Kind: Edited, Diff: d, By: by, Lost: lost})
	if before := d.conflict; before != nil {
		r.merge(d, d.base)
		if d.conflict == nil || !slices.Equal(d.conflict.Places, before.Places) {
			r.events = append(r.events, Event{Kind: Rebased, Diff: d})
		}
	}
	return version, nil
}

// put makes content the diff's text. The caller holds mu, and says it.
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

// at is the text of a version, or of one before that, which is at worst the
// proposal. The caller holds registry.mu.
func (d *Diff) at(version int) string {
	was := d.proposal.New
	for _, e := range d.earlier {
		if e.version <= version {
			was = e.text
		}
	}
	return was
}

// editable says why the text of d may not become content. The caller holds mu.
func (r *Registry) editable(d *Diff, content string) error {
	switch {
	case int64(len(content)) > r.opt.MaxProposal:
		return fmt.Errorf("%w: %d bytes where %d are allowed", ErrTooBig, len(content), r.opt.MaxProposal)
	case content != d.proposal.New && r.total+r.held.Load()-d.size()+int64(len(d.proposal.Old)+len(d.proposal.New)+len(content)) > r.opt.MaxTotal:
		return fmt.Errorf("%w: all open diffs together would exceed %d bytes", ErrTooBig, r.opt.MaxTotal)
	}
	return nil
}
