package review

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// shutWait is how long Shut waits for calls in progress, of the second that
// the whole companion has (SPEC L-1).
const shutWait = 200 * time.Millisecond

// Accept settles with content, or with the latest text when content is nil.
// seen is what the view has shown: where the file or the text is newer, the
// error is an ErrStale and the diff stays open, with content as an edit of it. The file is looked at now, so
// that a change is found that no watcher has told of. ErrSettled when the diff
// is not open; ErrConflict, ErrEmptied, ErrReadOnly and ErrTooBig leave it open.
func (r *Registry) Accept(id string, seen Seen, content *string) error {
	r.lookAt(id)
	return r.decide(id, func(d *Diff) (Outcome, error) {
		final := d.text
		if content != nil && !d.unedited(*content) {
			final = *content
		}
		switch {
		case final != d.text && d.proposal.ReadOnly != "":
			return Outcome{}, r.editable(d, final)
		case int64(len(final)) > r.opt.MaxProposal:
			return Outcome{}, fmt.Errorf("%w: %d bytes where %d are allowed", ErrTooBig, len(final), r.opt.MaxProposal)
		case seen.Base != d.baseVersion, !d.newest(seen) && (content == nil || final != d.text):
			return Outcome{}, r.stale(d, seen, final)
		case d.conflict != nil:
			if final != d.text {
				_, err := r.edit(d, Edit{Text: final, From: &seen.Text, By: seen.By})
				return Outcome{}, errors.Join(ErrConflict, err)
			}
			return Outcome{}, ErrConflict
		case final == "" && d.proposal.New != "":
			return Outcome{}, ErrEmptied
		}
		return Outcome{Kind: Accepted, Content: final}, nil
	})
}

// stale says why d cannot be accepted with what the view has seen, and keeps
// its text as an edit. The caller holds mu.
func (r *Registry) stale(d *Diff, seen Seen, final string) error {
	err := ErrTextChanged
	if seen.Base != d.baseVersion {
		err = ErrFileChanged
	}
	if final == d.text {
		return err
	}
	_, editErr := r.edit(d, Edit{Text: final, From: &seen.Text, By: seen.By})
	return errors.Join(err, editErr)
}

// Reject settles without content. ErrSettled when the diff is not open.
func (r *Registry) Reject(id string) error {
	return r.decide(id, func(*Diff) (Outcome, error) { return Outcome{Kind: Rejected}, nil })
}

// answeredWithin is how long a decision waits for the agent's answer to leave.
const answeredWithin = time.Second

// awaitAnswer waits while a diff's agent is being answered: it hears of an outcome only after that, and a decision that nobody has
// heard of is not written down either.
func (r *Registry) awaitAnswer(id string) {
	r.mu.Lock()
	d := r.byID[id]
	if d == nil || d.phase != answering {
		r.mu.Unlock()
		return
	}
	if d.answered == nil {
		d.answered = make(chan struct{})
	}
	answered := d.answered
	r.mu.Unlock()
	late := time.NewTimer(answeredWithin)
	defer late.Stop()
	select {
	case <-answered:
	case <-late.C:
	}
}

// decide settles as choose says, which is called with mu held. When it returns the owner has been told, unless its agent takes too
// long to be answered.
func (r *Registry) decide(id string, choose func(*Diff) (Outcome, error)) error {
	r.awaitAnswer(id)
	r.mu.Lock()
	defer r.unlock()
	d, ok := r.byID[id]
	switch {
	case !ok:
		return ErrSettled
	case r.retired:
		return ErrShut
	}
	o, err := choose(d)
	if err != nil {
		return err
	}
	r.settle(d, o)
	return nil
}

// Withdraw is the owner's taking back: it asks the view for the newest text,
// settles Withdrawn (Owner.Settled is not called) and returns the outcome.
// ErrNoDiff when there is none, also when the user was quicker. It takes no
// longer than Options.ContentTimeout; when ctx ends sooner, it withdraws with
// what is known.
func (r *Registry) Withdraw(ctx context.Context, owner Owner, key string) (Outcome, error) {
	r.mu.Lock()
	d, ok := r.byKey[ownerKey{owner, key}]
	shown := ok && d.sight == visible
	r.mu.Unlock()
	if !ok {
		return Outcome{}, ErrNoDiff
	}
	r.lookAt(d.id)
	newest := (*Edit)(nil)
	if shown {
		newest = r.ask(ctx, d)
	}
	r.mu.Lock()
	defer r.unlock()
	if newest != nil && d.outcome == nil {
		_, _ = r.edit(d, *newest)
	}
	if !r.settle(d, Outcome{Kind: Withdrawn, Content: d.text}) {
		return Outcome{}, ErrNoDiff
	}
	return *d.outcome, nil
}

// ask has the view say what the text is now; nil when it does not know, does
// not answer in time, or the diff was settled meanwhile.
func (r *Registry) ask(ctx context.Context, d *Diff) *Edit {
	ctx, cancel := context.WithTimeout(ctx, r.opt.ContentTimeout)
	defer cancel()
	answer := make(chan *Edit, 1)
	go func() {
		var newest Edit
		var ok bool
		guard("View.Content", func() { newest, ok = r.opt.View.Content(ctx, d) })
		if ok {
			answer <- &newest
		} else {
			answer <- nil
		}
	}()
	select {
	case newest := <-answer:
		return newest
	case <-d.end():
	case <-ctx.Done():
	}
	return nil
}

