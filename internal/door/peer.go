package door

import (
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/proc"
)

// strangersEvery is how often the log tells of connections that OwnUser has closed.
const strangersEvery = time.Minute

// OwnUser returns l without the connections of other users. Accept returns connections of this user or of root; it closes every other
// connection before it reads a byte, whatever token that brings (SPEC A-5). l must be on loopback. Where proc.TellsPeers
// fails, everybody is let in. log gets a summary of closed connections, once a minute.
func OwnUser(l net.Listener, log *slog.Logger) net.Listener {
	o := &ownUser{Listener: l, log: log, check: proc.CheckPeer}
	if err := proc.TellsPeers(); err != nil {
		o.check = nil
		log.Warn("connections of other users cannot be told apart", "err", err)
	}
	return o
}

type ownUser struct {
	net.Listener
	log   *slog.Logger
	check func(net.Conn) error // nil admits everybody

	mu     sync.Mutex // guards what follows
	logged time.Time
	closed int // how many since then
}

// Accept waits for the next connection of this user or of root.
func (o *ownUser) Accept() (net.Conn, error) {
	for {
		conn, err := o.Listener.Accept()
		if err != nil || o.check == nil {
			return conn, err
		}
		if err = o.check(conn); err == nil {
			return conn, nil
		}
		_ = conn.Close()
		o.note(err)
	}
}

func (o *ownUser) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed++
	if now := time.Now(); now.Sub(o.logged) >= strangersEvery {
		o.log.Warn("closed connections that are not this user's", "address", o.Addr(), "number", o.closed, "last", err)
		o.logged, o.closed = now, 0
	}
}
