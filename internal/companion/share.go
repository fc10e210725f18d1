package companion

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/settings"
)

// What control.Session.Told says.
const (
	toldAll     = "told"
	toldPaused  = "paused"
	toldAsks    = "asks"
	toldNothing = "never"
)

// askShareWithin is how long the question stands.
const askShareWithin = 10 * time.Minute

// startShares withholds what agents must not be told, before any of them can connect.
func (c *Companion) startShares() (err error) {
	if c.shares, err = settings.NewShares(c.o.Dirs.State, c.o.Settings.Share, agent.Names(nil)); err != nil {
		return err
	}
	c.wakeShares = make(chan struct{}, 1)
	c.shares.Look(c.work.Roots())
	c.store.Withhold(c.shares.Withheld())
	return nil
}

// everyShare returns every agent with its mode.
func (c *Companion) everyShare() (all []control.Share) {
	for _, a := range agent.All() {
		all = append(all, control.Share{Agent: a.Name, Label: a.Label, Mode: c.shares.Mode(a.Name)})
	}
	return all
}

// lookShares takes over what another companion or the user has decided meanwhile. It returns at once.
func (c *Companion) lookShares() {
	before := c.everyShare()
	c.shares.Look(c.work.Roots())
	c.store.Withhold(c.shares.Withheld())
	if !slices.Equal(before, c.everyShare()) {
		go c.tellShares()
	}
}

// tellShares tells the views that other agents are told now.
func (c *Companion) tellShares() {
	if c.o.Editor != nil {
		c.o.Editor.SessionsChanged()
	}
	if page := c.webPage(); page != nil {
		page.SessionsChanged()
	}
	c.reviewers.touch(func() {})
}

// SetShare is part of control.Backend.
func (b backend) SetShare(name, mode string) error {
	a, ok := agent.Find(name)
	switch {
	case !ok:
		return fmt.Errorf("%q is no agent; the agents are %s", name, strings.Join(agent.Names(nil), ", "))
	case !settings.IsShareMode(mode):
		return fmt.Errorf("%q is not always, ask, never or leave", mode)
	case mode == settings.ShareLeave && !a.Contested():
		return fmt.Errorf("%s cannot be left to another companion: it chooses one of several by itself; to tell it nothing, say never instead", a.Label)
	}
	c := b.c
	err := c.shares.Set(c.work.Roots(), name, mode)
	c.lookShares()
	c.askShares()
	c.electAndPublish()
	go c.tellTroubles()
	if err != nil && mode == settings.ShareNever {
		return fmt.Errorf("%s is told nothing until this companion ends; the answer could not be kept for the next one: %w", name, err)
	}
	return err
}

// followShares asks the person about the agents that connect, until Stop.
func (c *Companion) followShares() {
	unwatch := c.agents.Watch(c.askShares)
	c.onStop("sharing", func(context.Context) error { unwatch(); return nil })
	c.tasks.Go(func() {
		for {
			select {
			case <-c.ctx.Done():
				return
			case <-c.wakeShares:
			}
			c.lookRunning()
			c.lookAtRules()
			c.lookShares()
			for _, s := range c.everySession() {
				if !strings.HasPrefix(s.Client, "pollux") { // pollux doctor and context look for themselves
					c.askShare(s.Agent, s.Label)
				}
			}
		}
	})
}

// askShares looks soon whether somebody is to be asked.
func (c *Companion) askShares() { poke(c.wakeShares) }

// askShare asks the person once whether an agent may be told what they look at, where the mode is ask. The question is asked again
// when nobody saw it.
func (c *Companion) askShare(name, label string) {
	ctx, cancel := context.WithTimeout(c.ctx, askShareWithin)
	defer cancel()
	if c.below || !c.shares.Begin(name, cancel) {
		return
	}
	const yes, no = "Share", "Never share"
	choice, err := c.ask(ctx, control.Question{
		Title:   "May " + label + " know what you look at?",
		Message: "Its model would hear of your open files, cursor, selection and problems in " + strings.Join(c.work.Roots(), ", ") + ". pollux share changes the answer later.",
		Choices: []string{yes, no},
	})
	c.shares.End(err != nil && ctx.Err() == nil)
	mode := map[string]string{yes: settings.ShareAlways, no: settings.ShareNever}[choice]
	if err != nil || mode == "" || c.shares.Mode(name) != settings.ShareAsk {
		return
	}
	if err := (backend{c}).SetShare(name, mode); err != nil {
		c.o.Log.Warn("the answer is not kept", "agent", name, "err", err)
	}
}

// toldTo says whether an agent is told what the user looks at, as control.Session says it. "" stands for one that is not known, and hears
// nothing as long as one agent must not (SPEC C-8).
func (c *Companion) toldTo(name string) string {
	mode := c.shares.Mode(name)
	if name == "" {
		mode = settings.ShareAlways
		if len(c.shares.Withheld()) > 0 {
			mode = settings.ShareNever
		}
	}
	switch {
	case mode == settings.ShareNever, mode == settings.ShareLeave:
		return toldNothing
	case c.store.Paused():
		return toldPaused
	case mode == settings.ShareAsk:
		return toldAsks
	}
	return toldAll
}

// A Sharing says in words who is told what the user looks at.
type Sharing struct {
	// Agents counts the connected sessions, agent by agent: "Gemini 2, Claude 1". Untold are the agents among them that are told
	// nothing: "Claude".
	Agents, Untold string
	// Sentence says it all; "" when nobody is connected.
	Sentence string
}

// Sharing says who is told what the user looks at, at this moment.
func (c *Companion) Sharing() Sharing {
	why := map[string]string{toldPaused: "sharing is paused", toldAsks: "until you agree: pollux share", toldNothing: "as you decided: pollux share"}
	var with, without, untold, order []string
	count := map[string]int{}
	for _, s := range c.Sessions() {
		name := "MCP"
		if s.Agent != "" {
			name = strings.ToUpper(s.Agent[:1]) + s.Agent[1:]
		}
		if count[name]++; count[name] == 1 {
			order = append(order, name)
		}
		in := ""
		if s.Folder != "" {
			in = " in " + filepath.Base(s.Folder)
		}
		switch s.Told {
		case toldAll:
			with = append(with, s.Label+in)
			continue
		case toldPaused: // every view says so by itself
		default:
			untold = append(untold, name)
		}
		without = append(without, s.Label+in+" ("+why[s.Told]+")")
	}
	var out Sharing
	for i, name := range order {
		order[i] = fmt.Sprintf("%s %d", name, count[name])
	}
	out.Agents, out.Untold = strings.Join(order, ", "), strings.Join(slices.Compact(slices.Sorted(slices.Values(untold))), ", ")
	var parts []string
	if len(with) > 0 {
		parts = append(parts, strings.Join(with, ", ")+": told your open files, cursor, selection and problems")
	}
	if len(without) > 0 {
		parts = append(parts, strings.Join(without, ", ")+": told nothing")
	}
	out.Sentence = strings.Join(parts, "; ")
	return out
}