// Leave withdraws every diff of an owner whose session has ended (SPEC F-9),
// and forgets the rules for this owner. The owner first cancels the contexts
// of its calls of Open: then none of them opens a diff afterwards.
func (r *Registry) Leave(owner Owner) {
	label := owner.Label()
	r.mu.Lock()
	defer r.unlock()
	if r.retired {
		return // it goes on elsewhere
	}
	before := len(r.policy)
	r.policy = slices.DeleteFunc(slices.Clone(r.policy), func(rule compiledRule) bool { return rule.Owner != "" && rule.Owner == label })
	if len(r.policy) != before {
		r.events = append(r.events, Event{Kind: RulesChanged})
	}
	maps.DeleteFunc(r.due, func(_ string, e due) bool { return e.owner == owner }) // it writes nothing any more
	r.settleAll(func(d *Diff) (Outcome, bool) {
		return Outcome{Kind: Withdrawn, Content: d.text}, d.owner == owner
	})
}

// settleAll settles those diffs that choose gives an outcome. The caller holds mu, and lets go with unlock.
func (r *Registry) settleAll(choose func(*Diff) (Outcome, bool)) {
	for _, d := range slices.Clone(r.diffs) {
		if o, ok := choose(d); ok {
			r.settle(d, o)
		}
	}
}

// Get finds an open diff.
func (r *Registry) Get(id string) (*Diff, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.byID[id]
	return d, ok
}

// Pending returns the open diffs, oldest first, also the ones that are just being shown.
func (r *Registry) Pending() []*Diff {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.diffs)
}

// SetRule adds a rule, replacing one with the same Owner and Pattern; Ask
// with an Owner or Pattern stays as an exception. Open diffs that the rule fits are
// decided by it, except when their text was edited or their file has changed. (Only AcceptAll decides: a diff
// that has been shown cannot be left to the terminal any more.) An unknown Mode is Ask.
// At most 1,000 rules are kept, the latest ones.
func (r *Registry) SetRule(rule Rule) {
	if rule.Mode == AcceptAll {
		for _, d := range r.Pending() {
			r.lookAt(d.id)
		}
	}
	r.mu.Lock()
	defer r.unlock()
	policy, added := r.policy.set(rule)
	r.policy = policy
	r.events = append(r.events, Event{Kind: RulesChanged})
	for _, d := range slices.Clone(r.diffs) {
		path := d.proposal.Path
		fits := !r.retired && added.fits(d.label, path) > 0 && policy.mode(d.label, path) == AcceptAll && d.text == d.proposal.New && d.baseVersion == 0
		if fits {
			r.settle(d, Outcome{Kind: Accepted, Content: d.text, Policy: true}) // which may rebase the next
		}
	}
}

// Rules returns the policy, in the order in which it was made.
func (r *Registry) Rules() []Rule {
	r.mu.Lock()
	defer r.mu.Unlock()
	rules := make([]Rule, len(r.policy))
	for i, rule := range r.policy {
		rules[i] = rule.Rule
	}
	return rules
}

// Watch calls f for each event, in order for each diff, with no lock held;
// f must not block. After cancel returns f is not called again: it waits for
// a call in progress, so it must be called neither from within f nor with a
// lock held that f takes. Who wants to know all diffs watches first
// and then asks for Pending; one of them may be announced again.
func (r *Registry) Watch(f func(Event)) (cancel func()) { return r.watchers.Add(f) }

// Shut rejects every open diff (SPEC L-1) and makes Open return ErrShut. It
// returns when owners, views and watchers have been told, also of what others
// settled just before, but waits no longer than 200 ms for calls on other
// goroutines (and as long for itself when it is called from within such a call).
// A diff whose agent has had no answer yet is withdrawn: its Open returns ErrShut. So is one whose agent waits.
func (r *Registry) Shut() {
	r.shutAll(false)
	r.awaitCalls()
}

// Retire is Shut for a companion that hands its sessions on: what is open stays open, for the one that takes over to
// restore. Here nobody decides it any more (ErrShut), no view is told to close, and Leave ends nothing. Its owner may still withdraw it.
func (r *Registry) Retire() {
	r.shutAll(true)
	r.awaitCalls()
}

// awaitCalls waits for the calls in progress.
func (r *Registry) awaitCalls() {
	deadline := time.NewTimer(shutWait)
	defer deadline.Stop()
	for {
		r.mu.Lock()
		quiet := r.quiet
		r.mu.Unlock()
		if quiet == nil {
			return
		}
		select {
		case <-quiet:
		case <-deadline.C:
			return
		}
	}
}

// shutAll settles what is open, and lets nothing in any more; with retire, only what nobody could restore.
func (r *Registry) shutAll(retire bool) {
	r.mu.Lock()
	defer r.unlock()
	r.shut, r.retired = true, retire
	r.settleAll(func(d *Diff) (Outcome, bool) {
		if d.phase == opening || d.proposal.Waits {
			return Outcome{Kind: Withdrawn, Content: d.text}, true
		}
		return Outcome{Kind: Rejected}, !retire
	})
}
