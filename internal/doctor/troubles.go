package doctor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/proc"
)

// troubles reports the problems that pollux's companions of this folder tell of themselves.
func (x *examination) troubles(ctx context.Context) {
	x.person(os.Getpid(), "this terminal")
	clients, silent := control.ListAll(ctx, x.o.Run)
	silent = slices.DeleteFunc(silent, func(s control.Silent) bool { return !s.Full }) // the others do not answer CLIs either, which is said elsewhere
	if len(silent) > 0 {
		x.add(Finding{ID: "full", Level: Warning, What: control.SilentError(silent).Error(), Why: "pollux's other commands do not reach it"})
	}
	for _, c := range clients {
		if slices.ContainsFunc(c.Status.Roots, func(root string) bool { return paths.Within(root, x.r.Dir) }) {
			who := fmt.Sprintf("%s (process %d)", c.Status.Editor, c.Status.PID)
			for _, t := range c.Status.Troubles {
				x.add(Finding{ID: t.ID, Level: Warning, What: who + ": " + t.What, Why: t.Why, Remark: t.Do})
			}
			x.share(who, c.Status.Shares)
		}
		c.Close()
	}
}

// share says that the user has decided to tell the agent nothing, which otherwise looks like a fault.
func (x *examination) share(who string, shares []control.Share) {
	name := cmp.Or(x.o.Agent.Name, agent.Default)
	i := slices.IndexFunc(shares, func(s control.Share) bool { return s.Agent == name })
	if i < 0 {
		return
	}
	why := map[string]string{
		"never": "is told nothing of what you look at, as you decided",
		"ask":   "is told nothing of what you look at until you have agreed",
		"leave": "does not find this companion, as you decided",
	}[shares[i].Mode]
	if why != "" {
		x.add(Finding{
			ID: "share", Level: Warning, What: fmt.Sprintf("%s: %s %s", who, shares[i].Label, why), Why: "pollux share says: " + shares[i].Mode,
			Mend: "pollux share " + name + " always",
		})
	}
}

// person says why a process counts as an agent's: by its limit on file locks, also where the system's administrator has set one for everybody,
// or by a mark.
func (x *examination) person(pid int, what string) {
	var why, do string
	switch {
	case proc.Branded(pid):
		why = "its limit on file locks is a number (ulimit -Hx), by which pollux knows agents and all that they have started"
		do = "if every terminal has such a limit, the system sets it, and should not: look for \"locks\" in /etc/security/limits.conf and LimitLOCKS in systemd's settings"
	case guard.Look(pid, nil) == guard.Marked:
		why = "its environment, or that of a program above it, has a variable that agents set: " + strings.Join(marks(), ", ")
		do = "if every terminal has one, look for it in your shell's files"
	default:
		return
	}
	x.add(Finding{
		ID: "brand", Level: Warning, What: what + " counts as an agent's, and decides nothing for you",
		Why: why + " (SPEC §11.1)", Remark: "use a terminal that no agent has started; " + do,
	})
}

// marks names the variables.
func marks() (names []string) {
	for _, m := range guard.Marks() {
		names = append(names, m.Name)
	}
	return names
}
