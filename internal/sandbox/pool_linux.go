package sandbox

import (
	"crypto/sha256"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/sandbox/cgroup"
	"github.com/pollux-companion/pollux/internal/sandbox/inside"
)

// A pool is a Pool on Linux.
//
// Goroutines: keep, which starts the processes, from open to close.
type pool struct {
	ready chan *stageProcess // one token for each process that may be started
	want  chan struct{}      // one token for each that may be started
	quit  chan struct{}
	once  sync.Once
	done  chan struct{} // keep has ended
}

// poolRetry is the pause after a process could not be started: the machine is overloaded, or forbids namespaces.
const poolRetry = 30 * time.Second

func (p *pool) open(n int) {
	p.ready, p.want = make(chan *stageProcess, n), make(chan struct{}, n)
	p.quit, p.done = make(chan struct{}), make(chan struct{})
	for range n {
		p.want <- struct{}{}
	}
	go p.keep()
}

// keep starts a process for each token.
func (p *pool) keep() {
	defer close(p.done)
	// The processes die with the thread that started them.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case <-p.quit:
			return
		case <-p.want:
		}
		st, err := startStage(false, cgroup.Parent(), inside.WaitVariable+"=1")
		if err == nil {
			if err = st.awaitHello(); err != nil {
				st.discard()
			}
		}
		if err != nil {
			p.want <- struct{}{}
			select {
			case <-p.quit:
				return
			case <-time.After(poolRetry):
			}
			continue
		}
		st.mounts = mountTable()
		p.ready <- st // never blocks: there are as many tokens as places
	}
}

// take returns a waiting process, or nil if there is none. The next one is started once its user calls begun.
func (p *pool) take() *stageProcess {
	for {
		select {
		case st := <-p.ready:
			st.begun = sync.OnceFunc(func() { p.want <- struct{}{} })
			// The process has the mounts from when it was started. Later mounts reach it on most machines, but not on
			// all.
			if st.alive() && st.mounts == mountTable() {
				return st
			}
			st.discard()
			st.begun()
		default:
			return nil
		}
	}
}

func (p *pool) close() {
	p.once.Do(func() { close(p.quit) })
	<-p.done
	for {
		select {
		case st := <-p.ready:
			st.discard()
		default:
			return
		}
	}
}

// mountTable identifies the current mounts. If they are unknown, the result differs every time, so no waiting process
// is used.
func mountTable() [sha256.Size]byte {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return sha256.Sum256([]byte(time.Now().String()))
	}
	return sha256.Sum256(data)
}
