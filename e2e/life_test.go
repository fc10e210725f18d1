package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/browser"
	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/e2e/terminal"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/peers"
	"github.com/pollux-companion/pollux/internal/usertest"
)

// TestCrash: a companion is killed while a proposal waits, and started again.
// The CLI never notices, the page comes back by itself, the proposal can
// still be decided, and what follows works (A-1, L-3, T-5, D-6).
func TestCrash(t *testing.T) {
	needCLI(t)
	defer tells(t, "killed and back")
	b := newBench(t, map[string]string{"a.txt": "old\n", "b.txt": "other\n"})
	c := b.serve()
	d := b.desk(c)
	d.open("a.txt")
	s := b.gemini("")
	connected(s)
	from := len(s.Model.Requests())
	s.Ask("change it", model.WriteFile("a.txt", "new\n"))
	s.Question()
	d.proposal("a.txt")
	d.rewrite("new and edited\n")
	b.journal("new and edited")

	d.Expect("WebSocket")
	d.Expect("net::ERR_")
	c.end(syscall.SIGKILL)
	again := b.serve()
	if !again.Resumed || again.Port != c.Port {
		t.Errorf("port %d, resumed %v; it was %d", again.Port, again.Resumed, c.Port)
	}
	if _, err := os.Stat(c.DiscoveryFile); !os.IsNotExist(err) {
		t.Errorf("the dead companion's file is still there: %v", err)
	}
	d.online()
	d.proposal("a.txt")
	if text := d.Text(browser.ID("diff-new")); !strings.Contains(text, "new and edited") {
		t.Errorf("the edits are lost: %q", text)
	}
	d.Click(browser.ID("accept"))
	b.holds("a.txt", "new and edited\n")
	result(t, s, from)

	d.open("b.txt")
	b.told("the other file", func(context string) bool { return strings.Contains(context, b.path("b.txt")) })
	order(t, connected(s), "b.txt (active)", "a.txt")
	s.Ask("and once more", model.WriteFile("b.txt", "after the crash\n"))
	d.proposal("b.txt")
	d.Click(browser.ID("accept"))
	b.holds("b.txt", "after the crash\n")
}

// TestRestart: an orderly stop rejects what is open within a second and
// leaves no file (L-1, D-5); a start within minutes is not noticed by the CLI (A-1, L-3).
func TestRestart(t *testing.T) {
	needCLI(t)
	defer tells(t, "companion's end")
	b := newBench(t, map[string]string{"a.txt": "old\n"})
	c := b.serve()
	d := b.desk(c)
	d.open("a.txt")
	s := b.gemini("")
	connected(s)
	s.Ask("change it", model.WriteFile("a.txt", "new\n"))
	s.Question()
	d.proposal("a.txt")

	d.Expect("WebSocket")
	d.Expect("net::ERR_")
	if took := c.end(syscall.SIGTERM); took > pace.Slack*time.Second {
		t.Errorf("stopping took %s, a second is allowed", took)
	}
	if _, err := os.Stat(c.DiscoveryFile); !os.IsNotExist(err) {
		t.Errorf("the discovery file is still there: %v", err)
	}
	s.Wait("Request cancelled", second(60))
	if got := b.read("a.txt"); got != "old\n" {
		t.Errorf("a proposal that nobody accepted was written: %q", got)
	}

	again := b.serve()
	if !again.Resumed || again.Port != c.Port {
		t.Errorf("port %d, resumed %v; it was %d", again.Port, again.Resumed, c.Port)
	}
	d.online()
	connected(s)
	s.Ask("once more", model.WriteFile("a.txt", "after the restart\n"))
	d.proposal("a.txt")
	d.Click(browser.ID("accept"))
	b.holds("a.txt", "after the restart\n")
}

// TestInterrupted: Ctrl-C at the question leaves the proposal in the page,
// where it can still be decided, and the next one works (L-3).
func TestInterrupted(t *testing.T) {
	needCLI(t)
	b := newBench(t, map[string]string{"a.txt": "old\n", "b.txt": "old\n"})
	d := b.desk(b.serve())
	s := b.gemini("")
	connected(s)
	s.Ask("change it", model.WriteFile("a.txt", "new\n"))
	s.Question()
	d.proposal("a.txt")
	s.Keys("C-c")
	s.Idle()
	d.Click(browser.ID("reject"))
	d.noProposal()
	s.Ask("change the other", model.WriteFile("b.txt", "new\n"))
	d.proposal("b.txt")
	d.Click(browser.ID("accept"))
	b.holds("b.txt", "new\n")
}

