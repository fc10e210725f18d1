package companion

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/proc"
)

// containerHost is the name by which a CLI in a container calls its host (SPEC T-8).
const containerHost = "host.docker.internal"

func (c *Companion) newServer(rec discovery.Record) *mcp.Server {
	o := mcp.Options{
		Store:     c.store,
		Registry:  c.reg,
		Version:   c.o.Version,
		Process:   processOf,
		Behind:    guard.Behind,
		Known:     rec.Sessions,
		Meet:      c.meetCLI,
		Floor:     rec.Floor,
		Life:      rec.Life,
		MayDecide: c.mayDecide,
		Log:       c.o.Log,
	}
	c.met.Add(rec.Met...)
	for _, a := range agent.All() {
		if a.Door == nil {
			continue
		}
		door := rec.DoorOf(a.Name)
		in := a.Door(agent.Options{LegacyDiffClosed: c.o.Settings.LegacyDiffClosed, KeepJSON: c.o.Editor != nil, Snapshot: c.store.Snapshot, Open: c.open, Save: c.saveFile})
		in.Name, in.Label = a.Name, a.Label
		in.Token, in.Older, in.SessionKey = door.Token, door.Older, door.SessionKey
		o.Agents = append(o.Agents, in)
	}
	if c.o.Settings.ContainerAddress != "" {
		o.ExtraHosts = []string{containerHost}
	}
	if c.o.Settings.AllowWriteFile {
		o.WriteFile = c.work.WriteFile
	}
	if c.resume != nil {
		c.openJournal(c.resume.Journal())
		o.Journal, o.Ready, o.Deleted = c.journal, c.restored, c.journal.Deleted()
	}
	return mcp.New(o)
}

// processOf names the processes of the CLI behind a connection: also behind pollux relay. Of several that hold it, the last is the oldest, and
// all are the agent's: it may have given the connection to another program.
func processOf(client, server netip.AddrPort) (all []proc.Info) {
	for _, pid := range slices.Backward(proc.Peers(client, server)) {
		all = append(all, guard.Behind(pid)...)
	}
	return all
}

func (c *Companion) newPage(rec discovery.Record) Page {
	o := PageOptions{
		Registry:  c.reg,
		Store:     c.store,
		Workspace: c.work,
		Sessions:  c.Sessions,
		Troubles:  c.shownTroubles,
		Mention:   c.mention,
		Decides:   c.pageDecides,
		Keys:      rec.PageKeys,
		Name:      c.o.IDE.DisplayName,
		Version:   c.o.Version,
		PID:       c.o.PID,
		AgentPort: rec.Port,
		Expected:  c.resumed && len(rec.PageKeys) > 0,
		Log:       c.o.Log,
	}
	if c.kept != nil { // a nil *past.History in an interface would not be nil
		o.History = c.kept
	}
	return c.o.NewPage(o)
}

// decidesWithin bounds how long a page's decision waits until the agents' processes are known.
const decidesWithin = 3 * time.Second

// belowDo is what to do about a companion that an agent has started.
const belowDo = "start the editor, or pollux serve, in a terminal of yours; pollux doctor says when that one counts as an agent's"

// errBelow is why a companion that an agent has started shows no diffs.
var errBelow = errors.New("this companion was started from an agent's own shell, and nobody may decide about the agent's changes there; review this change in the terminal, and " + belowDo)

// mayDecide says why an agent's diffs must not be decided here. An agent must not answer its own proposals, so an editor or page that
// an agent started decides nothing (SPEC §11.1). pollux conform may start the companion that it tries.
func (c *Companion) mayDecide(agent []proc.Info) error {
	if c.below {
		return errBelow
	}
	c.dropRulesOf(agent)
	c.mu.Lock()
	known := slices.Equal(agent, c.apart)
	c.mu.Unlock()
	if known || len(agent) == 0 || guard.Same(agent) {
		return nil
	}
	if slices.ContainsFunc(c.selves(), func(pid int) bool { return guard.Descends(pid, agent) }) {
		return errBelow
	}
	if !slices.ContainsFunc(agent, func(p proc.Info) bool { return p.Start == 0 }) { // without a start time, the number may be another process later
		c.mu.Lock()
		c.apart = slices.Clone(agent)
		c.mu.Unlock()
	}
	return nil
}

