// Package proc answers questions about processes: does one live, is it still
// the same, who started it, what is it called, which one holds the other end
// of a connection, and when does the parent end; and it finds the programs that
// pollux starts of its own accord.
package proc

import (
	"context"
	"errors"
	"os"
	"time"
)

// pollEvery bounds how late the end of a process is noticed where the system
// does not tell (SPEC L-2 allows a second).
const pollEvery = 250 * time.Millisecond

// A Stamp tells two processes that had the same PID one after the other
// apart. It is opaque, comparable, and means something on this machine until it restarts; 0 is unknown.
type Stamp uint64

// An Info is what is known about one process; zero fields are unknown.
type Info struct {
	PID    int `json:"pid"`
	Parent int `json:"-"`
	// Name is the program's short name, as ps -o comm shows it, possibly cut by the system.
	Name  string `json:"name,omitempty"`
	Start Stamp  `json:"start,omitempty"`
}

// Alive says whether a process with this PID exists, also one of another
// user's. A process that has ended but was not waited for counts as alive.
func Alive(pid int) bool { return pid > 0 && alive(pid) }

// Lookup returns what is known about a process; ok is false when it does not
// exist or the system does not say.
func Lookup(pid int) (info Info, ok bool) {
	if pid <= 0 {
		return Info{}, false
	}
	return lookup(pid)
}

// Same says whether pid is alive and, as far as the system tells, the process that had start.
func Same(pid int, start Stamp) bool {
	if !Alive(pid) {
		return false
	}
	info, ok := Lookup(pid)
	return !ok || start == 0 || info.Start == 0 || info.Start == start
}

// Self is the Stamp of this process.
func Self() Stamp {
	info, _ := Lookup(os.Getpid())
	return info.Start
}

// WaitParent returns nil as soon as (250 ms at the latest) the process that
// started this one has ended, or ctx's error when ctx ends first. parent is its PID, taken by
// os.Getppid when this program started, so that a parent that ended before the call is noticed.
func WaitParent(ctx context.Context, parent int) error {
	if os.Getppid() != parent {
		return nil
	}
	return wait(ctx, parent, func() bool { return os.Getppid() == parent })
}

// Wait returns nil as soon as (250 ms at the latest) a process that Lookup has found has ended, or ctx's error when
// ctx ends first.
func Wait(ctx context.Context, process Info) error {
	return wait(ctx, process.PID, func() bool { return Same(process.PID, process.Start) })
}

// wait waits by the system's own word where it gives one: without a timer. lives says whether the process still
// has this PID.
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
