package control

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// inNamespace runs this program in a namespace of processes of its own, where it sees no parents, and returns what it says of itself.
func inNamespace(t *testing.T, dir string) (said string, ok bool) {
	t.Helper()
	cmd := exec.Command("unshare", "-Urpf", "--mount-proc", os.Args[0])
	cmd.Env = append(os.Environ(), "POLLUX_TEST_DECIDE="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("this system lets nobody make a namespace: %v, %s", err, out)
		return "", false
	}
	return string(out), true
}

// SPEC §11.1: a process that hides its parents from itself is known by the companion, which sees them; one that hides so from a companion
// that cannot see it either decides nothing.
func TestNamespace(t *testing.T) {
	for agent, says := range map[int]string{os.Getpid(): ErrFromAgent.Error(), 0: "<nil>"} {
		s := listen(t, []string{shortDir(t)}, &fake{reviewed: newReviewed(), agent: agent})
		if said, ok := inNamespace(t, filepath.Dir(s.Path())); ok && !strings.Contains(said, says) {
			t.Errorf("the agent is process %d: %s", agent, said)
		}
	}
}
