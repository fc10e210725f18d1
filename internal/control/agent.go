package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/proc"
)

// ErrFromAgent: a model's shell must not approve the model's own changes, nor open the page in which they are approved (SPEC §11.1).
var ErrFromAgent = errors.New("this was asked from within an agent's own shell, which may not decide about its changes; run it in a terminal of yours")

// ErrUnknownAgent: an agent is connected whose process is not known, so that its shell cannot be told from a person's
// terminal. The text of the error says which.
var ErrUnknownAgent = errors.New("the process is not known of an agent that is connected")

// knowWithin bounds how long a decision waits until the processes of the agents are known.
const knowWithin = 3 * time.Second

// maxAgents bounds the agents that a companion remembers by their go-betweens.
const maxAgents = 256

// Agents are those whose models must not decide.
type Agents struct {
	// Processes are theirs, and those of their go-betweens (pollux relay, pollux mcp).
	Processes []proc.Info `json:"processes,omitempty"`
	// Unknown are the sessions whose process is not known, by their labels.
	Unknown []string `json:"unknown,omitempty"`
}

// MayDecide says whether a process may decide for the user: nil, ErrFromAgent or an ErrUnknownAgent.
func (a Agents) MayDecide(pid int) error {
	switch guard.Look(pid, a.Processes) {
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

// inAgent says whether this process carries an agent's mark, or one above it does.
func inAgent() bool {
	return guard.Carries(os.Environ()) || guard.Look(os.Getpid(), nil) == guard.Marked
}

// InAgent says that MayDecide refuses this process.
func InAgent(ctx context.Context, dirs []string) bool { return MayDecide(ctx, dirs) != nil }

// MayDecide says whether this process may decide for the user, at its terminal or by a flag: about changes, and about what
// extensions may do. It is nil, or says why not: the process has an agent's mark, or is below the agent of
// one of the companions whose sockets lie in dirs, or one of those has an agent whose process is not known.
func MayDecide(ctx context.Context, dirs []string) error {
	if inAgent() {
		return ErrFromAgent
	}
	var all Agents
	clients, silent := ListAll(ctx, dirs)
	for _, pid := range silent { // an agent may have stopped it, so that nobody knows that agent
		all.Unknown = append(all.Unknown, fmt.Sprintf("companion %d does not answer; take it up again: kill -CONT %d", pid, pid))
	}
	for _, c := range clients {
		limited, cancel := context.WithTimeout(ctx, knowWithin+dialTimeout)
		agents, err := c.Agents(limited)
		cancel()
		if err != nil { // an older one, or one that does not answer
			agents.Unknown = append(agents.Unknown, fmt.Sprintf("companion %d does not answer", c.Status.PID))
		}
		all.Processes = append(all.Processes, agents.Processes...)
		all.Unknown = append(all.Unknown, agents.Unknown...)
		c.Close()
	}
	return all.MayDecide(os.Getpid())
}

// between remembers the agents whose go-betweens have connected, for as long as they live. The zero value is ready; its
// methods may be called from any goroutine.
type between struct {
	mu   sync.Mutex // guards the below
	seen []proc.Info
}

// note looks whether a peer is a go-between.
func (b *between) note(pid int) {
	agents := guard.Behind(pid)
	if len(agents) < 2 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prune()
	for _, p := range agents {
		if !slices.ContainsFunc(b.seen, func(old proc.Info) bool { return old.PID == p.PID }) {
			b.seen = append(b.seen, p)
		}
	}
	b.seen = b.seen[max(0, len(b.seen)-maxAgents):]
}

func (b *between) list() []proc.Info {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prune()
	return slices.Clone(b.seen)
}

// prune forgets the dead. The caller holds mu.
func (b *between) prune() {
	b.seen = slices.DeleteFunc(b.seen, func(p proc.Info) bool { return !proc.Same(p.PID, p.Start) })
}
