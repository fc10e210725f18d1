//go:build unix

package conform

import (
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/client/clienttest"
)

// asCompanion as the first argument makes this test binary a companion, with the fault that the second argument
// names.
const asCompanion = "companion"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asCompanion {
		os.Exit(companion(os.Args[2]))
	}
	os.Exit(m.Run())
}

// A processFault is a fault of a companion that conform starts.
type processFault struct {
	caught string
	args   []string
}

func processFaults() map[string]processFault {
	return map[string]processFault{
		"files of the dead stay":               {caught: "D-6/files of the dead"},
		"its file stays":                       {caught: "D-5/file removed"},
		"the end waits for streams":            {caught: "L-1/the end"},
		"the file outlives a slow end":         {caught: "D-5/file removed"},
		"open diffs are forgotten at the end":  {caught: "L-1/open diffs are rejected"},
		"the token is printed":                 {caught: "A-1/token not printed"},
		"the token is an argument":             {caught: "A-1/token not in arguments", args: []string{clienttest.DefaultToken}},
		"the file names a process that is not": {caught: "D-2/process"},
	}
}

// companion runs a complete companion in the working folder, with the named fault.
func companion(name string) int {
	o := clienttest.Options{Base: os.Getenv("TMPDIR")}
	if name == "the file names a process that is not" {
		o.PID = 4_190_001
	}
	if name != "files of the dead stay" {
		left, _ := filepath.Glob(filepath.Join(o.Base, "gemini", "ide", "*.json"))
		for _, file := range left {
			_ = os.Remove(file)
		}
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	if name == "the token is printed" { // before it is found, after which it may be ended at any time
		_, _ = io.WriteString(os.Stdout, "token "+clienttest.DefaultToken+"\n")
	}
	c, err := clienttest.Start(o)
	if err != nil {
		return 1
	}
	<-end
	switch name {
	case "its file stays":
		c.Registry.Shut()
		return 0
	case "the end waits for streams", "the file outlives a slow end":
		c.Registry.Shut()
		time.Sleep(endWithin + time.Second) // longer than conform waits
	case "open diffs are forgotten at the end":
		_ = os.Remove(c.File)
		return 0
	}
	_ = c.Stop()
	return 0
}

// trySelf runs the checks whose names begin with only, against this binary as the companion.
func trySelf(t *testing.T, only string, args ...string) []Check {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	target, err := Start(t.Context(), append([]string{self, asCompanion}, args...), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Command.End()
	target.Only, target.Wait = only, 60*time.Second
	if args[0] == "none" {
		target.End = 60 * time.Second // timing does not matter here
	}
	all, err := Run(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("no check begins with %s", only)
	}
	return all
}

// Faults at a companion's start and end are caught, and a correct companion passes.
func TestSeededProcessFaults(t *testing.T) {
	t.Parallel()
	var tests sync.WaitGroup
	room := make(chan struct{}, 4)
	try := func(name string, f processFault, result Result, args ...string) {
		tests.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			t.Run(name, func(t *testing.T) {
				for _, c := range trySelf(t, f.caught, args...) {
					if c.Result != result || (c.Evidence == "") == (result == Fail) || strings.Contains(c.Evidence, clienttest.DefaultToken) {
						t.Errorf("it should %s: %+v", result, c)
					}
				}
			})
		})
	}
	for name, f := range processFaults() {
		try(name, f, Fail, append([]string{name}, f.args...)...)
		try("without: "+name, f, Pass, "none")
	}
	tests.Wait()
}
