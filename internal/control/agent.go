package control

import (
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
