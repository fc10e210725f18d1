package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/sandbox/escapes"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestMain puts this binary into PATH as pollux.
func TestMain(m *testing.M) {
	agent.Main()
	escapes.Probe()
	testscript.Main(m, map[string]func(){
		"pollux": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// patience is how long a test waits for something that must happen. The product has a second (SPEC L-1, L-2).
const patience = 30 * time.Second

// A world is a test user: home, temporary folder, a project.
type world struct {
	t          *testing.T
	root       string
	project    string
	tmp, state string
	env        []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	// Children inherit an ignored hangup (nohup go test), but not a caught one.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangup) })
	root, err := os.MkdirTemp("", "px") // short, for the socket in it
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	w := &world{t: t, root: root}
	for name, dir := range map[string]*string{"p": &w.project, "t": &w.tmp, "s": &w.state} {
		*dir = filepath.Join(root, name)
		if err := os.Mkdir(*dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.configure(`{"keep": false}`) // no test leaves a process behind
	w.env = append(os.Environ(), "HOME="+root, "CLAUDE_CONFIG_DIR=", "QWEN_HOME=", "TMPDIR="+w.tmp, "TMP=", "TEMP=", "XDG_STATE_HOME="+w.state, "XDG_CONFIG_HOME="+root+"/c",
		"XDG_RUNTIME_DIR="+root+"/r", "DISPLAY=", "WAYLAND_DISPLAY=", "SHELL=/bin/sh", "GORACE=atexit_sleep_ms=0")
	return w
}

// configure writes the user's settings.
func (w *world) configure(settings string) {
	w.t.Helper()
	dir := filepath.Join(w.root, "c", "pollux")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(settings), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// ide returns the folder of the discovery files.
func (w *world) ide() string { return filepath.Join(w.tmp, "gemini", "ide") }

// files lists the discovery files.
func (w *world) files() []string {
	names, err := filepath.Glob(filepath.Join(w.ide(), "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return names
}

// leftovers lists files that must not outlive a companion: discovery files, sockets, redirect files.
func (w *world) leftovers() []string {
	left := w.files()
	filepath.WalkDir(w.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, ".sock") || strings.HasSuffix(path, ".html") || strings.Contains(path, ".pollux-tmp")) {
			left = append(left, path)
		}
		return nil
	})
	return left
}

// command prepares a pollux in the project.
func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command("pollux", args...)
	cmd.Dir, cmd.Env = w.project, w.env
	return cmd
}

// ready is the output line of serve --json.
type ready struct {
	PID           int      `json:"pid"`
	Port          int      `json:"port"`
	Workspace     []string `json:"workspace"`
	DiscoveryFile string   `json:"discoveryFile"`
	Page          string   `json:"page"`
	Resumed       bool     `json:"resumed"`
	AlsoServedBy  []int    `json:"alsoServedBy"`
}

// A live companion runs in its own process.
type live struct {
	ready
	t      *testing.T
	cmd    *exec.Cmd
	stderr *strings.Builder
	ended  chan struct{} // closed when the process has been waited for
}

// in runs a pollux in a folder and returns its output and exit code.
func (w *world) in(dir string, env []string, args ...string) (string, int) {
	w.t.Helper()
	cmd := w.command(args...)
	cmd.Dir, cmd.Env = dir, append(slices.Clip(w.env), env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, _ := cmd.Output()
	if errs.Len() > 0 {
		w.t.Logf("pollux %v: %s", args, &errs)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// serve starts a companion and waits until it is ready.
func (w *world) serve(args ...string) *live {
	w.t.Helper()
	return w.start(w.command(append([]string{"serve", "--no-open", "--json"}, args...)...))
}

func (w *world) start(cmd *exec.Cmd) *live {
	w.t.Helper()
	l := &live{t: w.t, cmd: cmd, stderr: &strings.Builder{}, ended: make(chan struct{})}
	cmd.Stderr = l.stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	timer.Stop()
	if err == nil {
		err = json.Unmarshal(line, &l.ready)
	}
	go func() { cmd.Wait(); close(l.ended) }()
	w.t.Cleanup(func() { cmd.Process.Kill(); <-l.ended })
	if err != nil {
		cmd.Process.Kill()
		<-l.ended
		w.t.Fatalf("no companion: %v\n%s", err, l.stderr)
	}
	return l
}

// signal sends a signal and waits for the end, which must come within a second.
func (l *live) signal(sig syscall.Signal) {
	l.t.Helper()
	watch := pace.Start(l.t)
	if err := l.cmd.Process.Signal(sig); err != nil {
		l.t.Fatal(err)
	}
	l.wait(watch)
}

// wait waits for the end, which must come within a second of the watch's start.
func (l *live) wait(watch *pace.Watch) {
	l.t.Helper()
	select {
	case <-l.ended:
	case <-time.After(patience):
		l.t.Fatal("it does not end")
	}
	if took := watch.Took(); took > pace.Slack*time.Second {
		l.t.Errorf("it took %v to end", took)
	}
}

// eventually polls for an effect of another process.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came: %s", what)
		}
	}
}

func exists(path string) bool { _, err := os.Lstat(path); return !errors.Is(err, fs.ErrNotExist) }

// token returns the token in a companion's discovery file.
func (l *live) token() string {
	l.t.Helper()
	data, err := os.ReadFile(l.DiscoveryFile)
	var f struct{ AuthToken string }
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil || len(f.AuthToken) < 43 {
		l.t.Fatalf("no token in %s: %v", data, err)
	}
	return f.AuthToken
}

// control joins the companion's control channel.
func (w *world) control() *control.Client {
	w.t.Helper()
	c, err := control.Find(w.t.Context(), []string{filepath.Join(w.root, "r", "pollux")}, w.project)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}
