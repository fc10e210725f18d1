package sandbox

// A Pool keeps the first processes of sandboxes ready: started inside their
// namespaces, waiting to be told a policy. A Run that finds one saves most of
// what a sandbox costs; one that finds none starts its own, so that a Pool is
// never a condition for anything. Each process serves one command and is gone
// with it; all of them die with this process, however it ends.
//
// It is for programs that live long and run tools now and then. A process
// that waits uses no processor time and about one megabyte of memory that it
// shares with nobody. Systems other than Linux need nothing of the kind, and
// there a Pool does nothing.
//
// A Pool may serve several Sandboxes; its methods may be called from several
// goroutines at once.
type Pool struct{ pool }

// NewPool starts keeping n processes ready, at least one, in the background.
// Close ends them.
func NewPool(n int) *Pool {
	p := &Pool{}
	p.open(max(n, 1))
	return p
}

// Close ends the processes that wait, and returns when they are gone.
// Commands that are running go on. It may be called more than once.
func (p *Pool) Close() { p.close() }
