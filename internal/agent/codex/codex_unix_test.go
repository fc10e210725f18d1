//go:build unix

package codex

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/usertest"
)

// shortTemp is a temporary folder whose path leaves room for a socket's.
func shortTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pcx")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func serve(t *testing.T, temp string, snap *state.Snapshot) (*Server, error) {
	t.Helper()
	s, err := Serve(temp, func() *state.Snapshot { return snap }, func(proc.Info) {}, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Cleanup(s.Close)
	}
	return s, err
}

// ask sends bytes and returns the next message, "" for the end of the connection.
func ask(t *testing.T, temp string, sent ...[]byte) string {
	t.Helper()
	conn, err := net.Dial("unix", Path(temp))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	for _, b := range sent {
		_, _ = conn.Write(b)
	}
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return ""
	}
	body := make([]byte, binary.LittleEndian.Uint32(length[:]))
	if _, err := io.ReadFull(conn, body); err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func request(method, root string) []byte {
	b, err := frame(map[string]any{
		"type": "request", "requestId": "r1", "sourceClientId": "codex-tui", "version": 0, "method": method, "params": map[string]string{"workspaceRoot": root},
	})
	if err != nil {
		panic(err)
	}
	return b
}

// SPEC CX-1, CX-2: what Codex asks is answered as it understands it, of this workspace only, and what is no question of its is not.
func TestAnswersCX2(t *testing.T) {
	t.Parallel()
	temp, root := shortTemp(t), t.TempDir()
	snap := &state.Snapshot{
		Roots: []string{root}, Active: filepath.Join(root, "sub", "a.txt"), Cursor: &state.Position{Line: 1, Character: 3},
		Files:      []state.File{{Path: filepath.Join(root, "sub", "a.txt")}, {Path: "/elsewhere/b.txt"}, {Path: "/bad\xff"}},
		Selections: []state.Selection{{Start: state.Position{Line: 1}, End: state.Position{Line: 1, Character: 3}, Text: "two"}},
	}
	if _, err := serve(t, temp, snap); err != nil {
		t.Fatal(err)
	}
	got := ask(t, temp, request("ide-context", root))
	var r struct {
		Type, RequestID, ResultType, Method string
		Result                              struct {
			IDEContext struct {
				ActiveFile map[string]any
				OpenTabs   []map[string]string
			}
		}
	}
	if err := json.Unmarshal([]byte(got), &r); err != nil || r.Type != "response" || r.RequestID != "r1" || r.ResultType != "success" || r.Method != "ide-context" {
		t.Errorf("%s, %v", got, err)
	}
	c := r.Result.IDEContext
	if c.ActiveFile["path"] != "sub/a.txt" || c.ActiveFile["activeSelectionContent"] != "two" || len(c.OpenTabs) != 2 || c.OpenTabs[1]["path"] != "/elsewhere/b.txt" {
		t.Errorf("%s", got)
	}
	broadcast, _ := frame(map[string]string{"type": "broadcast"})
	for name, tt := range map[string]struct {
		sent [][]byte
		want string // "" for the end
	}{
		"initialize":            {[][]byte{request("initialize", "")}, `"clientId":"pollux"`},
		"a folder below":        {[][]byte{request("ide-context", filepath.Join(root, "sub"))}, `"success"`},
		"another folder":        {[][]byte{request("ide-context", t.TempDir())}, `"no-client-found"`},
		"the folder above":      {[][]byte{request("ide-context", filepath.Dir(root))}, `"no-client-found"`},
		"no folder":             {[][]byte{request("ide-context", "")}, `"no-client-found"`},
		"an unknown method":     {[][]byte{request("apply-patch", root)}, `"no-handler-for-request"`},
		"after a broadcast":     {[][]byte{broadcast, request("initialize", "")}, `"success"`},
		"in pieces":             {[][]byte{request("initialize", "")[:2], request("initialize", "")[2:]}, `"success"`},
		"nothing":               {[][]byte{{0, 0, 0, 0}}, ""},
		"too long":              {[][]byte{{0xff, 0xff, 0xff, 0xff}}, ""},
		"big endian":            {[][]byte{{0, 0, 0, 2}, []byte("{}")}, ""},
		"no JSON":               {[][]byte{{2, 0, 0, 0}, []byte("}{")}, ""},
		"JSON of another shape": {[][]byte{{2, 0, 0, 0}, []byte("[]")}, ""},
	} {
		if got := ask(t, temp, tt.sent...); !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") || strings.Contains(got, "no-client") && strings.Contains(got, "two") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// SPEC CX-1: a socket that somebody answers on is left alone, one that the dead left is taken over, and nobody's but its own is removed.
func TestSocketCX1(t *testing.T) {
	t.Parallel()
	temp := shortTemp(t)
	first, err := serve(t, temp, &state.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{filepath.Dir(Path(temp)): 0o700, Path(temp): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if _, err := serve(t, temp, &state.Snapshot{}); !errors.Is(err, ErrTaken) {
		t.Errorf("a second one: %v", err)
	}
	first.Close()
	if _, err := os.Lstat(Path(temp)); err == nil {
		t.Error("its socket is left")
	}
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: Path(temp), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	second, err := serve(t, temp, &state.Snapshot{})
	if err != nil {
		t.Fatalf("over a dead one's: %v", err)
	}
	if err := os.Remove(Path(temp)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(Path(temp), []byte("another's"), 0o600); err != nil {
		t.Fatal(err)
	}
	second.Close()
	if _, err := os.Lstat(Path(temp)); err != nil {
		t.Error("another's file was removed")
	}
	if _, err := serve(t, temp, &state.Snapshot{}); !errors.Is(err, ErrTaken) {
		t.Errorf("over a file: %v", err)
	}
}

// SPEC A-4: connections are bounded.
func TestConnectionsCX1(t *testing.T) {
	t.Parallel()
	temp := shortTemp(t)
	s, err := serve(t, temp, &state.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	for range maxConns + 20 {
		conn, err := net.Dial("unix", Path(temp))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	s.mu.Lock()
	n := len(s.conns)
	s.mu.Unlock()
	if n > maxConns {
		t.Errorf("%d connections", n)
	}
}

// FuzzFrame: no bytes make the reader take more than a frame's bound, or panic; what it takes, it takes again.
func FuzzFrame(f *testing.F) {
	f.Add(request("ide-context", "/w"))
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0x7f, '{'})
	f.Add([]byte{2, 0, 0, 0, '{', '}'})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := readFrame(bytes.NewReader(data))
		if err != nil {
			return
		}
		again, err := frame(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readFrame(bytes.NewReader(again)); err != nil || got != m {
			t.Errorf("%+v becomes %+v, %v", m, got, err)
		}
	})
}

// FuzzAnswer: whatever is asked, the answer names the question, and only a question about a folder of the workspace is told anything.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"type":"request","requestId":"1","method":"ide-context","params":{"workspaceRoot":"/w/sub/.."}}`, `{"method":"ide-context","params":{"workspaceRoot":"/w/../x"}}`,
		`{"method":"ide-context","params":null}`, `{"method":"initialize"}`, `{"method":1}`, `{"requestId":"\u0000"}`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	s := &Server{snapshot: func() *state.Snapshot {
		return &state.Snapshot{Roots: []string{"/w"}, Active: "/w/secret-name", Files: []state.File{{Path: "/w/secret-name"}}}
	}}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m message
		if json.Unmarshal(data, &m) != nil {
			return
		}
		got, err := frame(s.answer(m))
		if err != nil {
			t.Fatal(err)
		}
		var r response
		if err := json.Unmarshal(got[4:], &r); err != nil || r.RequestID != m.RequestID {
			t.Errorf("%q is answered %q, %v", data, got, err)
		}
		inside := filepath.IsAbs(m.Params.WorkspaceRoot) && paths.Within(paths.Real("/w"), paths.Real(m.Params.WorkspaceRoot))
		if !inside && bytes.Contains(got, []byte("secret-name")) {
			t.Errorf("%q is told %q", data, got)
		}
	})
}

// SPEC CX-1, A-5: where another user has made Codex's folder or socket in a shared temporary folder, nobody of this user listens there,
// nothing is asked there, and doctor says whose it is.
func TestOtherUsersSocketCX1(t *testing.T) {
	for name, plant := range map[string]func(dir, socket string) (net.Listener, error){
		"their folder and socket": func(dir, socket string) (net.Listener, error) {
			if err := os.Mkdir(dir, 0o755); err != nil {
				return nil, err
			}
			return net.Listen("unix", socket)
		},
		"their folder, open to all": func(dir, _ string) (net.Listener, error) {
			return nil, errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777))
		},
		"a link to a folder": func(dir, _ string) (net.Listener, error) { return nil, os.Symlink("/tmp", dir) },
	} {
		temp := shortTemp(t)
		if err := os.Chmod(temp, 0o777); err != nil {
			t.Fatal(err)
		}
		socket := Path(temp) // this user's
		var ln net.Listener
		var err error
		if !usertest.Do(t, func() { ln, err = plant(filepath.Dir(socket), socket) }) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if s, err := serve(t, temp, &state.Snapshot{}); !errors.Is(err, safefile.ErrNotPrivate) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
		if c, err := Dial(t.Context(), socket, "/"); err == nil {
			c.Close()
			t.Errorf("%s: it is asked", name)
		}
		if ln != nil {
			_ = ln.(*net.UnixListener).SetDeadline(time.Now().Add(30 * time.Second))
			conn, err := ln.Accept() // what Dial has opened, and closed
			if err != nil {
				t.Fatal(err)
			}
			if said, _ := io.ReadAll(conn); len(said) > 0 {
				t.Errorf("%s: they were told %q", name, said)
			}
			conn.Close()
			ln.Close()
		}
	}
}
