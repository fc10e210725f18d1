package review

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// shutWait is how long Shut waits for calls in progress. The whole companion has
// one second to stop (SPEC L-1).
const shutWait = 200 * time.Millisecond

// Accept settles the diff with content, or with the latest text when content is nil.
// seen names the versions that the view has shown. When the file or the text is
// newer, Accept returns an ErrStale, the diff stays open, and content is kept as an edit.
// Accept reads the file itself, to find a change that no watcher has reported yet.
// It fails with ErrSettled when the diff is not open. ErrConflict, ErrEmptied,
// ErrReadOnly and ErrTooBig leave the diff open.
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
		// An older text is no harm where the view brings exactly the newest one: then its user has seen that. The file
		// beside it has no such excuse: a view that shows an older file shows the wrong change.
		case seen.Base != d.baseVersion, !d.newest(seen) && (content == nil || final != d.text):
			return Outcome{}, r.stale(d, seen, final)
		case d.conflict != nil:
			if final != d.text { // the refusal must not lose what the user wrote
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

// stale says why d cannot be accepted with what the view has seen, and keeps the
// view's text as an edit. So the refusal costs the user nothing: their text is merged
// with the newer one, and the view is told the result, to look at it once more. The caller holds mu.
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

// Reject settles the diff without content. It fails with ErrSettled when the diff is not open.
func (r *Registry) Reject(id string) error {
	return r.decide(id, func(*Diff) (Outcome, error) { return Outcome{Kind: Rejected}, nil })
}

// answeredWithin is how long a decision waits for the answer to the agent's request to leave.
const answeredWithin = 5 * time.Second

// decide settles the diff with the outcome that choose returns; choose is called with mu held. The agent hears of an
// outcome only after its answer, so decide waits while Open is answering it: when decide returns, the owner has been told,
// and has written it down, unless answering the agent took longer than answeredWithin. Otherwise a crash would lose a
// decision that the user had seen succeed.
func (r *Registry) decide(id string, choose func(*Diff) (Outcome, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), answeredWithin)
	defer cancel()
	await := func(c <-chan struct{}) {
		select {
		case <-c:
		case <-ctx.Done():
		}
	}
	if answered := r.answering(id); answered != nil {
		await(answered)
	}
	told, err := r.decideNow(id, choose)
	if told != nil {
		await(told)
	}
	return err
}

// answering returns a channel that is closed once d's agent has its answer; nil when that is not just on its way.
func (r *Registry) answering(id string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.byID[id]
	if d == nil || d.phase != answering {
		return nil
	}
	if d.answered == nil {
		d.answered = make(chan struct{})
	}
	return d.answered
}

// decideNow is decide without its waits. For a diff that is still being shown it returns a channel that is closed once the
// owner has been told: Open ends that wait for the view, answers the agent, and tells the owner.
func (r *Registry) decideNow(id string, choose func(*Diff) (Outcome, error)) (told <-chan struct{}, _ error) {
	defer r.lock()()
	d, ok := r.byID[id]
	switch {
	case !ok:
		return nil, ErrSettled
	case r.retired:
		return nil, ErrShut
	}
	o, err := choose(d)
	if err != nil {
		return nil, err
	}
	if d.phase == opening || d.phase == answering {
		d.told = make(chan struct{})
		told = d.told
	}
	r.settle(d, o)
	return told, nil
}

// Withdraw takes a diff back for its owner. It asks the view for the newest text,
// settles the diff as Withdrawn (Owner.Settled is not called), and returns the outcome.
// It fails with ErrNoDiff when the owner has no diff of that key, also when the user
// decided first. It takes Options.ContentTimeout at most. When ctx ends sooner, it
// withdraws with the latest text that the registry knows.
func (r *Registry) Withdraw(ctx context.Context, owner Owner, key string) (Outcome, error) {
	r.mu.Lock()
	d, ok := r.byKey[ownerKey{owner, key}]
	shown := ok && d.sight == visible
	r.mu.Unlock()
	if !ok {
		return Outcome{}, ErrNoDiff
	}
	r.lookAt(d.id) // the agent writes the answer over the file, so the answer must have what the file has now
	newest := (*Edit)(nil)
	if shown {
		newest = r.ask(ctx, d) // with no lock held: the user may decide meanwhile, and settle has the last word
	}
	defer r.lock()()
	if newest != nil && d.outcome == nil {
		_, _ = r.edit(d, *newest)
	}
	if !r.settle(d, Outcome{Kind: Withdrawn, Content: d.text}) {
		return Outcome{}, ErrNoDiff
	}
	return *d.outcome, nil
}

// ask has the view say what the text is now. It returns nil when the view does not
// know, does not answer in time, or the diff is settled meanwhile.
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

