// Package e2e tests the real pollux binary with the real Gemini CLI in a real
// terminal and a real Chromium. Each test has a home, a workspace and
// processes of its own; only Chromium is shared, a tab each.
package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/e2e/browser"
	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/peers"
)

var (
	update = flag.Bool("update", false, "rewrite the pictures in docs/images")
	// shared is what is made once for all tests.
	shared struct {
		pollux   string
		chromium func(testing.TB) *browser.Browser
		stop     func()
	}
	// heavy bounds how many CLIs start and work at once: each is a second of
	// CPU, and deadlines are for tests, not for queues.
	heavy = make(chan struct{}, 2)
)

func TestMain(m *testing.M) {
	for name, other := range others() { // other processes that tests start
		if value := os.Getenv(name); value != "" {
			other(value)
			return
		}
	}
	agent.Main()
	flag.Parse()
	if there := os.Getenv(programsIn); there != "" {
		shared.pollux = filepath.Join(there, "pollux")
		os.Exit(run(m))
	}
	os.Exit(peers.Build(func() int {
		shared.pollux = peers.Pollux()
		return run(m)
	}))
}

// programsIn names a folder with programs that are there already, to compare one build with another.
const programsIn = "POLLUX_BENCH_PROGRAMS"

// others are what this program is instead of a test, by the variable that says so.
func others() map[string]func(string) {
	return map[string]func(string){elsewhereTo: passOn, launcherAt: launchFor}
}

