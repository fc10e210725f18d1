package review

import (
	"context"
	"time"
)

// Restored is the version of the text of a diff that was just restored. It is not 0: a view may still show version 0
// of the earlier life, which was another text, and its edits must not pass for edits of this one.
const Restored = 1

// Restore enters a diff that an earlier companion had open (SPEC L-3, F-13). The diff keeps its old
// id and the text as the user had edited it. agreed is the file that the text was made for; nil
// means the proposal's own. The agent was answered long ago and waits for the outcome, so
// the diff is open at once, whether a view can show it now or not. It is shown on a goroutine
// of its own. View.Close is called at its end in either case, since a view may find it later.
// Bounds apply. Restore fails with ErrSettled when the id or the owner's key is taken, and with
// ErrShut when the registry is closing.
func (r *Registry) Restore(owner Owner, id, text string, agreed *File, opened time.Time, p Proposal) (*Diff, error) {
	d := r.diff(id, owner, opened, p)
	if agreed != nil {
		d.base, d.agreed = *agreed, *agreed
	}
	d.text, d.phase, d.version, d.restored = text, open, Restored, true
	if err := r.reenter(d); err != nil {
		return nil, err
	}
	r.Look(p.Path) // the file may have changed while no companion ran
	go func() {    // a view that comes later finds the diff among the pending ones, so a failure here is none
		_ = r.show(context.Background(), d)
		defer r.lock()()
		r.seen(d)
	}()
	return d, nil
}

// reenter is register for a diff that the policy has let through before.
func (r *Registry) reenter(d *Diff) error {
	defer r.lock()()
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
