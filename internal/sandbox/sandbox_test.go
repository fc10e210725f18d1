package sandbox

import (
	"fmt"
	"os"
	"testing"
)

// TestMain lets the test binary be pollux itself, and a probe: a program that
// tries one way out of a sandbox.
func TestMain(m *testing.M) {
	Reexec()
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // hundreds of short processes
	if len(os.Args) == 3 && os.Args[1] == "-probe" {
		os.Exit(runProbe(os.Args[2]))
	}
	if len(os.Args) == 3 && os.Args[1] == "-nested" {
		os.Exit(runNested(os.Args[2]))
	}
	if len(os.Args) == 3 && os.Args[1] == "-victim" {
		os.Exit(runVictim(os.Args[2]))
	}
	os.Exit(m.Run())
}

// The exit codes of a probe.
const (
	probeOut     = 0 // it got out
	probeHeld    = 10
	probeUnknown = 11
)

// runProbe tries one way out.
func runProbe(name string) int {
	for _, p := range probes() {
		if p.name != name {
			continue
		}
		if err := p.try(); err != nil {
			fmt.Println(err)
			return probeHeld
		}
		return probeOut
	}
	return probeUnknown
}

// A probe is one way out of a sandbox.
type probe struct {
	name string
	// try returns nil when it got out.
	try func() error
	// outside says that it is harmless without a sandbox and must succeed
	// there, so that its failure inside means something.
	outside proof
}

// proof says for whom a probe succeeds without a sandbox.
type proof int

const (
	forAll proof = iota
	forRoot
	forNobody // harmful, or not offered by every kernel
)
