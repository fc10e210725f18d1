//go:build unix

package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/ended"
	"github.com/pollux-companion/pollux/internal/proc"
)

// asked sends one request without parameters, and returns the answer.
func asked(t *testing.T, conn net.Conn, method string) string {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{}}`+"\n", method); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	var answer json.RawMessage
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return string(answer)
}

// SPEC §11.1: a connection is its maker's. When that process has ended, nothing is decided by it, whoever holds it and whichever program has
// the process's number by then.
func TestMakerEnded(t *testing.T) {
	for name, method := range map[string]string{"decides": methodPage, "takes over": methodStop, "lends": methodLend} {
		t.Run(name, func(t *testing.T) {
			f := &fake{reviewed: newReviewed(), over: func() {}}
			s := listen(t, []string{shortDir(t)}, f)
			conn, maker, end := ended.Connect(t, s.Path())
			if said := asked(t, conn, methodPage); strings.Contains(said, "error") {
				t.Fatalf("a person's process: %s", said)
			}
			end()
			if said := asked(t, conn, method); !strings.Contains(said, "error") {
				t.Errorf("its process has ended: %s", said)
			}
			if !ended.Reuse(t, maker) {
				return
			}
			if said := asked(t, conn, method); !strings.Contains(said, "error") {
				t.Errorf("another process has its number: %s", said)
			}
		})
	}
}

// The same where a test cannot choose a process's number.
func TestMakersNumberIsReused(t *testing.T) {
	us, ok := proc.Lookup(os.Getpid())
	if !ok {
		t.Fatal("the system tells nothing of processes")
	}
	f := &fake{reviewed: newReviewed()}
	p := &peer{b: f, from: us, orphans: &orphans{}}
	if err := p.trusted(t.Context(), false); err != nil {
		t.Errorf("this process: %v", err)
	}
	p.from.Start--
	if err := p.trusted(t.Context(), false); err == nil {
		t.Error("a process that had this one's number decides")
	}
	if err := p.person(t.Context(), false); err == nil {
		t.Error("a process that had this one's number takes over")
	}
	var o orphans
	if o.note(p.from, f.Meet); len(f.met.All())+len(o.doubts()) > 0 {
		t.Errorf("what is behind this process counts for one that had its number: %v, %v", f.met.All(), o.doubts())
	}
}

// A connection whose maker has ended before it is accepted is closed.
func TestMakerEndedAtOnce(t *testing.T) {
	s := listen(t, []string{shortDir(t)}, &fake{reviewed: newReviewed()})
	ln, err := net.Listen("unix", s.Path()+".x")
	if err != nil {
		t.Fatal(err)
	}
	conn, _, end := ended.Connect(t, s.Path()+".x")
	end()
	slow := &Server{backend: s.backend, log: s.log, ln: ln, conns: map[net.Conn]struct{}{}}
	slow.done.Go(slow.accept)
	t.Cleanup(slow.Close)
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if n, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it stays open: %d bytes, %v", n, err)
	}
}
