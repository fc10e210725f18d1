//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// signals ask pollux to end.
type signals struct {
	end  chan os.Signal
	pipe chan os.Signal
}

// catchSignals also keeps a closed standard output from killing the process, which would leave its files behind.
// A hangup that was ignored at the start stays so: that is how nohup lets a companion outlive its terminal.
func catchSignals() *signals {
	s := &signals{end: make(chan os.Signal, 4), pipe: make(chan os.Signal, 1)}
	signal.Notify(s.end, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(s.end, syscall.SIGHUP)
	}
	signal.Notify(s.pipe, syscall.SIGPIPE)
	return s
}

func (s *signals) stop() { signal.Stop(s.end); signal.Stop(s.pipe) }

// pass hands a signal on to the command of run. What the terminal sends (Ctrl-C,
// Ctrl-\) has reached it already, as it is in the same process group: twice would mean something else to it.
func (s *signals) pass(p *os.Process, sig os.Signal) {
	if (sig == syscall.SIGINT || sig == syscall.SIGQUIT) && inForeground() {
		return
	}
	_ = p.Signal(sig)
}

// inForeground says whether this process group has the terminal.
func inForeground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// exitCodeOf is a shell's view of how a process ended.
func exitCodeOf(ps *os.ProcessState) int {
	if ws, ok := ps.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ps.ExitCode()
}
