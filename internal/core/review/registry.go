package review

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pollux-companion/pollux/internal/core/notify"
)

// A Registry holds the open diffs of one companion. Its methods may be called
// from any goroutine. Exactly one call settles a diff; the losers of a race get
// ErrSettled.
// The way of a diff: register enters it, show waits for the view, answer marks that its agent is being answered,
// deliver answers, and Open makes it open. It may be settled anywhere on this way. Its phase then says whether the
// agent can hear of the outcome already, its sight whether a view must close it, and owe makes the calls that are due.
// Locking: mu guards everything, and nothing foreign is called while it is held.
// A method that changes something takes mu with lock, and queues events
// and owed calls. Its end releases mu, and makes those calls on the same goroutine.
// Goroutines: one for each call of View.Show and View.Content, so that a view that
// hangs delays nobody past the deadline. It ends when the call does. Owners and
// View.Close are called on the goroutine that caused the call. Watchers are called
// by whichever goroutine is telling them already, so that they hear everything in order.
type Registry struct {
	opt      Options
	watchers notify.List[Event]
	held     atomic.Int64 // see Hold

	mu      sync.Mutex // guards all below and what Diff says
	diffs   []*Diff    // not settled, oldest first
	byID    map[string]*Diff
	byKey   map[ownerKey]*Diff
	owned   map[Owner]int // how many open diffs each owner has; no entry means none
	policy  policy
	total   int64          // bytes of all diffs' texts
	due     map[string]due // texts that an agent is about to write, by path
	looks   uint64         // counts the calls of Look, to order their results
	shut    bool
	retired bool     // the open diffs belong to the companion that took over
	events  []Event  // to be told to watchers
	telling bool     // a goroutine is telling the watchers
	owed    []func() // calls to owners and views; see lock
	// calls counts the calls that Shut waits for: calls of deliver, owed calls, and the
	// telling of watchers. quiet is closed when it falls to zero, and nil while it is zero.
	calls int
	quiet chan struct{}
}

type ownerKey struct {
	owner Owner
	key   string
}

// errViewFailed is the error of a view that panicked.
var errViewFailed = fmt.Errorf("%w: it failed; its log says why", ErrNoView)

// New returns an empty registry.
func New(o Options) *Registry {
	return &Registry{opt: o.withDefaults(), byID: make(map[string]*Diff), byKey: make(map[ownerKey]*Diff), owned: make(map[Owner]int), due: make(map[string]due)}
}

// Open shows a proposal and returns when its view is open. A second proposal of the
// same owner and key replaces the first: the first ends Withdrawn, without a call of
// Owner.Settled, whatever becomes of the second. A policy may decide at once: AcceptAll
// settles after deliver and shows nothing; Terminal makes Open return ErrDeclined.
// Open calls deliver just before it returns nil, with no lock held, and Owner.Settled
// only after deliver has returned. The agent's request is answered in deliver, so the
// answer always precedes the outcome. ctx ends the opening, not the diff: once deliver was
// called, the diff outlives ctx. When the diff is withdrawn before that, Open returns ErrSettled.
func (r *Registry) Open(ctx context.Context, owner Owner, p Proposal, deliver func(*Diff)) (*Diff, error) {
	d := r.diff(rand.Text(), owner, time.Now(), p)
	mode, err := r.register(ctx, d)
	if err != nil {
		return nil, err
	}
	if mode == AcceptAll && r.rebased(d) {
		mode = Ask // no rule decides over a change that the user has not seen
	}
	if mode == Ask {
		// The view comes before the answer: an agent that hears "open" will wait, and somebody must see the question.
		// When the user has decided already, abandon loses the race, and the agent is answered and told.
		if err := r.show(ctx, d); err != nil && r.abandon(d) {
			return nil, err
		}
	}
	if err := r.answer(ctx, d, mode == AcceptAll); err != nil {
		return nil, err
	}
	if deliver != nil {
		// deliver writes to a peer, which may take its time. Nothing is locked meanwhile: the user can decide, and
		// decide waits for answered. The outcome cannot overtake the answer, since owe tells it only once d is open.
		guard("deliver", func() { deliver(d) })
	}
	defer r.lock()()
	d.move(open)
	if d.answered != nil {
		close(d.answered)
	}
	if mode == AcceptAll {
		r.settle(d, Outcome{Kind: Accepted, Content: d.text, Policy: true})
	}
	r.owe(d)
	r.callEnded() // begun by answer
	return d, nil
}

// diff makes a Diff that is not open yet.
func (r *Registry) diff(id string, owner Owner, opened time.Time, p Proposal) *Diff {
	file := File{Text: p.Old, Exists: !p.IsNew}
	sent := p.NewJSON
	p.NewJSON = ""
	return &Diff{
		id: id, owner: owner, label: owner.Label(), proposal: p, opened: opened,
		registry: r, json: sent, text: p.New, base: file, agreed: file,
	}
}

