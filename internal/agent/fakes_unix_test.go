//go:build unix

package agent_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/pollux-companion/pollux/contract"
	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/finding"
)

// said are the messages that a fake has sent, by a companion that answers everything.
type said chan string

func (s said) answer(message []byte) string {
	s <- string(message)
	var m struct {
		ID        json.RawMessage
		RequestID string
	}
	_ = json.Unmarshal(message, &m)
	switch {
	case m.RequestID != "":
		return fmt.Sprintf(`{"type":"response","requestId":%q,"resultType":"success","result":{"ideContext":{"openTabs":[]}}}`, m.RequestID)
	case m.ID != nil:
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	}
	return ""
}

// ofClaude listens as a companion does for Claude Code.
func (s said) ofClaude(t *testing.T) finding.Door {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"mcp"}})
		if err != nil {
			return
		}
		defer func() { _ = c.CloseNow() }()
		for {
			_, message, err := c.Read(r.Context())
			if err != nil {
				return
			}
			if answer := s.answer(message); answer != "" {
				_ = c.Write(r.Context(), websocket.MessageText, []byte(answer))
			}
		}
	}))
	t.Cleanup(server.Close)
	return finding.Door{Port: server.Listener.Addr().(*net.TCPAddr).Port, Token: "t"}
}

// private is a socket with a short path.
func private(t *testing.T) net.Listener {
	dir, err := os.MkdirTemp("/tmp", "pcf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (s said) ofCopilot(t *testing.T) finding.Door {
	server := &httptest.Server{Listener: private(t), Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if len(body) == 0 {
			return // the end of the session
		}
		w.Header().Set("Mcp-Session-Id", "1")
		_, _ = io.WriteString(w, s.answer(body))
	})}}
	server.Start()
	t.Cleanup(server.Close)
	return finding.Door{Socket: server.Listener.Addr().String(), Token: "t"}
}

func (s said) ofCodex(t *testing.T) finding.Door {
	l := private(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		var length [4]byte
		if _, err := io.ReadFull(in, length[:]); err != nil {
			return
		}
		message := make([]byte, binary.LittleEndian.Uint32(length[:]))
		_, _ = io.ReadFull(in, message)
		answer := s.answer(message)
		_, _ = conn.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(answer))), answer...))
	}()
	return finding.Door{Socket: l.Addr().String(), Dir: "/p"}
}

// SPEC CC-5, GC-2, CX-2: the fakes of the CLIs, with which companions are tried, say what the vectors of their wires have.
func TestFakes(t *testing.T) {
	t.Parallel()
	all, err := contract.All()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		vector string
		listen func(said, *testing.T) finding.Door
	}{
		"claude": {"CC-5a", said.ofClaude}, "copilot": {"GC-2a", said.ofCopilot}, "codex": {"CX-2a", said.ofCodex},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			heard := make(said, 16)
			a, _ := agent.Find(name)
			c, err := a.Listen(t.Context(), tt.listen(heard, t))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if name == "codex" { // it asks with each prompt
				if _, err := c.Context(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			i := slices.IndexFunc(all, func(a *contract.Archive) bool { return a.Name == tt.vector })
			for _, want := range all[i].Said() {
				select {
				case got := <-heard:
					if w, g := shape(t, want), shape(t, got); w != g {
						t.Errorf("it says %s; the CLI: %s", g, w)
					}
				case <-time.After(30 * time.Second):
					t.Fatalf("it does not say %s", want)
				}
			}
		})
	}
}

// shape is what a message is about: its method, and the names in it and in its parameters. Values differ from run to run.
func shape(t *testing.T, message string) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		t.Fatalf("%q: %v", message, err)
	}
	params, _ := m["params"].(map[string]any)
	names := slices.Sorted(maps.Keys(m))
	names = slices.DeleteFunc(names, func(name string) bool { return name == "params" && len(params) == 0 }) // empty, or not there
	return fmt.Sprint(m["method"], " ", m["protocolVersion"], " ", strings.Join(names, " "), " (", strings.Join(slices.Sorted(maps.Keys(params)), " "), ") ", params["protocolVersion"])
}
