//go:build !linux

package sandbox

// A pool is nothing where a sandbox needs no process of its own.
type pool struct{}

func (*pool) open(int) {}
func (*pool) close()   {}
