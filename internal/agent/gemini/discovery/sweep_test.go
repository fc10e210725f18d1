package discovery

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/usertest"
)

// SPEC D-6: which discovery files are swept, and which stay.
func TestSweepD6(t *testing.T) {
	tests := []struct {
		name  string // of the file; the default when ""
		body  string
		alive bool
		says  answer
		own   int
		swept bool
	}{
		{alive: false, says: refused, swept: true},
		{alive: true, says: refused, swept: true},
		{alive: true, says: denied, swept: true},
		{alive: false, says: denied, swept: false},
		{alive: false, says: served, swept: false},
		{alive: true, says: served, swept: false},
		{alive: false, says: unsure, swept: false}, // a time-out never sweeps
		{alive: true, says: unsure, swept: false},
		{alive: false, says: served, own: 5, swept: true}, // that port is ours now
		{alive: true, says: denied, own: 5, swept: true},
		{alive: true, says: served, own: 5, swept: false},
		{name: RelayFile, alive: false, says: refused, swept: false},
		{name: "gemini-ide-server-4-0.json", alive: false, says: refused, swept: false},
		{name: "gemini-ide-server-4.json", alive: false, says: refused, swept: false},
		{name: "notes.json", alive: false, says: refused, swept: false},
		{body: "{", alive: false, says: refused, swept: true},
		{body: `{"stdio":{"command":"c"}}`, alive: false, says: refused, swept: false},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if tt.name == "" {
				tt.name = FileName(4, 5)
			}
			if tt.body == "" {
				tt.body = `{"port":5,"authToken":"secret"}`
			}
			dir := t.TempDir()
			path := filepath.Join(dir, tt.name)
			if err := os.WriteFile(path, []byte(tt.body), 0o600); err != nil {
				t.Fatal(err)
			}
			s := Sweeper{Dir: dir, OwnPort: tt.own, alive: func(int) bool { return tt.alive },
				probe: func(_ context.Context, port int, token string) answer {
					if port != 5 || token != "" && !tt.alive {
						t.Errorf("asked port %d with token %q", port, token)
					}
					return tt.says
				}}
			removed := s.Sweep(t.Context())
			if got := slices.Contains(removed, path); got != tt.swept {
				t.Errorf("swept: %v, want %v", got, tt.swept)
			}
			if _, err := os.Stat(path); (err != nil) != tt.swept {
				t.Errorf("the file: %v", err)
			}
		})
	}
}

func TestSweepKeeps(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, FileName(4, 5))
	foreign := filepath.Join(dir, FileName(4, 6))
	os.WriteFile(own, []byte(`{"port":5}`), 0o600)
	os.Symlink(own, foreign) // not a file that any companion wrote
	fresh, old := filepath.Join(dir, ".pollux-tmp-a"), filepath.Join(dir, ".pollux-tmp-b")
	os.WriteFile(fresh, nil, 0o600)
	os.WriteFile(old, nil, 0o600)
	if !safefile.IsTemp(filepath.Base(old)) {
		t.Fatal("not a temporary file's name")
	}
	os.Chtimes(old, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour))
	s := Sweeper{Dir: dir, Keep: own, alive: func(int) bool { return false }, probe: func(context.Context, int, string) answer { return refused }}
	if removed := s.Sweep(t.Context()); !slices.Equal(removed, []string{old}) {
		t.Errorf("removed %v, want %v", removed, old)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Keep = ""
	if removed := s.Sweep(ctx); removed != nil {
		t.Errorf("after its end: %v", removed)
	}
}

// What the port of a file says, asked over a real connection.
func TestProbe(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer right" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})}
	go srv.Serve(ln)
	for token, want := range map[string]answer{"right": served, "wrong": denied, "": served, "a\r\nX: y": served} {
		if got := probePort(t.Context(), port, token); got != want {
			t.Errorf("token %q: %v, want %v", token, got, want)
		}
	}
	srv.Close()
	if got := probePort(t.Context(), port, "right"); got != refused {
		t.Errorf("a closed port: %v", got)
	}
	// A listener that never answers is not dead (a stopped process).
	mute, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	if got := probePort(t.Context(), mute.Addr().(*net.TCPAddr).Port, "x"); got != unsure {
		t.Errorf("a mute port: %v", got)
	}
}

// SPEC A-5: another user who listens at a file's port is not told its token.
func TestProbeTellsNobodyElseA5(t *testing.T) {
	var ln net.Listener
	var err error
	if !usertest.Do(t, func() { ln, err = net.Listen("tcp4", "127.0.0.1:0") }) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if got := probePort(t.Context(), ln.Addr().(*net.TCPAddr).Port, "secret"); got != denied {
		t.Errorf("it is taken for %v", got)
	}
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if said, err := io.ReadAll(conn); len(said) > 0 {
		t.Errorf("they were told %q, %v", said, err)
	}
}
