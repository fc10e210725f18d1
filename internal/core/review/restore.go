package review

import (
	"context"
	"time"
)

// Restored is the version of the text of a diff that is just restored.
const Restored = 1

// Restore enters a diff that a companion before this one had open, under its
// old id, with the text as the user had edited it, and the file that it was made for: nil for that of
// the proposal (SPEC L-3, F-13). Its agent was
// answered then and waits for the outcome, so the diff is open at once and stays so whether a view
// can show it now or not: it is shown aside, and View.Close is called for it
// at its end in either case, as a view may have come upon it later. Bounds apply; ErrSettled
// when the id or the owner's key is taken, or ErrShut.
func (r *Registry) Restore(owner Owner, id, text string, agreed *File, opened time.Time, p Proposal) (*Diff, error) {
	d := r.diff(id, owner, opened, p)
	if agreed != nil {
		d.base, d.agreed = *agreed, *agreed
	}
	d.text, d.phase, d.version, d.restored = text, open, Restored, true
	if err := r.reenter(d); err != nil {
		return nil, err
	}
	r.Look(p.Path) // the file may have changed while nobody looked
	go func() {
		_ = r.show(context.Background(), d)
		r.mu.Lock()
		defer r.unlock()
		r.seen(d)
	}()
	return d, nil
}

// reenter is register for a diff that the policy has let through before.
func (r *Registry) reenter(d *Diff) error {
	r.mu.Lock()
	defer r.unlock()
	key := ownerKey{d.owner, d.proposal.Key}
	if r.byID[d.id] != nil || r.byKey[key] != nil {
		return ErrSettled
	}
	if err := r.admit(context.Background(), d, Ask); err != nil {
		return err
	}
	r.enter(d, key)
	r.announce(d)
	return nil
}
