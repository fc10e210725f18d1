package extensions

import (
	"os"
	"syscall"
)

// peakMB is a finished process's largest resident memory in MB.
func peakMB(p *os.ProcessState) float64 {
	if u, ok := p.SysUsage().(*syscall.Rusage); ok {
		return float64(u.Maxrss) / 1024
	}
	return 0
}