// register enters d, unless a bound or the policy forbids it. It settles the diff
// that d replaces in either case, but not when the registry is shut.
func (r *Registry) register(ctx context.Context, d *Diff) (Mode, error) {
	defer r.lock()()
	if r.shut {
		return Ask, ErrShut // the diff that d would replace stays as it is
	}
	key := ownerKey{d.owner, d.proposal.Key}
	if old, ok := r.byKey[key]; ok { // also when d is refused: its agent has given the old one up, and would take its outcome for d's
		r.settle(old, Outcome{Kind: Withdrawn, Content: old.text})
	}
	mode := r.policy.mode(d.label, d.proposal.Path)
	if mode == AcceptAll && r.opt.AlwaysAsk {
		mode = Ask
	}
	if err := r.admit(ctx, d, mode); err != nil {
		return mode, err
	}
	r.enter(d, key)
	return mode, nil
}

// enter makes d one of the open diffs. The caller holds mu.
func (r *Registry) enter(d *Diff, key ownerKey) {
	r.diffs = append(r.diffs, d)
	r.byID[d.id], r.byKey[key] = d, d
	r.owned[d.owner]++
	r.total += d.size()
	r.expected(d)
}

// admit says why d may not be opened. The caller holds mu. The bounds come before the view, so that a flood of
// proposals costs the editor nothing. It checks ctx under the
// lock, because the end of an owner cancels ctx and then calls Leave: so no diff of
// an ended session gets in after Leave.
func (r *Registry) admit(ctx context.Context, d *Diff, mode Mode) error {
	switch largest := max(len(d.proposal.Old), len(d.proposal.New)); {
	case r.shut:
		return ErrShut
	case ctx.Err() != nil:
		return ctx.Err()
	case mode == Terminal:
		return ErrDeclined
	case int64(largest) > r.opt.MaxProposal:
		return fmt.Errorf("%w: %d bytes where %d are allowed", ErrTooBig, largest, r.opt.MaxProposal)
	case r.owned[d.owner] >= r.opt.MaxPerOwner, r.total+r.held.Load()+d.size() > r.opt.MaxTotal:
		return ErrTooMany
	case mode == Ask && r.opt.View == nil:
		return ErrNoView
	}
	return nil
}

// Hold counts bytes of decided diffs that owners still keep against Options.MaxTotal. A negative number releases them.
func (r *Registry) Hold(bytes int) { r.held.Add(int64(bytes)) }

// show has the view show d, and waits for it until ShowTimeout, the end of ctx, or the end of d. The view works on a
// goroutine of its own: an editor that hangs then delays neither this agent past the deadline nor any other. A view that is
// done too late is closed by owe, since its diff has been settled by then.
func (r *Registry) show(ctx context.Context, d *Diff) error {
	if r.opt.View == nil {
		return ErrNoView
	}
	ctx, cancel := context.WithTimeout(ctx, r.opt.ShowTimeout)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- r.showOn(d, func() error { return r.opt.View.Show(ctx, d) }) }()
	select {
	case err := <-result:
		return err
	case <-d.end():
		return nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("%w: it did not answer within %v", ErrNoView, r.opt.ShowTimeout)
		}
		return ctx.Err()
	}
}

// showOn has the view show d on this goroutine. It notes the success itself, so that a success after
// show has given up counts as well: such a view must be closed.
func (r *Registry) showOn(d *Diff, show func() error) error {
	err := errViewFailed // when it panics
	guard("View.Show", func() { err = show() })
	if err == nil {
		defer r.lock()()
		r.seen(d)
	}
	return err
}

// abandon ends a diff that could not be shown. It returns false when somebody settled it first. Withdrawn, not
// Rejected: nobody has refused it, and its agent hears the reason as the error of Open.
func (r *Registry) abandon(d *Diff) bool {
	defer r.lock()()
	return r.settle(d, Outcome{Kind: Withdrawn, Content: d.text})
}

// answer moves d from opening to answering, or says why the agent gets no answer. A diff
// that was withdrawn meanwhile gets none; a decision of the user's does. byRule becomes
// the result of Diff.Ruled.
func (r *Registry) answer(ctx context.Context, d *Diff, byRule bool) error {
	defer r.lock()()
	d.json = "" // it is as large as the text
	if ctx.Err() != nil {
		r.settle(d, Outcome{Kind: Withdrawn, Content: d.text})
	}
	var err error
	switch {
	case d.outcome != nil && d.outcome.Kind == Withdrawn && r.shut:
		err = ErrShut
	case d.outcome != nil && d.outcome.Kind == Withdrawn && ctx.Err() != nil:
		err = ctx.Err()
	case d.outcome != nil && d.outcome.Kind == Withdrawn:
		err = fmt.Errorf("withdrawn while it was being shown: %w", ErrSettled)
	default:
		d.move(answering)
		if byRule {
			d.turn(ruled)
		}
		r.callBegins()
		if d.outcome == nil { // else settle has announced it
			r.announce(d)
		}
	}
	return err
}

