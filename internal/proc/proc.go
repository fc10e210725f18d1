// Package proc answers questions about processes: whether one lives and is still the same, who started it, its
// command, which one holds the other end of a connection, and when the parent ends. It also finds the programs that
// pollux starts by itself.
package proc

import (
	"context"
	"errors"
	"os"
	"time"
)

// pollEvery bounds the delay until the end of a process is noticed if the system sends no event (SPEC L-2 allows a
// second).
const pollEvery = 250 * time.Millisecond

// A Stamp distinguishes processes that have had the same PID. It is opaque, comparable, and valid on this machine
// until it restarts; 0 is unknown.
type Stamp uint64

// An Info is what is known about one process; zero fields are unknown.
type Info struct {
	PID    int `json:"pid"`
	Parent int `json:"-"`
	// Name is the program's short name, as ps -o comm shows it, possibly cut by the system.
	Name  string `json:"name,omitempty"`
	Start Stamp  `json:"start,omitempty"`
}

// Alive reports whether a process with this PID exists, including other users'. A process that has ended but was not
// waited for counts as alive.
func Alive(pid int) bool { return pid > 0 && alive(pid) }

// Lookup returns what is known about a process; ok is false if it does not exist or the system hides it.
func Lookup(pid int) (info Info, ok bool) {
	if pid <= 0 {
		return Info{}, false
	}
	return lookup(pid)
}

// Same reports whether pid is alive and, as far as the system tells, is the process with the stamp start.
func Same(pid int, start Stamp) bool {
	if !Alive(pid) {
		return false
	}
	info, ok := Lookup(pid)
	return !ok || start == 0 || info.Start == 0 || info.Start == start
}

// Self returns the Stamp of this process.
func Self() Stamp {
	info, _ := Lookup(os.Getpid())
	return info.Start
}

// WaitParent returns nil within 250 ms after the process that started this one has ended, or ctx's error if ctx ends
// first. parent is its PID, read with os.Getppid when this program started, so that a parent that ended before the
// call is noticed.
func WaitParent(ctx context.Context, parent int) error {
	if os.Getppid() != parent {
		return nil
	}
	return wait(ctx, parent, func() bool { return os.Getppid() == parent })
}

// Wait returns nil within 250 ms after a process found by Lookup has ended, or ctx's error if ctx ends first.
func Wait(ctx context.Context, process Info) error {
	return wait(ctx, process.PID, func() bool { return Same(process.PID, process.Start) })
}

// wait uses the system's events if there are any, which needs no timer. lives reports whether the process still has
// this PID.
func wait(ctx context.Context, pid int, lives func() bool) error {
	if err := waitEvent(ctx, pid, lives); !errors.Is(err, errNoEvents) {
		return err
	}
	return poll(ctx, func() bool { return !lives() })
}

func poll(ctx context.Context, ended func() bool) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if ended() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
