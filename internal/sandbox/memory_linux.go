package sandbox

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"time"
)

const (
	memoryInterval = 25 * time.Millisecond
	// memoryWork bounds how much of the time watching may take: with many
	// processes the samples come less often.
	memoryWork = 20
	// memoryLatest bounds that again: a machine that is busy with something
	// else makes a sample slow, and must not make it the last.
	memoryLatest = 250 * time.Millisecond
)

// watchMemory samples what all processes of a sandbox hold, through its own
// /proc, and ends it above the limit. Pages that processes share count for
// each, so a sum above the limit is confirmed by one that divides them.
func (r *run) watchMemory(ctx context.Context, proc *os.File) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer proc.Close()
		timer := time.NewTimer(memoryInterval)
		defer timer.Stop()
		root, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(int(proc.Fd())))
		if err != nil {
			r.kill(&SetupError{Phase: "limits", Cause: "memory cannot be watched: " + err.Error(), Fix: remedy("limits", 0)})
			return
		}
		defer root.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			begun := time.Now()
			if held := r.memory(root); held > r.c.Limits.Memory {
				r.kill(&LimitError{Kind: limitMemory, Limit: r.c.Limits.Memory})
				return
			}
			timer.Reset(min(max(memoryInterval, memoryWork*time.Since(begun)), memoryLatest))
		}
	}()
	return func() { cancel(); <-done }
}

// memory is what all processes hold, in bytes.
func (r *run) memory(proc *os.Root) int64 {
	dir, err := proc.Open(".")
	if err != nil {
		return 0
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // those of processes that end meanwhile are missing
	var pids []string
	var sum int64
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' || name == "1" {
			continue
		}
		pids = append(pids, name)
		sum += resident(proc, name)
	}
	if sum <= r.c.Limits.Memory {
		return sum
	}
	return proportional(proc, pids)
}

// resident is the second number of statm, in pages.
func resident(proc *os.Root, pid string) int64 {
	data, err := proc.ReadFile(pid + "/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// proportional sums the shares of processes, which is slow for large ones.
func proportional(proc *os.Root, pids []string) int64 {
	var sum int64
	for _, pid := range pids {
		data, err := proc.ReadFile(pid + "/smaps_rollup")
		if err != nil {
			continue
		}
		for line := range bytes.Lines(data) {
			if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
				n, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte(" kB"))), 10, 64)
				if err == nil {
					sum += n * kib
				}
			}
		}
	}
	return sum
}
