package control

import (
	"io/fs"
	"path/filepath"

	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/handler"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/proc"
)

// pollWithin is how long the companion holds a question whose answer has not changed. A client asks again after that,
// so a missed change is found then at the latest.
const pollWithin = 2 * time.Second

// errMode: the rule has an unknown mode.
var errMode = errors.New("mode must be ask, accept or terminal")

// A peer is one connection, for as long as it lasts.
type peer struct {
	b Backend
	// from is the process that made the connection. When it has ended, whoever holds the connection decides nothing.
	from    proc.Info
	out     *carrier
	over    atomic.Pointer[func()] // of keeping.HandOver
	orphans *orphans
	joined  *askers
	// attached has room for one value: the function that detaches the peer, while it is attached.
	attached chan func()
	lent     atomic.Bool              // it has lent a snapshot
	back     atomic.Pointer[TakeBack] // of the proposal that is on show; nil for none
}

// trusted returns nil when the peer, as far as anybody can know, is not a model's shell. inAgent is what the peer says of itself.
func (p *peer) trusted(ctx context.Context, inAgent bool) error {
	if inAgent {
		return ErrFromAgent
	}
	return p.judge(p.known(ctx))
}

// judge is Agents.mayDecide for the peer.
func (p *peer) judge(agents Agents) error { return agents.judge(p.verdict(agents)) }

// verdict looks at the peer's process.
func (p *peer) verdict(agents Agents) guard.Verdict {
	v := guard.Look(p.from.PID, agents.Processes)
	if !proc.Same(p.from.PID, p.from.Start) { // asked after Look, so that Look saw this process
		return guard.Unseen
	}
	return v
}

// judged says what the peer is taken for.
func (p *peer) judged(ctx context.Context, _ empty) (judgeReply, error) {
	switch p.verdict(p.known(ctx)) {
	case guard.Person:
		return judgeReply{byPerson}, nil
	case guard.Below, guard.Marked:
		return judgeReply{byAgent}, nil
	}
	return judgeReply{byUnseen}, nil
}

// errPrivate: some agent must not be told what the user looks at, and it may be the one that asks.
var errPrivate = errors.New("an agent's shell asks, and the user does not share with every agent what they look at; pollux share says with whom")

// mayKnow returns what the peer may be told of a snapshot. Nobody knows which agent is above a model's shell. So that shell is told
// nothing while one agent must not be told, and no file that one agent must not be told (SPEC C-8).
func (p *peer) mayKnow(ctx context.Context, inAgent bool, snap *state.Snapshot) (*state.Snapshot, error) {
	if len(snap.Withheld) == 0 && len(snap.Denied) == 0 || p.trusted(ctx, inAgent) == nil {
		return snap, nil
	}
	if len(snap.Withheld) > 0 {
		return nil, errPrivate
	}
	return snap.ForAll(), nil
}

// known returns the agents, and what speaks for others that nobody knows.
func (p *peer) known(ctx context.Context) Agents {
	ctx, cancel := context.WithTimeout(ctx, knowWithin)
	defer cancel()
	agents := p.b.Agents(ctx)
	agents.Unknown = append(agents.Unknown, p.orphans.doubts()...)
	return agents
}

// end undoes what lasts as long as the connection.
func (p *peer) end() {
	select {
	case detach := <-p.attached:
		detach()
	default:
	}
	if p.lent.Load() {
		p.b.Lend(p, nil, false)
	}
	if over := p.over.Load(); over != nil {
		(*over)()
	}
}

