package control

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/pollux-companion/pollux/internal/proc"
)

// ErrFromAgent: a model's shell must not approve the model's own changes, nor open the page in which they are approved (SPEC §11.1).
var ErrFromAgent = errors.New("this was asked from within an agent's own shell, which may not decide about its changes; run it in a terminal of yours")

// maxAncestors bounds the climb from a process to its ancestors.
const maxAncestors = 64

// fromAgent says whether a process is, or was started by, the agent of one of the sessions. It says no where
// the system does not tell; a process that has left its parents is not recognised either.
func fromAgent(pid int, sessions []Session) bool {
	for range maxAncestors {
		if pid <= 1 {
			return false
		}
		if slices.ContainsFunc(sessions, func(s Session) bool { return s.PID == pid }) {
			return true
		}
		info, ok := proc.Lookup(pid)
		if !ok {
			return false
		}
		pid = info.Parent
	}
	return false
}

// inAgent says whether this process runs in Gemini CLI's shell tool, which marks its environment.
func inAgent() bool { return os.Getenv("GEMINI_CLI") == "1" }

// InAgent says whether this process runs in an agent's own shell: as its environment says, or because
// the CLI of a session of one of the companions whose sockets lie in dirs is among its ancestors. What is only
// the user's to answer must not be asked on such a terminal, nor be answered by a flag there.
func InAgent(ctx context.Context, dirs []string) bool {
	if inAgent() {
		return true
	}
	in := false
	for _, c := range List(ctx, dirs) {
		sessions, err := c.Sessions(ctx)
		in = in || err == nil && fromAgent(os.Getpid(), sessions)
		c.Close()
	}
	return in
}
