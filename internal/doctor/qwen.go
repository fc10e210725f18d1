package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent/qwen"
	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/paths"
)

// ExamineQwen replays what Qwen Code does in a world (SPEC) and tries the companion that it would take,
// as Examine does for Gemini CLI. Options.Settings is Qwen Code's settings file.
func ExamineQwen(ctx context.Context, o Options) (*Report, error) {
	x := &examination{o: o, w: client.Complete(o.World)}
	home, err := qwen.Home(x.w.Getenv)
	if err != nil {
		return nil, err
	}
	c := qwen.Choose(qwen.World{Home: home, Dir: x.w.Dir, Getenv: x.w.Getenv, Alive: x.w.Alive})
	x.r = &Report{Dir: x.w.Dir, home: home, choice: asChoice(c)}
	x.seen()
	x.qwenLocks(c)
	x.qwenChoice(ctx, c)
	if !x.failed("choice") {
		x.r.Says = fmt.Sprintf("Failed to connect to IDE companion extension in %s. Please ensure the extension is running. To install the extension, run /ide install.", x.r.choice.IDE.DisplayName)
		x.reach(ctx, x.qwenWays(c))
	}
	x.troubles(ctx)
	x.qwenMode()
	x.qwenProgram()
	x.r.Connects = !slices.ContainsFunc(x.r.Findings, func(f Finding) bool { return f.Level == Fault })
	return x.r, nil
}

