package terminal

import (
	"os"
	"testing"
	"time"
)

// TestTerminal: what is typed arrives, what is printed is seen, and the exit
// code is the program's, every time.
func TestTerminal(t *testing.T) {
	for range 5 {
		tm := Start(t, Options{Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm", "GREETING=häl-lo"},
			Args: []string{"sh", "-c", `echo "$GREETING"; read line; echo "got $line"; read end; exit 7`}})
		tm.Wait("häl-lo", time.Minute)
		if tm.PID() == 0 {
			t.Error("no process id")
		}
		tm.Type("wörd -x")
		tm.Keys("Enter")
		tm.Wait("got wörd -x", time.Minute)
		tm.Keys("Enter")
		if code := tm.Exit(time.Minute); code != 7 {
			t.Errorf("exit code %d, want 7", code)
		}
	}
}
