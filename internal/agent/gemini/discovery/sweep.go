package discovery

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// probeTimeout bounds one request to the port of a file. A companion that takes longer is busy or stopped, not
// gone.
const probeTimeout = time.Second

// oldTemp is the age at which a half-written file counts as abandoned.
const oldTemp = time.Minute

// An answer says who listens on the port of a discovery file.
type answer int

const (
	unsure  answer = iota // a time-out, or anything else
	refused               // nobody listens
	denied                // somebody listens, and does not know the file's token
	served                // somebody listens
)

// A Sweeper removes the discovery files of dead companions (SPEC D-6).
type Sweeper struct {
	Dir string
	// Keep is the path of this companion's own file.
	Keep string
	// OwnPort is the port on which this companion listens, 0 for none. Another process's file with this port was left by a
	// companion that this one took over from.
	OwnPort int

	// For tests; nil asks the system.
	alive func(pid int) bool
	probe func(ctx context.Context, port int, token string) answer
}

// Sweep looks at every file once, and returns the paths that it removed. It waits at
// most a second for each, and stops when ctx ends.
func (s *Sweeper) Sweep(ctx context.Context) []string {
	names, err := readNames(s.Dir)
	if err != nil {
		return nil
	}
	var removed []string
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		path := filepath.Join(s.Dir, name)
		if path == s.Keep || name == RelayFile || !s.dead(ctx, name, path) {
			continue
		}
		if os.Remove(path) == nil {
			removed = append(removed, path)
		}
	}
	return removed
}

// dead says whether a file's companion is certainly gone; in doubt it says no.
func (s *Sweeper) dead(ctx context.Context, name, path string) bool {
	if safefile.IsTemp(name) {
		info, err := os.Lstat(path)
		return err == nil && time.Since(info.ModTime()) > oldTemp
	}
	pid, port, ok := ParseName(name)
	if !ok || port == 0 || pid == os.Getpid() && port == s.OwnPort {
		return false
	}
	data, err := safefile.ReadPrivate(path, maxFile)
	if err != nil {
		return false // another user's, or no discovery file
	}
	var token string
	if f, err := Parse(data); err == nil {
		if f.Stdio != nil && f.Stdio.Command != "" {
			return false // the relay's, which needs no port
		}
		port, token = f.Port, f.Token
	}
	isAlive := s.alive
	if isAlive == nil {
		isAlive = proc.Alive
	}
	living := isAlive(pid)
	if port == s.OwnPort && !living {
		return true // its writer is gone, and this companion has the port now
	}
	if !living {
		token = "" // whoever listens there now has no claim to the token
	}
	probe := s.probe
	if probe == nil {
		probe = probePort
	}
	switch probe(ctx, port, token) {
	case refused:
		return true
	case denied:
		return living
	}
	return false
}

// probePort asks who listens on a loopback port, with a request that opens no session. Without a token it only looks
// whether anybody does. It sends the token only to a process of this user (SPEC A-5).
func probePort(ctx context.Context, port int, token string) answer {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if errors.Is(err, errRefused) {
		return refused
	}
	if err != nil {
		return unsure
	}
	defer conn.Close()
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return served
	}
	switch err := proc.CheckServer(conn); {
	case errors.Is(err, proc.ErrForeign):
		return denied // the listener is no companion of this user
	case err != nil:
		return unsure
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	fmt.Fprintf(conn, "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n", port, token)
	status, err := bufio.NewReaderSize(conn, 256).ReadSlice('\n')
	if err != nil {
		return unsure
	}
	if fields := strings.Fields(string(status)); len(fields) >= 2 && strings.HasPrefix(fields[0], "HTTP/1.") && fields[1] == "401" {
		return denied
	}
	return served
}
