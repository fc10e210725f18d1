//go:build unix

package console

import (
	"os"
	"os/signal"
	"syscall"
)

// CatchSignals also survives a closed standard output, which would otherwise kill the process and leave its files
// behind. A hangup that was ignored at the start stays ignored: that is how nohup lets a companion outlive its
// terminal.
func CatchSignals() *Signals {
	s := &Signals{End: make(chan os.Signal, 4), Pipe: make(chan os.Signal, 1)}
	signal.Notify(s.End, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(s.End, syscall.SIGHUP)
	}
	signal.Notify(s.Pipe, syscall.SIGPIPE)
	return s
}

// Stop restores the default effect of signals.
func (s *Signals) Stop() { signal.Stop(s.End); signal.Stop(s.Pipe) }
