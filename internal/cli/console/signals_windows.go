package console

import (
	"os"
	"os/signal"
	"syscall"
)

// CatchSignals catches Ctrl-C, Ctrl-Break, and the end of the console.
func CatchSignals() *Signals {
	s := &Signals{End: make(chan os.Signal, 4)}
	signal.Notify(s.End, os.Interrupt, syscall.SIGTERM)
	return s
}

// Stop restores the default effect of signals.
func (s *Signals) Stop() { signal.Stop(s.End) }