// TestSeveralRoots: one companion for two folders serves a CLI in either, and
// a folder below; outside of them the CLI says so (D-3).
func TestSeveralRoots(t *testing.T) {
	needCLI(t)
	b := newBench(t, map[string]string{"app/main.txt": "app\n", "lib: 100%/deep/lib.txt": "lib\n", "outside/x.txt": "x\n"})
	d := b.desk(b.serve("app", "lib: 100%"))
	d.open("app/main.txt")
	d.open("lib: 100%/deep/lib.txt")

	s := b.gemini("lib: 100%/deep")
	order(t, connected(s), "lib.txt (active)", "main.txt")
	s.Ask("change it here", model.WriteFile("lib.txt", "changed\n"))
	d.proposal("lib: 100%/deep/lib.txt")
	d.Click(browser.ID("accept"))
	b.holds("lib: 100%/deep/lib.txt", "changed\n")

	out := b.gemini("outside")
	out.Status("Directory mismatch")
}

// TestWhichCompanion: several companions serve one folder; the CLI takes the
// newest, unless the variables of D-7 say otherwise (D-2, D-7).
func TestWhichCompanion(t *testing.T) {
	needCLI(t)
	b := newBench(t, map[string]string{"first.txt": "1\n", "second.txt": "2\n", "third.txt": "3\n"})
	var all []*companion
	for _, file := range []string{"first.txt", "second.txt", "third.txt"} {
		c := b.serve()
		b.desk(c).open(file)
		all = append(all, c)
	}
	newest := 0
	for i, c := range all {
		if c.PID > all[newest].PID { // process ids may have wrapped around
			newest = i
		}
	}
	names := []string{"first.txt", "second.txt", "third.txt"}
	for _, test := range []struct {
		what string
		env  []string
		want int
	}{
		{"the newest", nil, newest},
		{"by port", []string{"GEMINI_CLI_IDE_SERVER_PORT=" + strconv.Itoa(all[0].Port)}, 0},
		{"by process", []string{"GEMINI_CLI_IDE_PID=" + strconv.Itoa(all[1].PID)}, 1},
	} {
		t.Logf("step: %s", test.what)
		s := b.gemini("", test.env...)
		order(t, connected(s), names[test.want]+" (active)")
		s.Keys("C-c")
		s.Keys("C-c")
	}
}

// TestRun: pollux run passes the variables of D-7 and the exit code on, and
// connects a CLI in its own terminal, also inside a container (T-8).
func TestRun(t *testing.T) {
	needCLI(t)
	b := newBench(t, map[string]string{"a.txt": "old\n"})
	script := `printf '{"port":"%s","path":"%s","token":"%s","pid":"%s","container":"%s"}' \
		"$GEMINI_CLI_IDE_SERVER_PORT" "$GEMINI_CLI_IDE_WORKSPACE_PATH" "$GEMINI_CLI_IDE_AUTH_TOKEN" "$GEMINI_CLI_IDE_PID" "$REMOTE_CONTAINERS" > env.json
		exit 7`
	tm := terminal.Start(t, terminal.Options{Dir: b.dir, Env: b.home.Env(), Args: []string{shared.pollux, "run", "--no-open", "--", "sh", "-c", script}})
	if code := tm.Exit(second(60)); code != 7 {
		t.Errorf("exit code %d, the command's was 7", code)
	}
	var env struct{ Port, Path, Token, PID, Container string }
	if err := json.Unmarshal([]byte(b.read("env.json")), &env); err != nil {
		t.Fatal(err)
	}
	if env.Path != b.dir || env.Port == "" || len(env.Token) < 43 || env.PID == "" {
		t.Errorf("variables: %+v", env)
	}
	_, err := os.Stat("/.dockerenv")
	if inside := err == nil; (env.Container == "1") != inside {
		t.Errorf("REMOTE_CONTAINERS=%q, inside a container: %v", env.Container, inside)
	}

	m := model.Start(t)
	variables := []string{"GEMINI_API_KEY=anything", "GOOGLE_GEMINI_BASE_URL=" + m.URL(), "GEMINI_CLI_NO_RELAUNCH=1", "NO_COLOR=1"}
	s := cli.Attach(t, m, terminal.Start(t, terminal.Options{
		Dir: b.dir, Env: b.home.Env(variables...),
		Args: append([]string{shared.pollux, "run", "--no-open", "--"}, peers.Command(t, peers.Gemini)...),
	}))
	s.Ready()
	connected(s)
	d := b.anotherDesk()
	s.Ask("change it", model.WriteFile("a.txt", "new\n"))
	d.proposal("a.txt")
	d.Click(browser.ID("accept"))
	b.holds("a.txt", "new\n")
	d.Expect("WebSocket")
	s.Idle()
	s.Command("/quit", "Agent powering down")
	if code := s.Exit(second(60)); code != 0 {
		t.Errorf("exit code %d after /quit", code)
	}
	if files, _ := filepath.Glob(filepath.Join(b.home.Tmp, "gemini", "ide", "*.json")); len(files) > 0 {
		t.Errorf("left behind: %v", fmt.Sprint(files))
	}
}