func run(m *testing.M) int {
	var once sync.Once
	var chromium *browser.Browser
	shared.chromium = func(t testing.TB) *browser.Browser {
		peers.Need(t, peers.Chromium)
		once.Do(func() { chromium = browser.Start(t) })
		if chromium == nil {
			t.Fatal("chromium did not start in another test")
		}
		return chromium
	}
	code := m.Run()
	if chromium != nil {
		chromium.Stop()
	}
	if *matrix {
		if err := writeMatrix(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// needCLI takes a place among the tests that run CLIs, until the test ends.
func needCLI(t *testing.T) {
	t.Helper()
	for _, p := range []peers.Peer{peers.Gemini, peers.Node, peers.Tmux, peers.Chromium} {
		peers.Need(t, p)
	}
	t.Parallel()
	heavy <- struct{}{}
	t.Cleanup(func() { <-heavy })
}

// A bench is one user's machine: a home and a project.
type bench struct {
	t    *testing.T
	home cli.Home
	// dir is the project's folder, with symlinks resolved.
	dir string
	// spare is a fresh address of the page, when it was asked for beforehand.
	spare string
}

// newBench makes a project with files (by relative path).
func newBench(t *testing.T, files map[string]string) *bench {
	t.Helper()
	return newBenchAt(t, "project", files)
}

func newBenchAt(t *testing.T, name string, files map[string]string) *bench {
	t.Helper()
	b := &bench{t: t, home: cli.NewHome(t)}
	base, err := filepath.EvalSymlinks(filepath.Dir(b.home.Dir))
	if err != nil {
		t.Fatal(err)
	}
	b.dir = filepath.Join(base, name)
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, content := range files {
		b.write(file, content)
	}
	return b
}

// path is the absolute path of a file of the project.
func (b *bench) path(name string) string { return filepath.Join(b.dir, filepath.FromSlash(name)) }

func (b *bench) write(name, content string) {
	b.t.Helper()
	file := b.path(name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

// holds waits until a file of the project has that content.
func (b *bench) holds(name, content string) {
	b.t.Helper()
	var last string
	for deadline := time.Now().Add(second(60)); time.Now().Before(deadline); time.Sleep(30 * time.Millisecond) {
		data, err := os.ReadFile(b.path(name))
		if last = string(data); err == nil && last == content {
			return
		}
	}
	b.t.Fatalf("%s holds %q, want %q", name, brief(last), brief(content))
}

// brief cuts a long text for a message.
func brief(s string) string {
	if len(s) > 200 {
		return fmt.Sprintf("%s… (%d bytes)", s[:200], len(s))
	}
	return s
}

// A companion is one running pollux serve.
type companion struct {
	b     *bench
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has been waited for

	PID           int
	Port          int
	Workspace     []string
	DiscoveryFile string
	Page          string
	Resumed       bool
}

// serve starts pollux serve and waits until it is ready.
func (b *bench) serve(args ...string) *companion {
	b.t.Helper()
	c := &companion{b: b, ended: make(chan struct{})}
	c.cmd = exec.Command(shared.pollux, append([]string{"serve", "--no-open", "--json"}, args...)...)
	c.cmd.Dir, c.cmd.Env, c.cmd.Stderr = b.dir, b.home.Env(), os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n')
		line <- text
		c.cmd.Wait()
		close(c.ended)
	}()
	b.t.Cleanup(func() {
		if b.t.Failed() {
			b.t.Logf("pollux's log:\n%s", b.log())
		}
		c.end(syscall.SIGTERM)
	})
	select {
	case text := <-line:
		if err := json.Unmarshal([]byte(text), c); err != nil {
			b.t.Fatalf("pollux serve says %q: %v", text, err)
		}
	case <-time.After(second(60)):
		b.t.Fatal("pollux serve is not ready")
	}
	return c
}

// end sends a signal and waits; the process may have ended already.
func (c *companion) end(sig syscall.Signal) time.Duration {
	c.b.t.Helper()
	watch := pace.Start(c.b.t)
	if err := c.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.b.t.Error(err)
	}
	select {
	case <-c.ended:
	case <-time.After(second(60)):
		c.b.t.Errorf("pollux does not end after signal %v", sig)
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
	return watch.Took()
}

// log is what pollux wrote to its log.
func (b *bench) log() string {
	var all strings.Builder
	files, err := filepath.Glob(filepath.Join(b.home.Dir, ".local", "state", "pollux", "*.log*"))
	if err != nil {
		return err.Error()
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return err.Error()
		}
		all.Write(data)
	}
	lines := strings.Split(all.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

// pollux runs the binary in the project and returns what it prints.
func (b *bench) pollux(args ...string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), second(60))
	defer cancel()
	cmd := exec.CommandContext(ctx, shared.pollux, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = b.dir, b.home.Env(), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("pollux %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// gemini starts a CLI in a folder of the project ("" is its root).
func (b *bench) gemini(sub string, env ...string) *cli.Session {
	b.t.Helper()
	return cli.Start(b.t, b.home, b.path(sub), env...)
}

// connected waits until the CLI says that it is connected.
func connected(s *cli.Session) string { return s.Status("Connected to Pollux") }

// A desk is the editor page in a tab.
type desk struct {
	*browser.Page
	b *bench
}

// desk opens the page of a companion in a new tab, connected.
func (b *bench) desk(c *companion) *desk {
	b.t.Helper()
	return b.deskAt(c.Page)
}

// anotherDesk opens one more tab, by a fresh address.
func (b *bench) anotherDesk() *desk {
	b.t.Helper()
	if b.spare == "" {
		return b.deskAt(strings.TrimSpace(b.pollux("page")))
	}
	return b.deskAt(b.spare)
}

func (b *bench) deskAt(address string) *desk {
	b.t.Helper()
	d := &desk{Page: shared.chromium(b.t).Open(b.t, address), b: b}
	d.online()
	return d
}

// online waits until the page is connected to its companion.
func (d *desk) online() {
	d.b.t.Helper()
	d.Wait(browser.ID("status-connection") + `[data-state="open"]`)
}

// item is the selector of a file or folder in the tree.
func (d *desk) item(name string) string { return attribute("tree-item", "data-path", d.b.path(name)) }

// tab is the selector of a file's tab.
func (d *desk) tab(name string) string { return attribute("tab", "data-id", d.b.path(name)) }

// attribute is the selector of an element by test id and one attribute.
func attribute(id, name, value string) string {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value)
	return fmt.Sprintf(`%s[%s="%s"]`, browser.ID(id), name, quoted)
}

// open opens a file by clicks in the tree, folders on the way first.
func (d *desk) open(name string) {
	d.b.t.Helper()
	parts := strings.Split(name, "/")
	for i := range parts[:len(parts)-1] {
		folder := d.item(strings.Join(parts[:i+1], "/"))
		d.Wait(folder)
		if d.Attribute(folder, "aria-expanded") != "true" {
			d.Click(folder)
		}
	}
	d.Click(d.item(name))
	d.shows(name)
}

// shows waits until a file's tab is the chosen one and its text is there.
func (d *desk) shows(name string) {
	d.b.t.Helper()
	d.Wait(d.tab(name) + `[aria-selected="true"]`)
	d.Wait(browser.ID("editor-content"))
}

// cursor puts the cursor at a 1-based place by keys, and selects that many characters from there.
func (d *desk) cursor(line, character, selected int) {
	d.b.t.Helper()
	d.Click(browser.ID("editor-content"))
	d.Press("Control+Home")
	for range line - 1 {
		d.Press("ArrowDown")
	}
	for range character - 1 {
		d.Press("ArrowRight")
	}
	for range selected {
		d.Press("Shift+ArrowRight")
	}
	d.WaitText(browser.ID("status-position"), "Ln ")
}

// proposal waits until the page shows a proposal for a file.
func (d *desk) proposal(name string) {
	d.b.t.Helper()
	d.WaitText(browser.ID("diff-title"), filepath.Base(name))
	d.Wait(browser.ID("diff-new"))
}

// rewrite replaces the whole text of the proposal on show.
func (d *desk) rewrite(text string) {
	d.b.t.Helper()
	d.Click(browser.ID("diff-new"))
	d.Press("Control+a", "Delete")
	d.Type(text)
}

// noProposal waits until nothing waits any more.
func (d *desk) noProposal() {
	d.b.t.Helper()
	d.Gone(browser.ID("pane-review"))
	d.Gone(browser.ID("queue"))
}

// history shows the history and looks again until something is in it: an
// entry is written some time after its proposal was decided.
func (d *desk) history() {
	d.b.t.Helper()
	d.Click(browser.ID("open-history"))
	for deadline := time.Now().Add(second(60)); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if d.Has(browser.ID("history-item")) {
			return
		}
		d.Click(browser.ID("history-refresh"))
	}
	d.b.t.Fatal("the history stays empty")
}

// origin is scheme and host of the page's address.
func (c *companion) origin() string {
	u, err := url.Parse(c.Page)
	if err != nil {
		c.b.t.Fatal(err)
	}
	return u.Scheme + "://" + u.Host
}

// result is the single result that the model was told from request n on.
func result(t *testing.T, s *cli.Session, n int) model.FunctionResponse {
	t.Helper()
	all := s.Results(n)
	if len(all) != 1 {
		t.Fatalf("the model got %d results, want 1: %v", len(all), all)
	}
	return all[0]
}
