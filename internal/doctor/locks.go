package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/agent/lockfile"
	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/words"
)

// examineLocks replays the search of an agent with lock files, and tries the companion that it would take.
func examineLocks(ctx context.Context, o Options) (*Report, error) {
	x := &examination{o: o, w: client.Complete(o.World)}
	c, err := Choose(o.Agent, x.w)
	if err != nil {
		return nil, err
	}
	x.r = &Report{Dir: x.w.Dir, Says: c.Says, home: filepath.Dir(c.Folder), choice: asChoice(c)}
	x.seen()
	x.locks(c)
	x.lockChoice(ctx, c)
	switch ways := x.lockWays(c); {
	case x.failed("choice") || len(ways) == 0:
	case o.Agent.Listen != nil:
		x.listen(ctx, ways[0])
	default:
		x.reach(ctx, ways)
	}
	x.troubles(ctx)
	mode := o.Agent.Settings.Mode(o.Settings, x.w.Dir, x.w.Getenv)
	mode.ID = "mode"
	x.add(mode)
	x.program()
	x.r.Connects = !slices.ContainsFunc(x.r.Findings, func(f Finding) bool { return f.Level == Fault })
	return x.r, nil
}

// Choose replays how an agent with lock files looks for a companion in a world; nil is this process's.
func Choose(a agent.Agent, w *client.World) (*lockfile.Choice, error) {
	w = client.Complete(w)
	home, err := a.Locks.Home(w.Getenv)
	if err != nil {
		return nil, err
	}
	return a.Choose(lockfile.World{Home: home, Dir: w.Dir, Getenv: w.Getenv, Alive: w.Alive, Above: above(w)}), nil
}

// above returns the ancestors of a world's process, the nearest first.
func above(w *client.World) (pids []int) {
	const most = 10 // as Claude Code
	for p, ok := w.Process(w.PID); ok && p.Parent > 1 && len(pids) < most; p, ok = w.Process(p.Parent) {
		pids = append(pids, p.Parent)
	}
	return pids
}

// asChoice converts a choice among lock files for the steps that follow the search.
func asChoice(c *lockfile.Choice) *client.Choice {
	all := &client.Choice{Folder: c.Folder, Taken: c.Taken, Why: c.Why}
	for _, cand := range c.Candidates {
		all.Candidates = append(all.Candidates, client.Candidate{Name: cand.Name, UID: -1})
	}
	if c.Taken >= 0 {
		l := c.Candidates[c.Taken].Lock
		all.IDE = &client.IDE{Name: l.Name, DisplayName: l.DisplayName}
	}
	return all
}

// locks examines which lock files the agent sees, in its order.
func (x *examination) locks(c *lockfile.Choice) {
	label := x.o.Agent.Label
	f := Finding{ID: "files", Level: OK, What: fmt.Sprintf("%s sees %s in %s, in this order", label, plural(len(c.Candidates), "lock file", "lock files"), c.Folder)}
	if len(c.Candidates) == 0 {
		f.What = "there is no lock file in " + c.Folder
	}
	for i, cand := range c.Candidates {
		name := cand.Name
		if filepath.Dir(cand.Path) != c.Folder {
			name = cand.Path
		}
		f.Details = append(f.Details, name+": "+lockVerdict(c, i))
		if cand.Dead {
			f.Level, f.Why = Warning, "the process of a lock has ended; "+label+" deletes such a file at its next start"
			if cand.Lock.Ours {
				f.Mend, f.Fix = x.repair(), fixSweep
			}
		}
	}
	x.add(f)
}

// lockVerdict says what the agent makes of one lock.
func lockVerdict(c *lockfile.Choice, i int) string {
	switch cand := c.Candidates[i]; {
	case i == c.Taken && cand.Lock.Stdio != nil:
		return "taken: a command, " + cand.Lock.Stdio.Command + "; " + c.Why
	case i == c.Taken:
		return "taken: " + c.Why
	case cand.Lock == nil:
		return "passed over: " + cand.Problem
	case cand.Dead:
		return fmt.Sprintf("passed over: process %d has ended", cand.Lock.PID)
	case !cand.Fits:
		return "passed over: its folders (" + strings.Join(cand.Lock.Roots, ", ") + ") do not hold this one"
	case c.Taken < 0:
		return "it fits"
	}
	return "not taken: another one stands before it"
}

// lockChoice examines which lock the agent takes, and why a companion of the folder has none.
func (x *examination) lockChoice(ctx context.Context, c *lockfile.Choice) {
	a := x.o.Agent
	if c.Trouble != nil {
		f := *c.Trouble
		f.ID = "choice"
		x.add(f)
		return
	}
	if c.Taken >= 0 {
		x.ok("choice", "it takes "+c.Candidates[c.Taken].Name+": "+c.Why)
		return
	}
	f := Finding{ID: "choice", Level: Fault, What: "no companion of this folder can be found", Why: a.Label + " finds a companion by its lock file alone",
		Mend: "pollux serve", Remark: "then start " + a.Label}
	if a.Relay != nil {
		f.Why = a.Label + " looks once, at its start; /ide enable does not look again"
		f.Remark += "; pollux setup " + a.Name + " --relay lets it find an editor that starts later"
	}
	for _, v := range x.vars() {
		f.Details = append(f.Details, v+" is set, and its companion serves another folder, or has gone")
	}
	if pid := x.serving(ctx); pid != 0 {
		f.What = fmt.Sprintf("a companion of this folder runs (process %d), but it has no lock file in %s", pid, c.Folder)
		f.Why = "a companion writes one within a minute where " + x.r.home + " is there"
		f.Mend, f.Remark = "", fmt.Sprintf("start %s once, and wait a minute; a companion that was started with another %s looks elsewhere", a.Label, a.Locks.HomeVariable)
	}
	x.add(f)
}

