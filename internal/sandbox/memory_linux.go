package sandbox

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox/inside"
)

const (
	// diskSamples is how many memory samples are taken for each sample of disk writes.
	diskSamples = 8
	// networkSocket is the most that an internet socket holds, in bytes. system sets the limits of its buffers.
	networkSocket  = 2 * inside.TCPBuffer
	memoryInterval = 25 * time.Millisecond
	// memoryWork bounds the time spent on sampling to one part in this many: with many processes, samples are less
	// frequent.
	memoryWork = 20
	// memoryLatest bounds the pause between samples, or a slow sample on a busy machine would stop the watching.
	memoryLatest = 250 * time.Millisecond
	// memorySoonest is the shortest pause, while memory grows towards the limit; then sampling may take one part in
	// memoryHurry of the time.
	memorySoonest = 2 * time.Millisecond
	memoryHurry   = 5
)

// nextSample returns the pause before the next memory sample: half of the time until the limit at the present pace of
// growth, where that is shorter than usual. before is the sample taken since ago; took is the cost of a sample.
func nextSample(limit, before, held int64, since, took time.Duration) time.Duration {
	usual := min(max(memoryInterval, memoryWork*took), memoryLatest)
	if held <= before {
		return usual
	}
	left := time.Duration(float64(since) * float64(limit-held) / float64(held-before))
	return min(usual, max(left/2, memorySoonest, memoryHurry*took))
}

// watchMemory samples the memory of all processes of a sandbox, through its own /proc, and ends the sandbox above the
// limit. Shared pages count for each process, so a sum above the limit is confirmed with a slower one that divides
// them. If the policy allows writing, it also samples what they wrote to disks.
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
		var before int64
		last := time.Now()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			begun := time.Now()
			held := r.memory(root)
			if held > r.c.Limits.Memory {
				r.kill(&LimitError{Kind: limitMemory, Limit: r.c.Limits.Memory})
				return
			}
			if r.policy.Write > permission.None && n%diskSamples == 0 && written(root) > r.c.Limits.Disk {
				r.kill(&LimitError{Kind: limitDisk, Limit: r.c.Limits.Disk})
				return
			}
			timer.Reset(nextSample(r.c.Limits.Memory, before, held, begun.Sub(last), time.Since(begun)))
			before, last = held, begun
		}
	}()
	return func() { cancel(); <-done }
}

// memory returns what all processes hold, in bytes.
func (r *run) memory(proc *os.Root) int64 {
	pids := processes(proc)
	buffers := r.buffers(proc)
	sum := buffers
	for _, pid := range pids {
		sum += resident(proc, pid)
	}
	if sum <= r.c.Limits.Memory {
		return sum
	}
	return buffers + proportional(proc, pids)
}

// processes lists all process numbers inside, except the first process, which is pollux's.
func processes(proc *os.Root) (pids []string) {
	dir, err := proc.Open(".")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // processes that end meanwhile may be missing
	for _, name := range names {
		if name[0] >= '1' && name[0] <= '9' && name != "1" {
			pids = append(pids, name)
		}
	}
	return pids
}

// buffers returns the most that all socket buffers inside can hold, in bytes. Buffers belong to no process. A socket
// in transit inside another socket's buffer is in no process's file list either, but the kernel's count includes it.
func (r *run) buffers(proc *os.Root) int64 {
	if r.setup.Reduced {
		return 0 // the count would cover the whole machine
	}
	data, err := proc.ReadFile("1/net/sockstat")
	if err != nil {
		return 0 // the first process is ending
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	n, err := strconv.ParseInt(string(bytes.TrimPrefix(line, []byte("sockets: used "))), 10, 64)
	if err != nil {
		return 0
	}
	if r.setup.Net != nil {
		return n * networkSocket
	}
	return n * socketBuffer()
}

// socketBuffer returns the most that one end of a socket pair holds, in bytes. The filter keeps programs from asking
// for more.
var socketBuffer = sync.OnceValue(func() int64 {
	data, err := os.ReadFile("/proc/sys/net/core/wmem_default")
	n, parseErr := strconv.ParseInt(string(bytes.TrimSpace(data)), 10, 64)
	if err != nil || parseErr != nil {
		return 256 * kib
	}
	return n + 32*kib // the last message may exceed it
})

// written returns what the processes inside wrote to disks, in bytes: living ones with the children that they waited
// for, and the first process with its orphans.
func written(proc *os.Root) (sum int64) {
	for _, pid := range append(processes(proc), "1") {
		data, err := proc.ReadFile(pid + "/io")
		if err != nil {
			continue
		}
		for line := range bytes.Lines(data) {
			if rest, ok := bytes.CutPrefix(line, []byte("write_bytes: ")); ok {
				n, err := strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64)
				if err == nil {
					sum += n
				}
			}
		}
	}
	return sum
}

// resident returns a process's resident memory in bytes, the second number of statm.
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

// proportional adds up the proportional shares of processes. That is slow for large ones.
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
