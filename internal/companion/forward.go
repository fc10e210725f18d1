package companion

import (
	"context"
	"errors"
	"time"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
)

// showAgainAfter is how long after a companion showed a keeper's proposal to nobody it is asked again.
const showAgainAfter = 2 * time.Second

// lentTo lists the agents that are told what the users of other companions look at: the sole ones, and all that a keeper serves.
func (c *Companion) lentTo() []string {
	if c.o.Keeping != nil {
		return agent.Names(nil)
	}
	return sole()
}

// lendToKeeper tells a keeper what this one's user looks at (SPEC L-4), until either ends. It returns false when it takes the connection
// not over: the other one is no keeper, or is told already. The caller holds c.electing.
func (c *Companion) lendToKeeper(to *control.Client) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !to.Status.Keeper || c.o.Keeping != nil || c.below || c.keepers[to.Path()] != nil {
		return false
	}
	c.keepers[to.Path()] = &keptBy{Client: to}
	c.tasks.Go(func() {
		c.lend(to, agent.Names(nil))
		to.Close()
		c.mu.Lock()
		delete(c.keepers, to.Path())
		c.mu.Unlock()
		c.tellShares()
	})
	return true
}

// forward shows a keeper's proposals in the views of the elected companion (SPEC L-4), until that one ends, another is elected, or Stop.
func (c *Companion) forward(to *control.Client) {
	c.whole()
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	wake := make(chan struct{}, 1)
	defer c.reg.Watch(func(review.Event) { poke(wake) })()
	asked := map[*review.Diff]bool{}
	for {
		open := map[*review.Diff]bool{}
		for _, d := range c.reg.Pending() {
			open[d] = true
			if !asked[d] {
				c.tasks.Go(func() { c.askElsewhere(ctx, to, d) })
			}
		}
		asked = open
		select {
		case <-wake:
		case <-ctx.Done():
			return
		case <-to.Gone():
			return
		}
	}
}

// askElsewhere has another companion ask its user about a diff, until the diff is decided, there or elsewhere.
func (c *Companion) askElsewhere(ctx context.Context, to *control.Client, d *review.Diff) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.tasks.Go(func() {
		select {
		case <-d.Ended():
			cancel()
		case <-ctx.Done():
		}
	})
	for {
		again := showAgainAfter
		switch err := c.askOnce(ctx, to, d); {
		case err == nil:
			return
		case errors.Is(err, review.ErrStale):
			again = 0
		case ctx.Err() == nil:
			c.o.Log.Info("a proposal waits here, as another companion shows it to nobody", "file", d.Proposal().Path, "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(again):
		}
	}
}

// errAgentsAnswer keeps a proposal from a companion that an agent has started.
var errAgentsAnswer = errors.New("an agent has started the other companion, which may not decide")

// askOnce is askElsewhere, once. After an ErrStale there is something newer to show. What answers decides for the user: it is looked at again,
// since agents have come since it was elected, and anybody of the user's can put a socket in place of another.
func (c *Companion) askOnce(ctx context.Context, elected *control.Client, d *review.Diff) error {
	to, err := elected.Again(ctx)
	if err != nil {
		return err
	}
	defer to.Close()
	if len(c.beside([]*control.Client{to})) == 0 {
		return errAgentsAnswer
	}
	c.shownBy(d, to)
	defer c.shownBy(d, nil)
	now := d.Now()
	answer, err := to.Propose(ctx, control.Proposal{
		Path: d.Proposal().Path, Old: now.Base.Text, IsNew: !now.Base.Exists, New: now.Text, For: d.Label(), ReadOnly: d.Proposal().ReadOnly,
		Agents: backend{c}.Agents(ctx),
	}, nil)
	switch {
	case err != nil:
		return err
	case !answer.Accepted:
		return c.reg.Reject(d.ID())
	}
	err = c.reg.Accept(d.ID(), now.Seen, &answer.Content)
	if errors.Is(err, review.ErrConflict) { // which the user has seen there, if the file is still the one that was shown
		seen := review.Seen{Text: d.Now().Seen.Text, Base: now.Seen.Base}
		if c.reg.Resolve(d.ID(), seen, false) == nil {
			err = c.reg.Accept(d.ID(), seen, &answer.Content)
		}
	}
	return err
}

// shownBy notes which companion shows a proposal; nil for none.
func (c *Companion) shownBy(d *review.Diff, by *control.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.elsewhere[d] = by; by == nil {
		delete(c.elsewhere, d)
	}
}

// takeBack has the companion that shows a proposal take it away, and returns the user's text.
func (c *Companion) takeBack(ctx context.Context, d *review.Diff) (review.Edit, bool) {
	c.mu.Lock()
	by := c.elsewhere[d]
	c.mu.Unlock()
	if by == nil {
		return review.Edit{}, false
	}
	text, err := by.TakeBack(ctx)
	if err != nil {
		c.o.Log.Info("another companion does not say what its user made of a proposal", "file", d.Proposal().Path, "err", err)
	}
	return review.Edit{Text: text}, err == nil
}

// front returns the companion whose editor this keeper's sessions have; nil for none, and for a companion that is no keeper.
func (c *Companion) front() *control.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.o.Keeping == nil || c.elected == nil || c.elected.Status.Keeper {
		return nil
	}
	return c.elected
}
