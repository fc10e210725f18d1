package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/paths"
)

// troubles reports the problems that pollux's companions of this folder tell of themselves.
func (x *examination) troubles(ctx context.Context) {
	clients, silent := control.ListAll(ctx, x.o.Run)
	silent = slices.DeleteFunc(silent, func(s control.Silent) bool { return !s.Full }) // the others do not answer CLIs either, which is said elsewhere
	if len(silent) > 0 {
		x.add(Finding{ID: "full", Level: Warning, What: control.SilentError(silent).Error(), Why: "pollux's other commands do not reach it"})
	}
	for _, c := range clients {
		if slices.ContainsFunc(c.Status.Roots, func(root string) bool { return paths.Within(root, x.r.Dir) }) {
			for _, t := range c.Status.Troubles {
				x.add(Finding{ID: t.ID, Level: Warning, What: fmt.Sprintf("%s (process %d): %s", c.Status.Editor, c.Status.PID, t.What), Why: t.Why, Remark: t.Do})
			}
		}
		c.Close()
	}
}
