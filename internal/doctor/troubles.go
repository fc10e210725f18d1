package doctor

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/proc"
)

// troubles reports the problems that pollux's companions of this folder tell of themselves.
func (x *examination) troubles(ctx context.Context) {
	x.brand(os.Getpid(), "this terminal")
	clients, silent := control.ListAll(ctx, x.o.Run)
	silent = slices.DeleteFunc(silent, func(s control.Silent) bool { return !s.Full }) // the others do not answer CLIs either, which is said elsewhere
	if len(silent) > 0 {
		x.add(Finding{ID: "full", Level: Warning, What: control.SilentError(silent).Error(), Why: "pollux's other commands do not reach it"})
	}
	for _, c := range clients {
		if slices.ContainsFunc(c.Status.Roots, func(root string) bool { return paths.Within(root, x.r.Dir) }) {
			x.brand(c.Status.PID, fmt.Sprintf("%s (process %d)", c.Status.Editor, c.Status.PID))
			for _, t := range c.Status.Troubles {
				x.add(Finding{ID: t.ID, Level: Warning, What: fmt.Sprintf("%s (process %d): %s", c.Status.Editor, c.Status.PID, t.What), Why: t.Why, Remark: t.Do})
			}
		}
		c.Close()
	}
}

// brand says that a process counts as an agent's by its limit on file locks: also where the system's administrator has set one for everybody.
func (x *examination) brand(pid int, what string) {
	if proc.Branded(pid) {
		x.add(Finding{
			ID: "brand", Level: Warning, What: what + " counts as an agent's, and decides nothing for you",
			Why:    "its limit on file locks is a number (ulimit -Hx), by which pollux knows agents and all that they have started (SPEC §11.1)",
			Remark: "use a terminal that no agent has started; if every terminal has such a limit, the system sets it, and should not: look for \"locks\" in /etc/security/limits.conf and LimitLOCKS in systemd's settings",
		})
	}
}