// reviewing returns the methods of a reviewer and of a proposer.
func (p *peer) reviewing() handler.Map {
	b := p.b
	return handler.Map{
		methodAttach: method(func(ctx context.Context, a agentParams) (empty, error) { return empty{}, p.attach(ctx, a.InAgent) }),
		methodWatch: method(func(ctx context.Context, w watchParams) (Queue, error) {
			ctx, cancel := context.WithTimeout(ctx, pollWithin)
			defer cancel()
			return b.Watch(ctx, w.Seen), nil
		}),
		methodTold: method(func(ctx context.Context, t toldParams) (toldReply, error) {
			ctx, cancel := context.WithTimeout(ctx, pollWithin)
			defer cancel()
			params := b.Told(ctx, t.Seen)
			snap := b.Context()
			if known, err := p.mayKnow(ctx, t.InAgent, snap); err != nil || known != snap {
				return toldReply{}, errPrivate
			}
			return toldReply{params}, nil
		}),
		methodTexts: method(func(_ context.Context, id idParams) (textsReply, error) {
			t, err := b.Texts(id.ID)
			return t.wire(), err
		}),
		methodText: method(func(_ context.Context, id idParams) (textReply, error) {
			text, version, err := b.Text(id.ID)
			return textReply{[]byte(text), version}, err
		}),
		methodEdit: method(func(ctx context.Context, e editParams) (editReply, error) {
			if err := p.trusted(ctx, e.InAgent); err != nil {
				return editReply{}, err
			}
			version, err := b.Edit(e.ID, string(e.Text), e.From)
			return editReply{version}, err
		}),
		methodResolve: method(func(ctx context.Context, r resolveParams) (empty, error) {
			if err := p.trusted(ctx, r.InAgent); err != nil {
				return empty{}, err
			}
			return empty{}, b.Resolve(r.ID, r.Seen, r.Theirs)
		}),
		methodRule: method(func(ctx context.Context, r ruleParams) (empty, error) { return empty{}, p.rule(ctx, r) }),
		methodHistory: method(func(context.Context, empty) ([]PastProposal, error) {
			return b.History()
		}),
		methodEntry: method(func(_ context.Context, id idParams) (textsReply, error) {
			t, err := b.PastTexts(id.ID)
			return t.wire(), err
		}),
		methodUndo: method(func(ctx context.Context, id idParams) (empty, error) {
			if err := p.trusted(ctx, id.InAgent); err != nil {
				return empty{}, err
			}
			return empty{}, b.Undo(id.ID)
		}),
		methodPropose: method(p.propose),
		methodTakeBack: method(func(ctx context.Context, _ empty) (textReply, error) {
			back := p.back.Load()
			if back == nil {
				return textReply{}, review.ErrNoDiff
			}
			text, err := (*back)(ctx)
			return textReply{Text: []byte(text)}, err
		}),
	}
}

func (p *peer) attach(ctx context.Context, inAgent bool) error {
	if err := p.trusted(ctx, inAgent); err != nil {
		return err
	}
	detach := p.b.Attach()
	select {
	case p.attached <- detach:
	default:
		detach() // it was attached already
	}
	return nil
}

// lend takes what another user looks at from a person's process.
func (p *peer) lend(ctx context.Context, in lendParams) (lendReply, error) {
	if !p.lent.Load() && p.verdict(p.known(ctx)) != guard.Person {
		return lendReply{}, ErrFromAgent
	}
	if in.Snapshot != nil {
		p.lent.Store(true)
		p.b.Lend(p, in.Snapshot, in.Active)
	}
	return lendReply{p.b.Sessions()}, nil
}

func (p *peer) rule(ctx context.Context, r ruleParams) error {
	if err := p.trusted(ctx, r.InAgent); err != nil {
		return err
	}
	switch r.Rule.Mode {
	case review.Ask, review.AcceptAll, review.Terminal:
	default:
		return errMode
	}
	p.b.SetRule(r.Rule, p.from.PID)
	return nil
}

// propose waits for the user as long as the connection lasts. Everybody may propose: a model's shell that does so asks the
// user, and cannot answer for them. It only cannot name another agent.
func (p *peer) propose(ctx context.Context, in proposeParams) (answerReply, error) {
	switch {
	case !filepath.IsAbs(in.Path):
		return answerReply{}, &fs.PathError{Op: "propose", Path: in.Path, Err: errors.New("not an absolute path")}
	case text.IsBinary(in.Old), text.IsBinary(in.New): // no editor can show it (SPEC F-2); the registry checks sizes
		return answerReply{}, &fs.PathError{Op: "propose", Path: in.Path, Err: errors.New("not text in UTF-8")}
	}
	if in.For == "" {
		in.Agents = Agents{} // only a keeper has some
	} else if err := p.trusted(ctx, in.InAgent); err != nil {
		return answerReply{}, err
	}
	server := jrpc2.ServerFromContext(ctx)
	defer p.back.Store(nil)
	a, err := p.b.Propose(ctx, Proposal{in.Path, string(in.Old), in.IsNew, string(in.New), in.For, in.Agents, in.ReadOnly, p.from.PID}, func(back TakeBack) {
		p.back.Store(&back)
		_ = server.Notify(ctx, noteOpened, nil)
	})
	return answerReply{a.Accepted, []byte(a.Content), a.Edited}, err
}

