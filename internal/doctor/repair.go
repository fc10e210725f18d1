package doctor

import (
	"context"
	"errors"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
)

// Repair does the safe repairs that a report asks for, and returns what it did, a line
// each. It removes files whose companion is certainly gone (SPEC D-6), and switches IDE
// mode on in the agent's settings.
func Repair(ctx context.Context, o Options, r *Report) (done []string, err error) {
	var errs []error
	for _, f := range r.fixes() {
		switch f {
		case fixNone:
		case fixSweep:
			for _, path := range sweep(ctx, o, r) {
				done = append(done, "removed "+path+", whose companion has gone")
			}
		case fixMode:
			c, err := o.Agent.Settings.Program.Set(o.Settings, o.Agent.Settings.Switches, nil)
			if err != nil {
				errs = append(errs, err)
			} else if len(c.Values) > 0 {
				done = append(done, "switched IDE mode on in "+o.Settings)
			}
		}
	}
	return done, errors.Join(errs...)
}

func sweep(ctx context.Context, o Options, r *Report) (removed []string) {
	if o.Agent.Locks != nil {
		return o.Agent.Locks.Sweep(r.home)
	}
	s := discovery.Sweeper{Dir: r.choice.Folder}
	return s.Sweep(ctx)
}
