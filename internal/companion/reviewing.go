package companion

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/guard"
)

// maxEnded is how many outcomes are kept for a reviewer that asks seldom.
const maxEnded = 32

// errNoHistory: the history is switched off or its folder cannot be used.
var errNoHistory = errors.New("no history is kept; the log says why, or the setting history.enabled is off")

// reviewers keeps track of the processes that review this companion's diffs beside its own editor, and wakes them. The
// zero value is ready. Its methods may be called from any goroutine.
type reviewers struct {
	mu       sync.Mutex // guards the below
	attached int
	version  uint64         // counts changes that reviewers can see; the first is 1
	changed  chan struct{}  // closed when version grows; nil until somebody waits
	open     []*review.Diff // diffs whose outcome note has not seen
	ended    []control.Ended
	past     uint64
	snap     *state.Snapshot              // the newest that was published, nil before the first
	numbers  int                          // how many proposers were numbered
	kept     map[*proposer]control.Agents // of keepers whose proposals are open here
}

// wait returns a channel that is closed at the next change. The caller holds mu.
func (r *reviewers) wait() <-chan struct{} {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// touch applies a change and wakes every waiter.
func (r *reviewers) touch(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	r.version++
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// note records an event of the registry.
func (r *reviewers) note(e review.Event) {
	r.touch(func() {
		switch {
		case e.Diff == nil: // a rule was made
			return
		case e.Outcome == nil:
			if !slices.Contains(r.open, e.Diff) {
				r.open = append(r.open, e.Diff)
			}
			return
		}
		r.open = slices.DeleteFunc(r.open, func(d *review.Diff) bool { return d == e.Diff })
		r.ended = append(r.ended, ended(e.Diff, *e.Outcome))
		r.ended = r.ended[max(0, len(r.ended)-maxEnded):]
	})
}

func ended(d *review.Diff, o review.Outcome) control.Ended {
	return control.Ended{ID: d.ID(), Outcome: o.Kind.String(), Policy: o.Policy}
}

// looking says whether a reviewer is attached.
func (r *reviewers) looking() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.attached > 0
}

// followReviews keeps reviewers up to date until Stop.
func (c *Companion) followReviews() {
	cancels := []func(){
		c.reg.Watch(c.reviewers.note),
		c.reg.Watch(func(e review.Event) {
			if e.Kind == review.RulesChanged {
				c.tellTroubles() // changes may no longer be accepted without asking
			}
		}),
		c.store.Subscribe(func(snap *state.Snapshot) {
			c.reviewers.touch(func() { c.reviewers.snap = snap })
			c.tellTroubles() // an ignore file may have been mended
		}),
	}
	c.onStop("reviewers", func(context.Context) error {
		for _, cancel := range cancels {
			cancel()
		}
		return nil
	})
}

// pastChanged tells every view and reviewer of the history that it has a new entry.
func (c *Companion) pastChanged() {
	c.reviewers.touch(func() { c.reviewers.past++ })
	if page := c.webPage(); page != nil {
		page.HistoryChanged()
	}
}

// Attach is part of control.Reviewing.
func (b backend) Attach() (detach func()) {
	r := &b.c.reviewers
	r.touch(func() { r.attached++ })
	return sync.OnceFunc(func() { r.touch(func() { r.attached-- }) })
}

// Watch is part of control.Reviewing.
func (b backend) Watch(ctx context.Context, seen uint64) control.Queue {
	r := &b.c.reviewers
	for {
		r.mu.Lock()
		version, changed := r.version+1, r.wait() // never 0: a reviewer that has seen nothing says 0
		past, open, outcomes := r.past, slices.Clone(r.open), slices.Clone(r.ended)
		r.mu.Unlock()
		if version != seen || ctx.Err() != nil {
			diffs, rules := b.Diffs(), b.c.reg.Rules()
			for _, d := range open { // a diff that is not in open has its outcome, though note may hear of it later
				there := slices.ContainsFunc(diffs, func(other control.Diff) bool { return other.ID == d.ID() })
				if o, decided := d.Outcome(); decided && !there {
					outcomes = append(outcomes, ended(d, o))
				}
			}
			return control.Queue{
				Version: version, Diffs: diffs, Rules: rules, Sessions: len(b.c.everybody()),
				Sharing: b.c.Sharing().Sentence, Past: past, Ended: outcomes, Troubles: b.c.shownTroubles(),
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// Told is part of control.Backend.
func (b backend) Told(ctx context.Context, seen string) string {
	r := &b.c.reviewers
	for {
		r.mu.Lock()
		snap, changed := r.snap, r.wait()
		r.mu.Unlock()
		if snap == nil {
			snap = &state.Snapshot{}
		}
		told := agent.Context(snap)
		if told != seen || ctx.Err() != nil {
			return told
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// Texts is part of control.Reviewing.
func (b backend) Texts(id string) (control.Texts, error) {
	b.c.whole()
	d, ok := b.c.reg.Get(id)
	if !ok {
		return control.Texts{}, review.ErrSettled
	}
	now := d.Now()
	return control.Texts{Old: now.Base.Text, IsNew: !now.Base.Exists, New: d.Proposal().New, Base: now.Seen.Base}, nil
}

// Text is part of control.Reviewing.
func (b backend) Text(id string) (content string, version int, err error) {
	b.c.whole()
	d, ok := b.c.reg.Get(id)
	if !ok {
		return "", 0, review.ErrSettled
	}
	content, version = d.Text()
	return content, version, nil
}

// Edit is part of control.Reviewing.
func (b backend) Edit(id, content string, from *int) (version int, err error) {
	b.c.whole()
	return b.c.reg.Edit(id, review.Edit{Text: content, From: from})
}

// Resolve is part of control.Reviewing.
func (b backend) Resolve(id string, seen control.Seen, theirs bool) error {
	b.c.whole()
	return b.c.reg.Resolve(id, review.Seen{Text: seen.Version, Base: seen.Base}, theirs)
}

// SetRule is part of control.Reviewing.
func (b backend) SetRule(rule review.Rule, by int) {
	b.c.setters.Add(guard.Line(by)...)
	b.c.reg.SetRule(rule)
}

// History is part of control.Reviewing.
func (b backend) History() ([]control.PastProposal, error) {
	if b.c.kept == nil {
		return nil, errNoHistory
	}
	infos, err := b.c.kept.List()
	entries := make([]control.PastProposal, len(infos))
	for i, info := range infos {
		entries[i] = control.PastProposal{
			ID: info.ID, Path: info.Path, Owner: info.Owner, At: info.Settled, Outcome: info.Outcome.String(),
			Edited: info.Edited, Policy: info.Policy, Undoable: info.Outcome != review.Rejected, Undone: info.Undone,
		}
	}
	return entries, err
}

// PastTexts is part of control.Reviewing.
func (b backend) PastTexts(id string) (control.Texts, error) {
	if b.c.kept == nil {
		return control.Texts{}, errNoHistory
	}
	e, err := b.c.kept.Get(id)
	return control.Texts{Old: e.Old, IsNew: e.IsNew, New: e.New, Final: e.Final}, err
}

// Undo is part of control.Reviewing.
func (b backend) Undo(id string) error {
	if b.c.kept == nil {
		return errNoHistory
	}
	return b.c.kept.Undo(id)
}

// A proposer is the owner of the one proposal of a `pollux diff`.
type proposer struct {
	label   string
	outcome chan review.Outcome // buffered for one outcome
}

// Label implements review.Owner.
func (p *proposer) Label() string { return p.label }

// Settled implements review.Owner.
func (p *proposer) Settled(_ *review.Diff, o review.Outcome) { p.outcome <- o }

// Propose is part of control.Backend.
func (b backend) Propose(ctx context.Context, in control.Proposal, opened func(control.TakeBack)) (control.Answer, error) {
	c := b.c
	owner := &proposer{outcome: make(chan review.Outcome, 1)}
	c.reviewers.touch(func() {
		if owner.label = forLabel(in); owner.label == "" {
			c.reviewers.numbers++
			owner.label = "pollux diff #" + strconv.Itoa(c.reviewers.numbers)
		}
	})
	defer c.keepsAgents(owner, in.Agents)()
	ctx, cancel := context.WithCancel(ctx)
	defer c.reg.Leave(owner)
	defer cancel() // runs before Leave, which needs the context cancelled first
	_, err := c.reg.Open(ctx, owner, review.Proposal{
		Key: in.Path, Path: in.Path, Old: in.Old, IsNew: in.IsNew, New: in.New,
		Title: filepath.Base(in.Path) + " – " + owner.label, Unwritten: in.For == "", Apart: apart(in), ReadOnly: in.ReadOnly,
	}, func(*review.Diff) {
		opened(func(ctx context.Context) (string, error) {
			o, err := c.reg.Withdraw(ctx, owner, in.Path)
			return o.Content, err
		})
	})
	if err != nil {
		return control.Answer{}, err
	}
	select {
	case o := <-owner.outcome:
		if o.Kind != review.Accepted && c.ctx.Err() != nil {
			return control.Answer{}, control.ErrStopped // the user did not decide this
		}
		return control.Answer{Accepted: o.Kind == review.Accepted, Content: o.Content, Edited: o.Edited}, nil
	case <-ctx.Done():
		_, _ = c.reg.Withdraw(c.ctx, owner, in.Path) // with what the user was just typing, for the history
		return control.Answer{}, ctx.Err()
	}
}

// keepsAgents knows a keeper's agents as long as its proposal is open here.
func (c *Companion) keepsAgents(owner *proposer, agents control.Agents) (forget func()) {
	r := &c.reviewers
	r.touch(func() {
		if r.kept == nil {
			r.kept = map[*proposer]control.Agents{}
		}
		r.kept[owner] = agents
	})
	c.dropRulesOf(agents.Processes)
	return func() { r.touch(func() { delete(r.kept, owner) }) }
}

// keptAgents adds what keepsAgents knows.
func (r *reviewers) keptAgents(agents control.Agents) control.Agents {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kept := range r.kept {
		agents.Processes = append(agents.Processes, kept.Processes...)
		agents.Unknown = append(agents.Unknown, kept.Unknown...)
	}
	return agents
}

// apart says whether a proposal is about another text than the file's own, as a
// proposal of git difftool is.
func apart(p control.Proposal) bool {
	now := mcp.Files{}.Read(p.Path)
	return now.Exists == p.IsNew || now.Text != p.Old
}