// Attach says that this connection looks at diffs, until Close. The companion then counts a diff as shown although no
// editor shows it.
func (c *Client) Attach(ctx context.Context) error {
	return c.call(ctx, methodAttach, agentParams{inAgent()}, &empty{})
}

// Watch returns the queue when it differs from version seen, or after a few seconds; at once for 0.
func (c *Client) Watch(ctx context.Context, seen uint64) (q Queue, err error) {
	return q, c.call(ctx, methodWatch, watchParams{seen}, &q)
}

// Texts returns the texts with which a diff was opened.
func (c *Client) Texts(ctx context.Context, id string) (Texts, error) {
	var r textsReply
	err := c.call(ctx, methodTexts, idParams{ID: id}, &r)
	return r.texts(), err
}

// Text returns a diff's text, as edited, and its version.
func (c *Client) Text(ctx context.Context, id string) (text string, version int, err error) {
	var r textReply
	err = c.call(ctx, methodText, idParams{ID: id}, &r)
	return string(r.Text), r.Version, err
}

// Edit records a diff's text as the user has it now, and returns its version. from is
// the version that the user edited; nil for the newest.
func (c *Client) Edit(ctx context.Context, id, text string, from *int) (version int, err error) {
	var r editReply
	err = c.call(ctx, methodEdit, editParams{id, []byte(text), from, inAgent()}, &r)
	return r.Version, err
}

// Resolve ends a conflict: the proposal stands over the file's change or, with theirs, the file's text replaces it.
func (c *Client) Resolve(ctx context.Context, id string, seen Seen, theirs bool) error {
	return c.call(ctx, methodResolve, resolveParams{id, seen, theirs, inAgent()}, &empty{})
}

// SetRule adds a rule to the policy.
func (c *Client) SetRule(ctx context.Context, r review.Rule) error {
	return c.call(ctx, methodRule, ruleParams{r, inAgent()}, &empty{})
}

// History lists past proposals, newest first.
func (c *Client) History(ctx context.Context) (list []PastProposal, err error) {
	return list, c.call(ctx, methodHistory, empty{}, &list)
}

// PastTexts returns the texts of a past proposal.
func (c *Client) PastTexts(ctx context.Context, id string) (Texts, error) {
	var r textsReply
	err := c.call(ctx, methodEntry, idParams{ID: id}, &r)
	return r.texts(), err
}

// Undo takes an accepted change back.
func (c *Client) Undo(ctx context.Context, id string) error {
	return c.call(ctx, methodUndo, idParams{id, inAgent()}, &empty{})
}

// Propose shows a proposal in the companion's editor and waits for its outcome. opened, if not nil, is
// called when the proposal is visible. When ctx ends or the client is closed, the proposal is taken back. A client makes one at a time.
func (c *Client) Propose(ctx context.Context, p Proposal, opened func()) (Answer, error) {
	c.opened.Store(&opened)
	defer c.opened.Store(nil)
	var r answerReply
	err := c.call(ctx, methodPropose, proposeParams{p.Path, []byte(p.Old), p.IsNew, []byte(p.New), p.For, p.Agents, p.ReadOnly, inAgent()}, &r)
	if ctx.Err() != nil {
		c.Close() // takes the proposal back
		return Answer{}, ctx.Err()
	}
	return Answer{r.Accepted, string(r.Content), r.Edited}, err
}

// TakeBack takes the proposal of this client's Propose back, and returns its text as the user had it.
func (c *Client) TakeBack(ctx context.Context) (string, error) {
	var r textReply
	err := c.call(ctx, methodTakeBack, empty{}, &r)
	return string(r.Text), err
}

// Told returns the parameters of ide/contextUpdate as CLIs get them (JSON), when they differ from seen, or after a
// few seconds; at once when seen is "".
func (c *Client) Told(ctx context.Context, seen string) (json.RawMessage, error) {
	var r toldReply
	err := c.call(ctx, methodTold, toldParams{seen, inAgent()}, &r)
	return json.RawMessage(r.Params), err
}

// notified handles messages that the companion sends without being asked.
func (c *Client) notified(req *jrpc2.Request) {
	if f := c.opened.Load(); req.Method() == noteOpened && f != nil && *f != nil {
		(*f)()
	}
}
