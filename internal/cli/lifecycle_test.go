//go:build unix

package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/pace"
)

// A session is a CLI's session on the wire.
type session struct {
	t          *testing.T
	client     *http.Client
	url, token string
	id         string
}

// newCLI opens a session.
func newCLI(t *testing.T, l *live) *session {
	t.Helper()
	return connect(t, l, http.DefaultClient)
}

// newCLIApart is newCLI by a process of its own, beside which this process may decide as the user's page (SPEC §11.1).
func newCLIApart(t *testing.T, l *live) *session {
	t.Helper()
	return connect(t, l, &http.Client{Transport: agent.Apart(t, l.Port)})
}

func connect(t *testing.T, l *live, client *http.Client) *session {
	t.Helper()
	s := &session{t: t, client: client}
	s.companion(l)
	header, _ := s.ask(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	s.id = header.Get("Mcp-Session-Id")
	s.ask(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

// companion moves the session to a companion that came back.
func (s *session) companion(l *live) {
	s.url, s.token = fmt.Sprintf("http://127.0.0.1:%d/mcp", l.Port), l.token()
}

// ask makes a request; the response's body stays open until the test ends.
func (s *session) ask(method, body string) (http.Header, io.Reader) {
	s.t.Helper()
	req, _ := http.NewRequest(method, s.url, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if s.id != "" {
		req.Header.Set("Mcp-Session-Id", s.id)
		req.Header.Set("Mcp-Protocol-Version", "2025-06-18")
	}
	resp, err := s.client.Do(req)
	if err != nil || resp.StatusCode >= 300 {
		s.t.Fatalf("%s: %v %v", method, resp, err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	return resp.Header, resp.Body
}

// call makes a request and returns the response.
func (s *session) call(body string) string {
	s.t.Helper()
	_, r := s.ask(http.MethodPost, body)
	answer, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(answer), `"result"`) || strings.Contains(string(answer), `"isError":true`) {
		s.t.Fatalf("%s, %v", answer, err)
	}
	return string(answer)
}

// stream opens the session's event stream and waits for its first line.
func (s *session) stream() *bufio.Reader {
	s.t.Helper()
	_, r := s.ask(http.MethodGet, "")
	stream := bufio.NewReader(r)
	if line, err := stream.ReadString('\n'); err != nil {
		s.t.Fatalf("the stream says %q, %v", line, err)
	}
	return stream
}

// join opens a session with its event stream, as a CLI does, and returns the stream.
func join(t *testing.T, l *live) *bufio.Reader {
	t.Helper()
	return newCLI(t, l).stream()
}

// SPEC L-1, L-2, D-5: every signal ends a companion within a second, even with CLIs on their streams, and nothing is
// left behind.
func TestSignalsL1(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			w := newWorld(t)
			l := w.serve()
			if files := w.files(); !slices.Equal(files, []string{l.DiscoveryFile}) {
				t.Fatalf("discovery files: %v, want %s", files, l.DiscoveryFile)
			}
			streams := []*bufio.Reader{join(t, l), join(t, l), join(t, l)}
			l.signal(sig)
			if code := l.cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("exit code %d\n%s", code, l.stderr)
			}
			if left := w.leftovers(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			for _, s := range streams {
				var last string
				var err error
				for err == nil {
					last += "\n"
					var line string
					line, err = s.ReadString('\n')
					last += line
				}
				if !strings.Contains(last, "retry:") {
					t.Errorf("a stream ended with %q, %v; want retry:", last, err)
				}
			}
		})
	}
}

// SPEC L-2: a companion ends with the process that started it.
func TestParentDeathL2(t *testing.T) {
	w := newWorld(t)
	out := filepath.Join(w.root, "out")
	cmd := exec.Command("sh", "-c", "pollux serve --no-open --json --with-parent >"+out+" & wait")
	cmd.Dir, cmd.Env = w.project, w.env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a discovery file", func() bool { return len(w.files()) == 1 })
	eventually(t, "its line", func() bool { data, _ := os.ReadFile(out); return len(data) > 0 })
	cmd.Process.Kill()
	cmd.Wait()
	watch := pace.Start(t)
	eventually(t, "the end", func() bool { return len(w.leftovers()) == 0 })
	if took := watch.Took(); took > pace.Slack*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A user who runs pollux by go run cannot type the hints as printed, and is told what to type instead.
func TestHintsOutsidePath(t *testing.T) {
	w := newWorld(t)
	cmd := w.command("serve", "--no-open")
	cmd.Env = append(cmd.Env, "PATH=/none")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	expect(t, bufio.NewReader(out), "where it says pollux, say /")
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// With nohup and a closed terminal the companion stays; other signals end it.
func TestNohup(t *testing.T) {
	w := newWorld(t)
	cmd := w.command("-c", `trap "" HUP; exec "$0" serve --no-open --json`, "pollux")
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh"}, cmd.Args[1:]...)
	l := w.start(cmd)
	cmd.Process.Signal(syscall.SIGHUP)
	w2, err := w.command("env").Output() // asked after the signal; an answer means that it lives
	if err != nil || !strings.Contains(string(w2), l.token()) {
		t.Errorf("%s, %v", w2, err)
	}
	l.signal(syscall.SIGTERM)
	if left := w.leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Without --with-parent a companion outlives its shell (nohup, &).
func TestOutlivesParent(t *testing.T) {
	w := newWorld(t)
	pid := filepath.Join(w.root, "pid")
	cmd := exec.Command("sh", "-c", "pollux serve --no-open --json >/dev/null & echo $! >"+pid)
	cmd.Dir, cmd.Env = w.project, w.env
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a discovery file", func() bool { return len(w.files()) == 1 })
	var n int
	data, _ := os.ReadFile(pid)
	fmt.Sscan(string(data), &n)
	if err := syscall.Kill(n, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end", func() bool { return len(w.leftovers()) == 0 })
}

// A closed standard output (pollux serve | head -1) does not kill it and leave its files behind.
func TestClosedOutput(t *testing.T) {
	w := newWorld(t)
	cmd := w.command("serve", "--no-open")
	r, wr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd.Stdout = wr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wr.Close()
	eventually(t, "a discovery file", func() bool { return len(w.files()) == 1 })
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 0 || len(w.leftovers()) > 0 {
		t.Errorf("exit code %d, left behind: %v", code, w.leftovers())
	}
}

// SPEC D-6: the next start removes what a kill -9 left; living companions and the relay stay.
func TestSweepAfterKillD6(t *testing.T) {
	w := newWorld(t)
	other := filepath.Join(w.root, "other")
	os.Mkdir(other, 0o700)
	alive := w.serve(other)
	dead := w.serve()
	relay := filepath.Join(w.ide(), "gemini-ide-server-1-0.json")
	os.WriteFile(relay, []byte(`{"workspacePath":"/","stdio":{"command":"pollux"}}`), 0o600)
	dead.signal(syscall.SIGKILL)
	if !exists(dead.DiscoveryFile) {
		t.Fatal("a killed companion removed its file")
	}
	third := filepath.Join(w.root, "third")
	os.Mkdir(third, 0o700)
	next := w.serve(third)
	eventually(t, "the sweep", func() bool { return !exists(dead.DiscoveryFile) })
	next.signal(syscall.SIGTERM)
	for _, path := range []string{alive.DiscoveryFile, relay} {
		if !exists(path) {
			t.Errorf("%s was swept", path)
		}
	}
	alive.signal(syscall.SIGTERM)
}

// SPEC A-1: after a crash and after an orderly end the next companion has the same port and page, and a new token.
// The old token serves old sessions, so that CLIs do not notice.
func TestResumeA1(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			w := newWorld(t)
			first := w.serve()
			token := first.token()
			first.signal(sig)
			second := w.serve()
			if second.Port != first.Port || second.token() == token || !second.Resumed || first.Resumed {
				t.Errorf("not resumed: %+v after %+v", second.ready, first.ready)
			}
			page := func(l *live) string { address, _, _ := strings.Cut(l.Page, "#"); return address }
			if page(first) != page(second) || first.Page == second.Page {
				t.Errorf("page %s after %s; want the same place and a fresh code", second.Page, first.Page)
			}
			if files := w.files(); !slices.Equal(files, []string{second.DiscoveryFile}) {
				t.Errorf("discovery files: %v", files)
			}
			join(t, second)
		})
	}
}

// SPEC A-1: no takeover with another workspace, on a port in use, or beside a living companion.
func TestNoResumeA1(t *testing.T) {
	t.Run("other workspace", func(t *testing.T) {
		w := newWorld(t)
		first := w.serve()
		first.signal(syscall.SIGKILL)
		other := filepath.Join(w.root, "other")
		os.Mkdir(other, 0o700)
		if second := w.serve(other); second.Resumed || second.Port == first.Port {
			t.Errorf("%+v after %+v", second.ready, first.ready)
		}
	})
	t.Run("port taken", func(t *testing.T) {
		w := newWorld(t)
		first := w.serve()
		token := first.token()
		first.signal(syscall.SIGKILL)
		ln, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", first.Port))
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		if second := w.serve(); second.Resumed || second.token() == token {
			t.Error("a token went on to another port")
		}
	})
	t.Run("beside a living one", func(t *testing.T) {
		w := newWorld(t)
		first := w.serve()
		second := w.serve()
		if second.Resumed || second.Port == first.Port || second.token() == first.token() {
			t.Errorf("%+v beside %+v", second.ready, first.ready)
		}
		first.signal(syscall.SIGKILL)
		if third := w.serve(); third.Resumed {
			t.Error("resumed the first while the second serves")
		}
	})
	t.Run("switched off", func(t *testing.T) {
		w := newWorld(t)
		w.configure(`{"resume": false}`)
		first := w.serve()
		first.signal(syscall.SIGTERM)
		if second := w.serve(); second.Resumed {
			t.Error("resumed")
		}
	})
}

// SPEC A-1: of companions that start at once only one takes over, and its record stays its own. One that starts while
// the last is stopping waits for it.
func TestResumeRacesA1(t *testing.T) {
	t.Run("several at once", func(t *testing.T) {
		w := newWorld(t)
		first := w.serve()
		first.signal(syscall.SIGKILL)
		var next [4]*live
		var wait sync.WaitGroup
		for i := range next {
			wait.Go(func() { next[i] = w.serve() })
		}
		wait.Wait()
		if t.Failed() {
			t.FailNow() // one of them did not start
		}
		var heir *live
		for _, l := range next {
			if l.Resumed {
				heir = l
			}
		}
		if heir == nil || heir.Port != first.Port {
			t.Fatal("nobody took over")
		}
		for _, l := range next {
			if l != heir && (l.Resumed || l.Port == heir.Port) {
				t.Errorf("%+v took over beside %+v", l.ready, heir.ready)
			}
			if l != heir {
				l.signal(syscall.SIGKILL)
			}
		}
		heir.signal(syscall.SIGKILL)
		if last := w.serve(); last.Port != first.Port {
			t.Errorf("port %d after %d: the record was another one's", last.Port, first.Port)
		}
	})
	t.Run("while the last is stopping", func(t *testing.T) {
		w := newWorld(t)
		first := w.serve()
		join(t, first)
		for range 5 {
			first.cmd.Process.Signal(syscall.SIGTERM)
			second := w.serve()
			if !second.Resumed || second.Port != first.Port {
				t.Fatalf("%+v after %+v", second.ready, first.ready)
			}
			<-first.ended
			if !exists(second.DiscoveryFile) {
				t.Fatal("the discovery file is gone")
			}
			first = second
		}
	})
}

// SPEC §11.6: a second companion says who else serves the folder; env takes the nearest, then the newest.
func TestTwoCompanions(t *testing.T) {
	w := newWorld(t)
	sub := filepath.Join(w.project, "sub")
	os.Mkdir(sub, 0o700)
	first := w.serve()
	second := w.serve()
	inner := w.serve(sub)
	if !slices.Equal(second.AlsoServedBy, []int{first.PID}) || len(inner.AlsoServedBy) != 2 {
		t.Errorf("also served by %v and %v", second.AlsoServedBy, inner.AlsoServedBy)
	}
	for dir, want := range map[string]*live{w.project: second, sub: inner} {
		out, err := w.command("env", "--json", dir).Output()
		if err != nil || !strings.Contains(string(out), fmt.Sprintf(`"GEMINI_CLI_IDE_PID":"%d"`, want.PID)) || !strings.Contains(string(out), want.token()) {
			t.Errorf("%s: %s %v; want process %d", dir, out, err, want.PID)
		}
	}
	second.signal(syscall.SIGTERM)
	if !strings.Contains(second.stderr.String(), fmt.Sprintf("process %d already serves %s", first.PID, w.project)) {
		t.Errorf("the second says %q", second.stderr)
	}
	out, err := w.command("page").Output()
	address, _, _ := strings.Cut(first.Page, "#")
	if err != nil || !strings.HasPrefix(string(out), address+"#code=") {
		t.Errorf("page: %s %v; want %s", out, err, address)
	}
}

// SPEC A-1, D-6: a suspended companion (Ctrl-Z) is neither taken over nor swept.
func TestStoppedCompanionA1(t *testing.T) {
	w := newWorld(t)
	first := w.serve()
	first.cmd.Process.Signal(syscall.SIGSTOP)
	defer first.cmd.Process.Signal(syscall.SIGCONT)
	second := w.serve()
	if second.Resumed || second.Port == first.Port {
		t.Errorf("%+v beside a stopped %+v", second.ready, first.ready)
	}
	second.signal(syscall.SIGTERM)
	if !exists(first.DiscoveryFile) {
		t.Error("a stopped companion's file was swept (SPEC D-6)")
	}
}