// vars are the agent's variables in this terminal that name a companion, each as NAME=value.
func (x *examination) vars() (set []string) {
	if x.o.Agent.Env == nil {
		return nil
	}
	vars, _ := x.o.Agent.Env(agent.Endpoint{Alone: true}, x.w.Getenv)
	for _, v := range vars {
		if now := x.w.Getenv(v.Name); now != "" {
			set = append(set, v.Name+"="+now)
		}
	}
	return set
}

// serving returns the process of a pollux companion that serves the folder; 0 for none.
func (x *examination) serving(ctx context.Context) (pid int) {
	for _, c := range control.List(ctx, x.o.Run) {
		if slices.ContainsFunc(c.Status.Roots, func(root string) bool { return paths.Within(root, paths.Real(x.r.Dir)) }) {
			pid = c.Status.PID
		}
		c.Close()
	}
	return pid
}

// lockWays returns the ways that the agent tries: the lock that it takes, then the other ports that fit.
func (x *examination) lockWays(c *lockfile.Choice) (ways []client.Way) {
	for i, cand := range c.Candidates {
		l := cand.Lock
		if i < c.Taken || l == nil || !cand.Fits || cand.Dead && i != c.Taken {
			continue
		}
		switch {
		case l.Stdio == nil:
			ways = append(ways, client.Way{Host: "127.0.0.1", Port: l.Port, Socket: l.Socket, Token: l.Token, From: cand.Name})
		case i == c.Taken:
			ways = append(ways, client.Way{Command: l.Stdio.Command, Args: l.Stdio.Args, Dir: x.w.Dir, Env: x.w.Environ, From: cand.Name})
		}
	}
	return ways
}

// listen connects to the companion as the agent does, looks, and leaves.
func (x *examination) listen(ctx context.Context, way client.Way) {
	asking, cancel := context.WithTimeout(ctx, limit)
	health, note := Healthy, ""
	if way.Socket == "" {
		health, note = knock(asking, way.Host, way.Port, "")
	}
	cancel()
	if health != Healthy {
		f := Finding{ID: "port", Level: Fault, What: note, Why: way.From + " names it, and its process runs", Remark: "start that companion again, or remove the file"}
		if health == Silent {
			f.Remark = x.stopped(ctx)
		}
		x.add(f)
		return
	}
	at := fmt.Sprintf("%s:%d", way.Host, way.Port)
	if way.Socket != "" {
		at = way.Socket
	} else {
		x.ok("port", "somebody listens at "+at)
	}
	asking, cancel = context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	l, err := x.o.Agent.Listen(asking, finding.Door{Port: way.Port, Socket: way.Socket, Token: way.Token})
	switch {
	case errors.Is(err, lockfile.ErrToken):
		x.add(Finding{ID: "token", Level: Fault, What: err.Error(), Why: way.From + " was left behind by a companion that has gone, or has been changed",
			Remark: "start the companion again"})
		return
	case err != nil:
		x.add(Finding{ID: "handshake", Level: Fault, What: fmt.Sprintf("the companion at %s does not take the agent in: %v", at, err), Why: "the agent gives up at that",
			Remark: "start the companion again"})
		return
	}
	defer l.Close()
	x.ok("token", "the token is accepted")
	x.hear(asking, l)
	if x.o.Agent.Shows != "" {
		x.views(ctx, way)
	}
}

// hear examines what the companion offers, and what it tells of the editor.
func (x *examination) hear(ctx context.Context, l agent.Listener) {
	names, err := l.Tools(ctx)
	switch {
	case err != nil:
		x.add(Finding{ID: "tools", Level: Fault, What: "the companion does not list its tools: " + err.Error(), Why: "without them there are no diffs", Remark: "update the companion"})
		return
	case x.o.Agent.Shows == "": // the agent shows no diffs
	case !slices.Contains(names, x.o.Agent.Shows):
		x.add(Finding{ID: "tools", Level: Fault, What: "the companion does not offer " + x.o.Agent.Shows, Why: "without it no changes are shown in the editor", Remark: "update the companion"})
	default:
		x.ok("tools", x.o.Agent.Shows+" is offered")
	}
	ctx, cancel := context.WithTimeout(ctx, firstContext)
	defer cancel()
	params, err := l.Context(ctx)
	told := ""
	if err == nil && x.o.Agent.Told != nil {
		told, err = x.o.Agent.Told(params)
	}
	if err != nil {
		x.add(Finding{ID: "context", Level: Fault, What: fmt.Sprintf("no context has come within %v (%v)", firstContext, err), Why: "the model would not know what you look at",
			Remark: "start the companion again"})
		return
	}
	if x.o.Agent.Told == nil {
		told = "of what the user looks at"
	}
	first, _, _ := strings.Cut(cmp.Or(told, "the model is told of no file"), "\n")
	x.ok("context", "the first context has come: "+words.Shorten(first, 200))
	x.r.Says = "Connected to " + x.r.choice.IDE.DisplayName
}

// program examines whether this shell would find the agent.
func (x *examination) program() {
	a := x.o.Agent
	for _, dir := range filepath.SplitList(x.w.Getenv("PATH")) {
		for _, name := range []string{a.Command, a.Command + ".cmd", a.Command + ".exe"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
				x.ok("version", a.Command+" is "+filepath.Join(dir, name))
				return
			}
		}
	}
	x.add(Finding{ID: "version", Level: Note, What: a.Command + " is not in PATH", Why: "what is said here holds for release " + cmp.Or(a.Release, "of today"), Mend: a.Install})
}
