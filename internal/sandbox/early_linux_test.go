package sandbox

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/sandbox/inside"
)

// TestEarly: the first process takes over before the program's other packages are initialised. This test program
// imports large packages (net, encoding/json); the process ends before their initialisation.
func TestEarly(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Env = []string{inside.Name}, []string{"GODEBUG=inittrace=1"}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 125 { // it got no setup
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "init syscall @") {
		t.Fatalf("no initialiser is named:\n%s", out)
	}
	for _, late := range []string{"reflect", "unicode", "encoding/json", "golang.org/x/sys/unix", "net", "fmt", "testing", "os/exec"} {
		if strings.Contains(string(out), "init "+late) {
			t.Errorf("%s is initialised first:\n%s", late, out)
		}
	}
}
