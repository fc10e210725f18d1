package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// signals ask pollux to end: Ctrl-C, Ctrl-Break, and the end of the console.
type signals struct {
	end  chan os.Signal
	pipe chan os.Signal // never gets one
}

func catchSignals() *signals {
	s := &signals{end: make(chan os.Signal, 4)}
	signal.Notify(s.end, os.Interrupt, syscall.SIGTERM)
	return s
}

func (s *signals) stop() { signal.Stop(s.end) }

// pass does nothing: the console tells every process in it.
func (s *signals) pass(*os.Process, os.Signal) {}

func exitCodeOf(ps *os.ProcessState) int { return ps.ExitCode() }
