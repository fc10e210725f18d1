package sandbox

// A Pool keeps the first processes of sandboxes ready: started in their namespaces and waiting for a policy. A Run
// that takes one saves most of a sandbox's cost; without one it starts its own. Each process serves one command and
// ends with it. All of them die with this process, however it ends.
//
// A Pool is for programs that live long and run tools now and then. A waiting process uses no processor time and
// about one megabyte of unshared memory. Outside Linux a Pool does nothing.
//
// A Pool may serve several Sandboxes; its methods may be called from several goroutines at once.
type Pool struct{ pool }

// NewPool keeps n processes ready, at least one, in the background. Close ends them.
func NewPool(n int) *Pool {
	p := &Pool{}
	p.open(max(n, 1))
	return p
}

// Close ends the waiting processes and returns when they are gone. Running commands continue. It may be called more
// than once.
func (p *Pool) Close() { p.close() }