// dropRulesOf drops the rules when one may be this agent's own: a process below it set a rule while nobody knew yet that it is an agent.
// From now on it is known.
func (c *Companion) dropRulesOf(agent []proc.Info) {
	if !slices.ContainsFunc(agent, c.setters.Has) || guard.Same(agent) {
		return
	}
	c.setters.Clear()
	if len(c.reg.Rules()) > 0 {
		c.o.Log.Warn("all rules are dropped: an agent's own process may have set one before the agent was known", "agent", agent[len(agent)-1].PID)
		c.reg.DropRules()
	}
}

// errAgentsPage is why a page decides nothing. It fits into a WebSocket's close frame (123 bytes).
var errAgentsPage = errors.New("an agent has started this browser, which may not decide; close it, start it yourself, and run: pollux page")

// pageDecides says why the processes at the other end of a page's connection may not decide for the user: one runs below an agent, or has
// an agent's mark (SPEC §11.1). A process that the system does not name may, as sshd, which hides its descriptors, unless it may be an agent's.
func (c *Companion) pageDecides(ctx context.Context, page, server netip.AddrPort) error {
	known := sync.OnceValue(func() []proc.Info { return c.knownAgents(ctx) })
	agents := func(pid int) bool {
		if pid == os.Getpid() {
			return false
		}
		v := guard.Look(pid, known())
		return v == guard.Below || v == guard.Marked
	}
	peers := proc.Peers(page, server)
	if slices.ContainsFunc(peers, agents) || len(peers) == 0 && proc.MayHold(page, server, agents) {
		return errAgentsPage
	}
	for _, pid := range peers {
		if pid != os.Getpid() {
			c.setters.Add(guard.Line(pid)...)
		}
	}
	return nil
}

// knownAgents returns the processes of the connected agents and of agents that have asked through a go-between. It waits at most
// decidesWithin for processes that are still being found.
func (c *Companion) knownAgents(ctx context.Context) []proc.Info {
	ctx, cancel := context.WithTimeout(ctx, decidesWithin)
	defer cancel()
	return backend{c}.Agents(ctx).Processes
}

// mayInherit says why this companion must not take over the sessions of a record: one of their agents has started it or its editor, and
// could decide its own open diffs here. In other namespaces it could not be seen that one has.
func (c *Companion) mayInherit(old *discovery.Record) error {
	var ended []proc.Info // asked for at once: there may be thousands, and each question looks at all processes above this one
	for _, agent := range old.Sessions {
		if !slices.ContainsFunc(agent, func(p proc.Info) bool { return proc.Same(p.PID, p.Start) }) {
			ended = append(ended, agent...)
		} else if err := c.mayDecide(agent); err != nil {
			return err
		}
	}
	if err := c.mayDecide(ended); err != nil {
		return err
	}
	if here := proc.Namespaces(); old.Namespaces != "" && here != old.Namespaces {
		return fmt.Errorf("the last companion ran in other namespaces (%s, and here are %s)", old.Namespaces, here)
	}
	return c.mayDecide(old.Met)
}

// selves returns this process and its editor's.
func (c *Companion) selves() []int { return []int{os.Getpid(), c.o.PID} }

// marked says whether an agent has started this companion or its editor, as far as marks in the environment tell.
func (c *Companion) marked() bool {
	return guard.Carries(os.Environ()) || slices.ContainsFunc(c.selves(), func(pid int) bool { return guard.Look(pid, nil) == guard.Marked })
}

// lateView passes the registry's calls to the page, which is made only after the registry. A diff that no page shows
// still counts as shown while a reviewer is attached. A keeper holds every diff until somebody comes, with or without a page, because
// Gemini CLI fails a change whose diff is refused and asks nobody (measured with 0.61).
type lateView struct{ c *Companion }

func (v lateView) Show(_ context.Context, d *review.Diff) error { return v.ShowNow(d) }
func (v lateView) ShowNow(d *review.Diff) error {
	page := v.c.webPage()
	if page == nil { // a keeper has no page
		return nil
	}
	err := page.ShowNow(d)
	if err != nil && (v.c.o.Keeping != nil || v.c.reviewers.looking()) {
		return nil
	}
	return err
}
func (v lateView) Close(d *review.Diff, o review.Outcome) { pageView(v).Close(d, o) }
func (v lateView) Content(ctx context.Context, d *review.Diff) (review.Edit, bool) {
	if edit, ok := v.c.takeBack(ctx, d); ok {
		return edit, true
	}
	return pageView(v).Content(ctx, d)
}
