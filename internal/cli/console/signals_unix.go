//go:build unix

package console

import (
	"os"
	"os/signal"
	"syscall"
)

// CatchSignals also keeps a closed standard output from killing the process, which would leave its files behind.
// A hangup that was ignored at the start stays so: that is how nohup lets a companion outlive its terminal.
func CatchSignals() *Signals {
	s := &Signals{End: make(chan os.Signal, 4), Pipe: make(chan os.Signal, 1)}
	signal.Notify(s.End, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(s.End, syscall.SIGHUP)
	}
	signal.Notify(s.Pipe, syscall.SIGPIPE)
	return s
}

// Stop lets signals do again what they do by themselves.
func (s *Signals) Stop() { signal.Stop(s.End); signal.Stop(s.Pipe) }