// settle gives d its one outcome, and reports whether this call did it. No other
// place sets an outcome, so no way of deciding can forget a part of it: bounds, events, the file and the calls that
// are owed. The caller holds mu and took it with lock.
func (r *Registry) settle(d *Diff, o Outcome) bool {
	if d.outcome != nil {
		return false
	}
	if o.Kind == Rejected {
		o.Content = "" // nobody can write what the user refused
	}
	o.Edited = o.Kind != Rejected && o.Content != d.proposal.New
	r.total -= d.size()
	d.outcome = &o
	if d.settled != nil {
		close(d.settled)
	}
	r.diffs = slices.DeleteFunc(r.diffs, func(other *Diff) bool { return other == d })
	delete(r.byID, d.id)
	delete(r.byKey, ownerKey{d.owner, d.proposal.Key})
	if r.owned[d.owner]--; r.owned[d.owner] == 0 {
		delete(r.owned, d.owner)
	}
	if d.phase == opening && d.announced() { // the user decided before the agent had its answer
		r.announce(d)
	}
	if d.announced() { // a diff that never opened needs no end
		r.events = append(r.events, Event{Kind: Decided, Diff: d, Outcome: &o})
	}
	if o.Kind == Accepted {
		r.expect(d, o.Content) // before the agent hears of it: it may write the file at once
	}
	r.owe(d)
	return true
}

// announce queues the event that d is open. The caller holds mu.
func (r *Registry) announce(d *Diff) { r.events = append(r.events, Event{Kind: Opened, Diff: d}) }

// seen notes that the view shows d, which may be settled by now. The caller holds mu and took it with lock.
func (r *Registry) seen(d *Diff) {
	if d.turn(visible) {
		r.owe(d)
	}
}

// owe queues the calls that are due for a settled d: Owner.Settled once its agent has its answer, View.Close
// once the view shows it. Each is queued once. It is called at every change of phase or sight, since either may come last.
// The caller holds mu and took it with lock.
func (r *Registry) owe(d *Diff) {
	if d.outcome == nil {
		return
	}
	o := *d.outcome
	if d.phase == open && o.Kind != Withdrawn {
		d.move(told)
		r.callBegins() // counted from now on, not from the call: Shut must not find quiet in between
		r.owed = append(r.owed, func() {
			guard("Owner.Settled", func() { d.owner.Settled(d, o) })
			if d.told != nil { // set before the outcome, so that no lock is needed
				close(d.told)
			}
		})
	}
	if d.turn(gone) {
		r.callBegins()
		r.owed = append(r.owed, func() { guard("View.Close", func() { r.opt.View.Close(d, o) }) })
	}
}

// lock takes mu and returns what releases it: mu first, then the owed calls and the watchers are told, on this goroutine.
// Every method that changes anything begins with "defer r.lock()()". So no owner, view or watcher is ever called under
// mu, and each may call the registry in turn; and no change can leave its calls behind.
func (r *Registry) lock() (release func()) {
	r.mu.Lock()
	return func() {
		owed := r.owed
		r.owed = nil
		tell := len(r.events) > 0
		r.mu.Unlock()
		for _, call := range owed {
			call()
			r.mu.Lock()
			r.callEnded()
			r.mu.Unlock()
		}
		if tell {
			r.tellWatchers()
		}
	}
}

// callBegins counts a call that Shut waits for. The channel is new for each time that calls are in progress, because a
// closed one stays closed. The caller holds mu.
func (r *Registry) callBegins() {
	if r.calls++; r.calls == 1 {
		r.quiet = make(chan struct{})
	}
}

// callEnded ends the count of callBegins. The caller holds mu.
func (r *Registry) callEnded() {
	if r.calls--; r.calls == 0 {
		close(r.quiet)
		r.quiet = nil
	}
}

// tellWatchers empties the queue of events. When another goroutine is at it
// already, that one tells ours too: two at a time could tell a diff's end before its edit.
func (r *Registry) tellWatchers() {
	for first := true; ; first = false {
		e, ok := r.nextEvent(first)
		if !ok {
			return
		}
		r.watchers.Send(e)
	}
}

// nextEvent takes an event off the queue. first is true for the first call of a teller: it becomes the only one, or gets false.
func (r *Registry) nextEvent(first bool) (Event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if first {
		if r.telling || len(r.events) == 0 {
			return Event{}, false
		}
		r.telling = true
		r.callBegins()
	}
	if len(r.events) == 0 { // in one step with giving up the telling: an event that came in between would have no teller
		r.events, r.telling = nil, false
		r.callEnded()
		return Event{}, false
	}
	e := r.events[0]
	r.events = r.events[1:]
	return e, true
}

// guard calls f and logs its panic. A panic in a view or an owner is a bug there; it
// must neither end the user's process nor leave the registry half way.
func guard(what string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("a call panicked; please report this", "call", what, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	f()
}