// TestTypedByAPerson: a server on standard input tells a person at a terminal what it waits for, and Ctrl-C ends it.
func TestTypedByAPerson(t *testing.T) {
	peers.Need(t, peers.Tmux)
	t.Parallel()
	for command, whose := range map[string]string{"lsp": "an editor", "mcp": "an MCP client"} {
		b := newBench(t, nil)
		tm := terminal.Start(t, terminal.Options{Dir: b.dir, Env: b.home.Env(), Args: []string{shared.pollux, command}})
		tm.Wait("it waits for messages of "+whose, second(60))
		tm.Keys("C-c")
		if code := tm.Exit(second(60)); code != 130 && code != 0 {
			t.Errorf("%s: exit code %d", command, code)
		}
	}
}

// SPEC D-1, D-7: where something of somebody else's stands in the shared temporary folder, the published CLI connects all the same under
// pollux run, by a temporary folder of its own, shows its diffs, and nothing is left there.
func TestPrivateTemp(t *testing.T) {
	needCLI(t)
	b := newBench(t, map[string]string{"a.txt": "old\n"})
	gemini := filepath.Join(b.home.Tmp, "gemini")
	if err := os.RemoveAll(gemini); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(gemini, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 || os.Chown(gemini, usertest.ID, usertest.ID) != nil { // a file is in the way as well
		if err := errors.Join(os.Remove(gemini), os.WriteFile(gemini, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	m := model.Start(t)
	variables := []string{"GEMINI_API_KEY=anything", "GOOGLE_GEMINI_BASE_URL=" + m.URL(), "GEMINI_CLI_NO_RELAUNCH=1", "NO_COLOR=1"}
	s := cli.Attach(t, m, terminal.Start(t, terminal.Options{
		Dir: b.dir, Env: b.home.Env(variables...),
		Args: append([]string{shared.pollux, "run", "--no-open", "--"}, peers.Command(t, peers.Gemini)...),
	}))
	s.Ready()
	connected(s)
	if out := b.pollux("status"); !strings.Contains(out, "there is no discovery file") {
		t.Errorf("status says nothing of it:\n%s", out)
	}
	d := b.anotherDesk()
	s.Ask("change it", model.WriteFile("a.txt", "new\n"))
	d.proposal("a.txt")
	d.Click(browser.ID("accept"))
	b.holds("a.txt", "new\n")
	d.Expect("WebSocket")
	s.Idle()
	s.Command("/quit", "Agent powering down")
	if code := s.Exit(second(60)); code != 0 {
		t.Errorf("exit code %d after /quit", code)
	}
	private := filepath.Join(b.home.Dir, ".local", "state", "pollux", "tmp", "gemini", "ide")
	if left, _ := filepath.Glob(filepath.Join(private, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// SPEC T-6: a published CLI says what it has read when it comes back to a companion that was killed. Here the test itself listens at the port then.
func TestSaysWhatItHasReadT6(t *testing.T) {
	says := func(t *testing.T, b *bench, c *companion) {
		t.Helper()
		b.holds("a.txt", "new\n")
		c.end(syscall.SIGKILL)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", c.Port))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(second(60)))
		for {
			conn, err := l.Accept()
			if err != nil {
				t.Fatal("it did not come back: ", err)
			}
			_ = conn.SetDeadline(time.Now().Add(second(10)))
			r, err := http.ReadRequest(bufio.NewReader(conn))
			_ = conn.Close()
			if err != nil || r.Method != http.MethodGet || r.Header.Get("Mcp-Session-Id") == "" {
				continue // not the stream of a session
			}
			if id := r.Header.Get("Last-Event-Id"); !strings.HasSuffix(id, "-1") {
				t.Errorf("it has read one outcome, and says %q", id)
			}
			return
		}
	}
	t.Run("Gemini", func(t *testing.T) {
		needCLI(t)
		b := newBench(t, map[string]string{"a.txt": "old\n"})
		c := b.serve()
		user := &pageDriver{page: webtest.Open(t, c.Page, "t6")}
		s := b.gemini("")
		connected(s)
		s.Ask("change it", model.WriteFile("a.txt", "new\n"))
		user.shown(b)
		user.act(b, "diff/accept", nil)
		says(t, b, c)
	})
	t.Run("Qwen", func(t *testing.T) {
		needQwen(t)
		b := newBench(t, map[string]string{"a.txt": "old\n"})
		c, user := b.serveQwen()
		s := b.qwen("")
		connected(s)
		s.Ask("change it", b.overwrite("a.txt", "new\n")...)
		user.shown(b)
		user.act(b, "diff/accept", nil)
		says(t, b, c)
	})
}
