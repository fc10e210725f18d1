package sandbox

import (
	"os"
	"testing"

	"github.com/pollux-companion/pollux/internal/sandbox/escapes"
)

// TestMain lets the test binary act as pollux itself, and as a probe, which tries one escape.
func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // hundreds of short processes
	escapes.Probe()
	if len(os.Args) == 3 && os.Args[1] == "-nested" {
		os.Exit(runNested(os.Args[2]))
	}
	if len(os.Args) == 3 && os.Args[1] == "-victim" {
		os.Exit(runVictim(os.Args[2]))
	}
	os.Exit(m.Run())
}
