//go:build unix

package editors

import (
	"syscall"
	"testing"
)

// TestRejectionSurvives: what the user typed into a proposal and then rejected is in the history, and the proposal does not come again,
// also where pollux is killed before it has read of either (SPEC F-12, L-3).
func TestRejectionSurvives(t *testing.T) {
	play(t, map[string]func(*testing.T, flavour){"rejected": rejectionSurvives})
}

func rejectionSurvives(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n"}, "a")
	b.offer(a, "a", "new\n")
	b.until("the journal", func() bool { return b.journal("new") })
	b.step("pollux reads nothing any more")
	pid, old := b.companion(), b.stamp()
	b.kill(pid, syscall.SIGSTOP)
	b.jots(1, "unheard")
	b.is(b.proposal("a"), "new|unheard")
	b.reject()
	b.calm("a")
	b.step("pollux is killed, and comes back")
	b.kill(pid, syscall.SIGKILL)
	b.until("another companion", func() bool { return len(b.files()) == 1 && b.stamp() != old && serves(b.file()) })
	b.until("the words in the history", func() bool { return b.history("unheard") })
	b.pending(0)
	b.calm("a")
	b.step("another proposal comes and waits for a decision")
	b.offer(b.connect(), "b", "other\n")
	b.reject()
	b.calm("a")
	b.step("the user leaves")
	b.abandons()
	if code := b.tm.Exit(patience); code != 0 {
		b.Errorf("exit code %d", code)
	}
}

// What the user typed and rejected while pollux read nothing, and was killed, is in the history (SPEC F-12, L-3).
func TestMicroRejectionSurvives(t *testing.T) {
	t.Parallel()
	b, a := user(t, micro(t), map[string]string{"b.txt": "b\n"}, "b.txt")
	b.microShows(a, "b.txt", "other\n")
	b.until("the journal", func() bool { return b.journal("other") })
	pid := b.companion()
	old := b.stamp()
	b.kill(pid, syscall.SIGSTOP)
	b.text("unheard ")
	b.keys("C-q")
	b.off("(proposal)")
	b.kill(pid, syscall.SIGKILL)
	b.until("another companion", func() bool {
		b.keys("Right")
		return len(b.files()) == 1 && b.stamp() != old && serves(b.file())
	})
	b.until("the words in the history", func() bool { return b.history("unheard other") })
	b.pending(0)
}
