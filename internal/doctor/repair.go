package doctor

import (
	"context"
	"errors"

	"github.com/pollux-companion/pollux/internal/agent/gemini/clisettings"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/agent/qwen"
)

// Repair does what is safe of what a report asks for, and says what it did, a
// line each: it removes files whose companion is surely gone (SPEC D-6), and
// switches IDE mode on in the CLI's settings.
func Repair(ctx context.Context, o Options, r *Report) (done []string, err error) {
	var errs []error
	for _, f := range r.fixes() {
		switch {
		case r.home != "" && f == fixSweep:
			for _, path := range qwen.Sweep(r.home) {
				done = append(done, "removed "+path+", whose companion has gone")
			}
			continue
		case r.home != "" && f == fixMode:
			c, err := qwen.Program.Set(o.Settings, qwen.Switches(), nil)
			if err != nil {
				errs = append(errs, err)
			} else if len(c.Values) > 0 {
				done = append(done, "switched IDE mode on in "+o.Settings)
			}
			continue
		}
		switch f {
		case fixSweep:
			s := discovery.Sweeper{Dir: r.choice.Folder}
			for _, path := range s.Sweep(ctx) {
				done = append(done, "removed "+path+", whose companion has gone")
			}
		case fixMode:
			c, err := clisettings.Program.Set(o.Settings, clisettings.Switches(), nil)
			if err != nil {
				errs = append(errs, err)
			} else if len(c.Values) > 0 {
				done = append(done, "switched IDE mode on in "+o.Settings)
			}
		}
	}
	return done, errors.Join(errs...)
}
