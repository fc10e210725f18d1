//go:build unix

package control

import (
	"errors"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// errNotHanded: the answer came without its socket.
var errNotHanded = errors.New("the keeper has not handed its port on")

// A carrier is a connection that can pass a listening socket beside the bytes (SCM_RIGHTS). Descriptors that nobody asked for are
// closed with it.
type carrier struct {
	*net.UnixConn
	takes bool // descriptors are accepted

	mu  sync.Mutex // guards the below
	out *os.File   // goes with the next bytes
	in  []int      // descriptors that arrived
}

// carry makes a carrier of a connection that dial or listenAt's listener returned.
func carry(conn net.Conn, takes bool) *carrier {
	c, _ := conn.(*net.UnixConn) // checkPeer has seen that it is one
	return &carrier{UnixConn: c, takes: takes}
}

// give sends a file with the next bytes, and closes it here.
func (c *carrier) give(f *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = f
}

// Write implements io.Writer.
func (c *carrier) Write(b []byte) (int, error) {
	c.mu.Lock()
	f := c.out
	c.out = nil
	c.mu.Unlock()
	if f == nil {
		return c.UnixConn.Write(b)
	}
	defer f.Close()
	n, _, err := c.WriteMsgUnix(b, unix.UnixRights(int(f.Fd())), nil)
	if err == nil && n < len(b) {
		var more int
		more, err = c.UnixConn.Write(b[n:])
		n += more
	}
	return n, err
}

// Read implements io.Reader.
func (c *carrier) Read(b []byte) (int, error) {
	if !c.takes {
		return c.UnixConn.Read(b)
	}
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := c.ReadMsgUnix(b, oob)
	if oobn > 0 {
		c.keep(oob[:oobn])
	}
	return max(n, 0), err
}

// take keeps descriptors that arrived.
func (c *carrier) keep(oob []byte) {
	messages, _ := unix.ParseSocketControlMessage(oob)
	for i := range messages {
		fds, _ := unix.ParseUnixRights(&messages[i])
		c.mu.Lock()
		c.in = append(c.in, fds...)
		c.mu.Unlock()
	}
}

// taken returns the listening socket that arrived.
func (c *carrier) taken() (*os.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.in) == 0 {
		return nil, errNotHanded
	}
	f := os.NewFile(uintptr(c.in[0]), "door")
	c.in = c.in[1:]
	return f, nil
}

// drop closes the descriptors that nobody took.
func (c *carrier) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, fd := range c.in {
		_ = unix.Close(fd)
	}
	c.in = nil
}