// asChoice puts a choice of Qwen Code's into the form that the steps after the search know.
func asChoice(c *qwen.Choice) *client.Choice {
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

// qwenLocks: which lock files it sees, in its order.
func (x *examination) qwenLocks(c *qwen.Choice) {
	f := Finding{ID: "files", Level: OK, What: fmt.Sprintf("Qwen Code sees %s in %s, in this order", plural(len(c.Candidates), "lock file", "lock files"), c.Folder)}
	if len(c.Candidates) == 0 {
		f.What = "there is no lock file in " + c.Folder
	}
	for i, cand := range c.Candidates {
		f.Details = append(f.Details, cand.Name+": "+lockVerdict(c, i))
		if cand.Dead {
			f.Level, f.Why = Warning, "the process of a lock has ended; Qwen Code deletes such a file at its next start"
			if cand.Lock.Ours {
				f.Mend, f.fix = x.repair(), fixSweep
			}
		}
	}
	x.add(f)
}

// lockVerdict says of one lock what Qwen Code makes of it.
func lockVerdict(c *qwen.Choice, i int) string {
	switch cand := c.Candidates[i]; {
	case i == c.Taken && cand.Lock.Port == 0:
		return "taken: a command, " + cand.Lock.Stdio.Command + "; " + c.Why
	case i == c.Taken:
		return "taken: " + c.Why
	case cand.Lock == nil:
		return "passed over: " + cand.Problem
	case cand.Dead:
		return fmt.Sprintf("passed over: process %d has ended", cand.Lock.PID)
	case !cand.Fits:
		return "passed over: its folders (" + strings.Join(cand.Lock.Roots, ", ") + ") do not hold this one"
	}
	return "not taken: another one stands before it"
}

// qwenChoice: which lock it takes, and why a companion of the folder has none.
func (x *examination) qwenChoice(ctx context.Context, c *qwen.Choice) {
	if c.Taken >= 0 {
		l := c.Candidates[c.Taken].Lock
		if l.Name == "" || l.DisplayName == "" {
			x.r.Says = qwenUnsupported
			x.add(Finding{ID: "choice", Level: Fault, What: c.Candidates[c.Taken].Name + " does not introduce an editor (ideInfo)",
				Why: "without that Qwen Code says nothing and stays unconnected", Remark: "update the companion that wrote it"})
			return
		}
		x.ok("choice", "it takes "+c.Candidates[c.Taken].Name+": "+c.Why)
		return
	}
	x.r.Says = qwenUnsupported
	f := Finding{ID: "choice", Level: Fault, What: "no companion of this folder can be found", Why: "Qwen Code looks once, at its start; /ide enable does not look again",
		Mend: "pollux serve", Remark: "then start Qwen Code; pollux setup qwen --relay lets it find an editor that starts later"}
	if port := qwen.EnvPort(x.w.Getenv); port != 0 {
		f.Details = append(f.Details, fmt.Sprintf("%s names port %d, whose companion serves another folder, or has gone", qwen.PortVariable, port))
	}
	if pid := x.serving(ctx); pid != 0 {
		f.What = fmt.Sprintf("a companion of this folder runs (process %d), but it has no lock file in %s", pid, c.Folder)
		f.Why = "a companion writes one where " + x.r.home + " is there at its start"
		f.Mend, f.Remark = "", "start Qwen Code once, then start the companion again, with the same "+qwen.HomeVariable
	}
	x.add(f)
}

// qwenUnsupported is what Qwen Code says where it has found no editor.
const qwenUnsupported = "IDE integration is not supported in your current environment. To use this feature, run Qwen Code in one of these supported IDEs: VS Code or VS Code forks"

// serving is the process of a companion of pollux's that serves the folder, 0 for none.
func (x *examination) serving(ctx context.Context) (pid int) {
	for _, c := range control.List(ctx, x.o.Run) {
		if slices.ContainsFunc(c.Status.Roots, func(root string) bool { return paths.Within(root, paths.Real(x.r.Dir)) }) {
			pid = c.Status.PID
		}
		c.Close()
	}
	return pid
}

// qwenWays are the ways that Qwen Code tries: the lock that it takes, then the other ports that fit.
func (x *examination) qwenWays(c *qwen.Choice) (ways []client.Way) {
	for i, cand := range c.Candidates {
		l := cand.Lock
		if i < c.Taken || l == nil || !cand.Fits || cand.Dead && i != c.Taken {
			continue
		}
		switch {
		case l.Port != 0:
			ways = append(ways, client.Way{Host: "127.0.0.1", Port: l.Port, Token: l.Token, From: cand.Name})
		case i == c.Taken:
			ways = append(ways, client.Way{Command: l.Stdio.Command, Args: l.Stdio.Args, Dir: x.w.Dir, Env: x.w.Environ, From: cand.Name})
		}
	}
	return ways
}

// qwenMode: whether Qwen Code looks for a companion at all.
func (x *examination) qwenMode() {
	defaults, system := qwen.System(x.w.Getenv)
	on, by := false, ""
	for _, file := range []string{defaults, x.o.Settings, filepath.Join(x.w.Dir, ".qwen", "settings.json"), system} { // each outranks those before it
		said, err := qwen.Program.Get(file, qwen.Enabled)
		if err != nil {
			x.add(Finding{ID: "mode", Level: Fault, What: "the settings cannot be read: " + err.Error(), Remark: "mend it at the place that is named"})
			return
		}
		if said != nil {
			on, by = *said, file
		}
	}
	switch {
	case on:
		x.ok("mode", "IDE mode is on", "by "+by)
	case by == "" || by == x.o.Settings || by == defaults:
		x.add(Finding{ID: "mode", Level: Fault, What: "IDE mode is off in " + x.o.Settings, Why: "without it Qwen Code does not look for an editor", Mend: "pollux setup qwen", fix: fixMode})
	default:
		x.add(Finding{ID: "mode", Level: Fault, What: by + " switches IDE mode off", Why: "it outranks your own settings", Remark: `set "ide": {"enabled": true} in it, or take "ide" out`})
	}
}

// qwenProgram: whether this shell would find Qwen Code.
func (x *examination) qwenProgram() {
	for _, dir := range filepath.SplitList(x.w.Getenv("PATH")) {
		for _, name := range []string{qwen.Command, qwen.Command + ".cmd"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
				x.ok("version", "qwen is "+filepath.Join(dir, name))
				return
			}
		}
	}
	x.add(Finding{ID: "version", Level: Note, What: "qwen is not in PATH", Why: "what is said here holds for release 0.24.4", Mend: "npm install -g @qwen-code/qwen-code"})
}
