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
	for _, c := range control.List(ctx, x.o.Run) {
		if slices.ContainsFunc(c.Status.Roots, func(root string) bool { return paths.Within(root, x.r.Dir) }) {
			for _, t := range c.Status.Troubles {
				x.add(Finding{ID: t.ID, Level: Warning, What: fmt.Sprintf("%s (process %d): %s", c.Status.Editor, c.Status.PID, t.What), Why: t.Why, Remark: t.Do})
			}
		}
		c.Close()
	}
}