// Leave withdraws every diff of an owner whose session has ended (SPEC F-9), and
// forgets the rules for this owner. The owner must cancel the contexts of its
// calls of Open first: then no diff of the owner opens after Leave.
func (r *Registry) Leave(owner Owner) {
	label := owner.Label()
	defer r.lock()()
	if r.retired {
		return // the sessions go on in the companion that took over
	}
	before := len(r.policy)
	r.policy = slices.DeleteFunc(slices.Clone(r.policy), func(rule compiledRule) bool { return rule.Owner != "" && rule.Owner == label })
	if len(r.policy) != before {
		r.events = append(r.events, Event{Kind: RulesChanged})
	}
	maps.DeleteFunc(r.due, func(_ string, e due) bool { return e.owner == owner }) // an agent that has left writes nothing any more
	r.settleAll(func(d *Diff) (Outcome, bool) {
		return Outcome{Kind: Withdrawn, Content: d.text}, d.owner == owner
	})
}

// settleAll settles every diff for which choose returns an outcome and true. It goes
// through a copy of the list, because settle takes diffs off it. The
// caller holds mu, taken with lock.
func (r *Registry) settleAll(choose func(*Diff) (Outcome, bool)) {
	for _, d := range slices.Clone(r.diffs) {
		if o, ok := choose(d); ok {
			r.settle(d, o)
		}
	}
}

// Get finds an open diff by its ID.
func (r *Registry) Get(id string) (*Diff, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.byID[id]
	return d, ok
}

// Pending returns the open diffs, oldest first. Diffs that are still being shown are among them.
func (r *Registry) Pending() []*Diff {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.diffs)
}

// SetRule adds a rule. It replaces a rule with the same Owner and Pattern. A rule
// with mode Ask and an Owner or Pattern is kept: it is an exception to wider rules.
// An AcceptAll rule also accepts the open diffs that it fits, unless their text was
// edited or their file has changed. Terminal changes no open diff: a diff that was
// shown cannot go back to the agent's terminal. An unknown Mode counts as Ask. At
// most 1,000 rules are kept, the latest ones.
func (r *Registry) SetRule(rule Rule) {
	if rule.Mode == AcceptAll { // no rule accepts over a change of the file that nobody has shown (SPEC F-13)
		for _, d := range r.Pending() {
			r.lookAt(d.id)
		}
	}
	defer r.lock()()
	policy, added := r.policy.set(rule)
	r.policy = policy
	r.events = append(r.events, Event{Kind: RulesChanged})
	for _, d := range slices.Clone(r.diffs) {
		path := d.proposal.Path
		fits := !r.retired && added.fits(d.label, path) > 0 && policy.mode(d.label, path) == AcceptAll && d.text == d.proposal.New && d.baseVersion == 0
		if fits {
			r.settle(d, Outcome{Kind: Accepted, Content: d.text, Policy: true}) // may rebase the next diff of the same file
		}
	}
}

// DropRules has every proposal asked about again.
func (r *Registry) DropRules() {
	defer r.lock()()
	r.policy = nil
	r.events = append(r.events, Event{Kind: RulesChanged})
}

// Rules returns the user's policy, oldest rule first.
func (r *Registry) Rules() []Rule {
	r.mu.Lock()
	defer r.mu.Unlock()
	rules := make([]Rule, len(r.policy))
	for i, rule := range r.policy {
		rules[i] = rule.Rule
	}
	return rules
}

// Watch calls f for each event, in order for each diff, with no lock held; f must
// not block. After cancel returns, f is not called again. Cancel waits for a call in
// progress, so call it neither from within f nor while you hold a lock that f takes.
// To miss no diff, call Watch before Pending; a diff may then be announced twice.
func (r *Registry) Watch(f func(Event)) (cancel func()) { return r.watchers.Add(f) }

// Shut rejects every open diff (SPEC L-1) and makes Open return ErrShut. A diff
// whose agent has had no answer yet is withdrawn instead, and its Open returns ErrShut;
// so is a diff whose agent waits (Proposal.Waits). Shut returns when owners, views and
// watchers have been told, also of diffs that were settled just before. It waits at
// most 200 ms for calls on other goroutines, and as long for itself when it is called
// from within such a call.
func (r *Registry) Shut() {
	r.shutAll(false)
	r.awaitCalls()
}

// Retire is Shut for a companion that hands its sessions on. Open diffs stay open, for the next companion to
// restore. In this registry nobody can decide them any more (ErrShut), no view is told to close them, and Leave ends none.
// Only their owner may still withdraw them.
func (r *Registry) Retire() {
	r.shutAll(true)
	r.awaitCalls()
}

// awaitCalls waits for the calls in progress, at most shutWait. A call may begin others, so one quiet moment is
// enough only because shutAll admits nothing more, and each owed call was counted when it was queued.
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

// shutAll settles the open diffs and admits no more. With retire it settles only diffs that no companion could restore.
func (r *Registry) shutAll(retire bool) {
	defer r.lock()()
	r.shut, r.retired = true, retire
	r.settleAll(func(d *Diff) (Outcome, bool) {
		if d.phase == opening || d.proposal.Waits { // such an agent asks in its terminal; a rejection would end its turn
			return Outcome{Kind: Withdrawn, Content: d.text}, true
		}
		return Outcome{Kind: Rejected}, !retire
	})
}
