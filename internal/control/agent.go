package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/proc"
)

// ErrFromAgent: a model's shell must not approve the model's own changes, nor open the page where they are approved (SPEC §11.1).
var ErrFromAgent = errors.New("this was asked from within an agent's own shell, which may not decide about its changes; run it in a terminal of yours (if this is one: pollux doctor)")

// ErrUnknownAgent: an agent is connected whose process is not known. Its shell cannot be told from a person's
// terminal. The error's text says which agent.
var ErrUnknownAgent = errors.New("a connected agent's process is not known")

// knowWithin bounds how long a decision waits until the agents' processes are known.
const knowWithin = 3 * time.Second

// Agents are the agents whose models must not decide.
type Agents struct {
	// Processes are the agents' processes, and their go-betweens' (pollux relay, pollux mcp).
	Processes []proc.Info `json:"processes,omitempty"`
	// Unknown are the labels of the sessions whose process is not known.
	Unknown []string `json:"unknown,omitempty"`
}

// mayDecide returns nil when a process may decide for the user; otherwise ErrFromAgent or an ErrUnknownAgent.
func (a Agents) mayDecide(pid int) error { return a.judge(guard.Look(pid, a.Processes)) }

// judge is mayDecide for a process that was looked at.
func (a Agents) judge(v guard.Verdict) error {
	switch v {
	case guard.Person:
	case guard.Below, guard.Marked:
		return ErrFromAgent
	default:
		return errors.New("the system does not say which process asks this; decide in the editor or on the page")
	}
	if len(a.Unknown) > 0 {
		return fmt.Errorf("%w (%s), so only the editor and a page that is open decide", ErrUnknownAgent, strings.Join(a.Unknown, ", "))
	}
	return nil
}

// inAgent says whether this process, or one above it, carries an agent's mark.
func inAgent() bool {
	return guard.Carries(os.Environ()) || guard.Look(os.Getpid(), nil) == guard.Marked
}

// InAgent says whether MayDecide would refuse this process because of its marks.
func InAgent(ctx context.Context, dirs []string) bool { return MayDecide(ctx, dirs) != nil }

// MayDecide returns nil when this process may decide for the user, at its terminal or by a flag: about changes, and about what
// extensions may do. Otherwise it says why not: the process has an agent's mark; or it runs below the agent of a companion whose
// socket or pointer lies in dirs, as this process or that companion sees it; or such a companion has an agent whose process is not known,
// does not answer, or lives where neither sees the other.
func MayDecide(ctx context.Context, dirs []string) error {
	if inAgent() {
		return ErrFromAgent
	}
	var all Agents
	clients, hidden := listForGuard(ctx, dirs)
	for _, err := range hidden {
		all.Unknown = append(all.Unknown, err.Error())
	}
	fromAgent := false
	for _, c := range clients {
		agents, err := inTime(ctx, c.agents)
		if err != nil { // an older version, or no answer
			agents.Unknown = append(agents.Unknown, fmt.Sprintf("companion %d does not answer", c.Status.PID))
		}
		switch by, err := inTime(ctx, c.judged); { // this process may have hidden its parents from itself, in a namespace of its own
		case by == byAgent:
			fromAgent = true
		case by != byPerson && c.server.PID == 0:
			hidden = append(hidden, errApart)
			agents.Unknown = append(agents.Unknown, fmt.Sprintf("companion %d %v", c.Status.PID, errApart))
		case err != nil: // an older version, or no answer any more
			agents.Unknown = append(agents.Unknown, fmt.Sprintf("companion %d does not say who asks", c.Status.PID))
		}
		all.Processes = append(all.Processes, agents.Processes...)
		all.Unknown = append(all.Unknown, agents.Unknown...)
		c.Close()
	}
	if fromAgent {
		return ErrFromAgent
	}
	err := all.mayDecide(os.Getpid())
	if len(hidden) > 0 && errors.Is(err, ErrUnknownAgent) {
		return silence{err}
	}
	return err
}

// inTime asks a companion something that waits for what it finds out.
func inTime[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, knowWithin+dialTimeout)
	defer cancel()
	return ask(ctx)
}

// errApart: neither sees the other's process.
var errApart = errors.New("runs in another container or namespace of processes; ask in one where it runs")

// silence is an error that is an ErrSilent as well.
type silence struct{ error }

func (s silence) Unwrap() error      { return s.error }
func (silence) Is(target error) bool { return target == ErrSilent }

// orphans are the go-betweens whose agent is not known, as long as they live. The zero value is ready; its methods may be called from any
// goroutine.
type orphans struct{ proc.Set }

// note tells meet of the agent behind a peer that is a go-between. One without an agent becomes an orphan.
func (o *orphans) note(p proc.Info, meet func(...proc.Info)) {
	agents := guard.Behind(p.PID)
	switch {
	case len(agents) == 1, !proc.Same(p.PID, p.Start): // it stands between nobody and pollux, or it was another process that has the number now
	case len(agents) > 1:
		meet(agents...)
	case p.Start != 0:
		o.Add(p)
	}
}

// doubts says why an agent may be there that nobody knows.
func (o *orphans) doubts() (why []string) {
	living, full := o.Living()
	for _, p := range living {
		why = append(why, fmt.Sprintf("process %d, a pollux relay or pollux mcp whose parents have ended", p.PID))
	}
	if full {
		why = append(why, "one of thousands of programs without parents that have connected; start this companion again")
	}
	return why
}
