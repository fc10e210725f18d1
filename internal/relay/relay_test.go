package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/child"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/client/clienttest"
)

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// TestMain lets this binary be the relay and the editors that the tests kill.
func TestMain(m *testing.M) {
	switch os.Getenv("RELAY_TEST") {
	case "relay":
		w := &client.World{Temp: os.Getenv("RELAY_TMP")}
		if err := Run(context.Background(), Options{In: os.Stdin, Out: os.Stdout, World: w, Version: "test"}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "editor":
		beEditor()
	default:
		os.Exit(m.Run())
	}
}

// beEditor is a companion that does what it reads, a word a line, and says what it sees.
func beEditor() {
	port, _ := strconv.Atoi(os.Getenv("RELAY_PORT"))
	c, err := clienttest.Start(clienttest.Options{Base: os.Getenv("RELAY_TMP"), Port: port, Token: clienttest.DefaultToken + strconv.Itoa(os.Getpid()), Change: func(o *mcp.Options) { o.Retry = 100 * time.Millisecond }})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("port", c.Port)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "diff": // wait for one, and say its text
			for len(c.Registry.Pending()) == 0 {
				time.Sleep(5 * time.Millisecond)
			}
			p := c.Registry.Pending()[0].Proposal()
			fmt.Printf("diff %s %q\n", p.Key, p.New)
		case "accept":
			d := c.Registry.Pending()[0]
			_ = c.Registry.Accept(d.ID(), d.Now().Seen, nil)
			fmt.Println("done")
		case "count":
			fmt.Println("count", len(c.Registry.Pending()))
		}
	}
	_ = c.Stop()
}

// An editor is a companion in a process of its own.
type editor struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startEditor(t *testing.T, base string) *editor {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RELAY_TEST=editor", "RELAY_TMP="+base)
	cmd.Stderr = os.Stderr
	in, out := child.Start(t, cmd)
	e := &editor{t, cmd, in, bufio.NewScanner(out)}
	t.Cleanup(e.kill)
	if !strings.HasPrefix(e.line(), "port ") {
		t.Fatal("the editor does not start")
	}
	return e
}

func (e *editor) line() string {
	if !e.out.Scan() {
		e.t.Fatal("the editor has ended")
	}
	return e.out.Text()
}

func (e *editor) do(what string) string {
	e.t.Helper()
	fmt.Fprintln(e.in, what)
	return e.line()
}

func (e *editor) kill() {
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait()
}

// stop ends it in order.
func (e *editor) stop() {
	e.in.Close()
	_ = e.cmd.Wait()
}

// A cli is a CLI that has started a relay.
type cli struct {
	*client.Client
	t        *testing.T
	mu       sync.Mutex
	contexts int
	faults   []error
}

func newBase(t *testing.T) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = os.MkdirAll(filepath.Join(base, "app"), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return base
}

func startCLI(t *testing.T, base string) *cli {
	t.Helper()
	c := &cli{t: t}
	c.Client = client.New(nil, &client.Options{
		OnContext: func(*client.Context) { c.mu.Lock(); c.contexts++; c.mu.Unlock() },
		OnFault:   func(err error) { c.mu.Lock(); c.faults = append(c.faults, err); c.mu.Unlock() },
	})
	t.Cleanup(c.Close)
	way := client.Way{Command: os.Args[0], Dir: filepath.Join(base, "app"), Env: append(os.Environ(), "RELAY_TEST=relay", "RELAY_TMP="+base)}
	if err := c.Join(t.Context(), way); err != nil {
		t.Fatal(err)
	}
	return c
}

// ready waits until the relay has joined the editor: what is proposed before waits for two seconds only.
func (c *cli) ready() *cli {
	c.t.Helper()
	c.until("the editor's context", func() bool { return c.seen() > 0 })
	return c
}

func (c *cli) seen() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.contexts
}

func (c *cli) until(what string, cond func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatal("it never comes to: " + what)
		}
	}
}

type answer struct {
	client.Outcome
	err error
}

func (c *cli) propose(path, content string) <-chan answer {
	done := make(chan answer, 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	go func() {
		defer cancel()
		out, err := c.OpenDiff(ctx, path, content)
		done <- answer{out, err}
	}()
	return done
}

// whole fails when the CLI was ever disturbed.
func (c *cli) whole() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.Status(); s.State != client.Connected || len(c.faults) > 0 {
		c.t.Errorf("%+v, %v", s, c.faults)
	}
}

// SPEC K-4: what the editor says reaches the CLI, and the other way round, byte for byte.
func TestPassesOn(t *testing.T) {
	t.Parallel()
	base := newBase(t)
	e := startEditor(t, base)
	c := startCLI(t, base)
	if !c.Diffing() {
		t.Error("no diffs")
	}
	c.until("a context", func() bool { return c.seen() > 0 })
	const text = "<b> & \u2028 \r\n\ttab 😀 \\ \" no newline"
	done := c.propose("/x/<a>.txt", text)
	if got, want := e.do("diff"), fmt.Sprintf("diff /x/<a>.txt %q", text); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	e.do("accept")
	if a := <-done; a.err != nil || !a.Accepted || *a.Content != text {
		t.Errorf("%+v", a)
	}
	c.whole()
}

// An editor that is killed with an open diff is replaced by another one, on another port with another
// token: the diff stands there again, and has one outcome.
func TestEditorKilled(t *testing.T) {
	t.Parallel()
	base := newBase(t)
	first := startEditor(t, base)
	c := startCLI(t, base).ready()
	done := c.propose("/x/a.txt", "new")
	first.do("diff")
	first.kill()
	second := startEditor(t, base)
	if got := second.do("diff"); got != `diff /x/a.txt "new"` {
		t.Errorf("%s", got)
	}
	if got := second.do("count"); got != "count 1" {
		t.Errorf("%s", got)
	}
	second.do("accept")
	if a := <-done; a.err != nil || !a.Accepted || *a.Content != "new" {
		t.Errorf("%+v", a)
	}
	c.whole()
}

// An editor that stops in order rejects what is open: that is a real outcome. The next one serves the next diff.
func TestEditorStopped(t *testing.T) {
	t.Parallel()
	base := newBase(t)
	first := startEditor(t, base)
	c := startCLI(t, base).ready()
	n := c.seen()
	done := c.propose("/x/a.txt", "new")
	first.do("diff")
	first.stop()
	if a := <-done; a.err != nil || a.Accepted {
		t.Errorf("%+v", a)
	}
	second := startEditor(t, base)
	c.until("no context, and that of the second editor", func() bool { return c.seen() >= n+2 })
	done = c.propose("/x/b.txt", "new")
	second.do("diff")
	second.do("accept")
	if a := <-done; a.err != nil || !a.Accepted {
		t.Errorf("%+v", a)
	}
	c.whole()
}

// Without an editor the CLI is connected and asks in the terminal; one that comes later is found.
func TestNoEditor(t *testing.T) {
	t.Parallel()
	base := newBase(t)
	dead := discovery.NewPlace(filepath.Join(base, "gemini", "ide"), os.Getpid(), 9)
	if err := dead.Put(&discovery.File{Port: 9, Roots: []string{base}, Token: "t"}); err != nil {
		t.Fatal(err)
	}
	c := startCLI(t, base)
	var refused *client.RefusedError
	if a := <-c.propose("/x/a.txt", "new"); !errors.As(a.err, &refused) || !strings.Contains(refused.Reason, "terminal") {
		t.Errorf("%+v", a)
	}
	e := startEditor(t, base)
	c.until("a context", func() bool { return c.seen() > 0 })
	done := c.propose("/x/b.txt", "new")
	e.do("diff")
	e.do("accept")
	if a := <-done; a.err != nil || !a.Accepted {
		t.Errorf("%+v", a)
	}
	c.whole()
}

// The user may answer in the terminal while the editor is gone.
func TestAnswerInTheTerminal(t *testing.T) {
	t.Parallel()
	base := newBase(t)
	e := startEditor(t, base)
	c := startCLI(t, base).ready()
	done := c.propose("/x/a.txt", "new")
	e.do("diff")
	e.kill()
	c.until("the loss", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return c.Resolve(ctx, "/x/a.txt", true) == nil
	})
	if a := <-done; a.err != nil || !a.Accepted || a.Content != nil {
		t.Errorf("%+v", a)
	}
	c.whole()
}

// The end of the CLI ends the relay, and the editor is not left with its diff.
func TestEnd(t *testing.T) {
	t.Parallel()
	base := newBase(t)
	e := startEditor(t, base)
	c := startCLI(t, base).ready()
	done := c.propose("/x/a.txt", "new")
	e.do("diff")
	c.Close()
	c.until("no diff", func() bool { return e.do("count") == "count 0" })
	select {
	case a := <-done:
		if a.Accepted {
			t.Errorf("%+v", a)
		}
	default: // it waits for an outcome that no longer comes, as the CLI would
	}
}

func TestInstall(t *testing.T) {
	t.Setenv("TMPDIR", newBase(t))
	t.Setenv("TEMP", os.Getenv("TMPDIR"))
	if _, _, err := discovery.PutRelay("pollux", false); err == nil {
		t.Error("a program that is not absolute was taken")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if changed, path, err := discovery.PutRelay(program, true); err != nil || !changed {
		t.Errorf("dry run: %s, %v", path, err)
	}
	for _, want := range []bool{true, false} {
		if changed, path, err := discovery.PutRelay(program, false); err != nil || changed != want {
			t.Errorf("%s: %v, %v", path, changed, err)
		}
	}
	c := client.Choose(&client.World{Temp: discovery.TempDir(), Dir: t.TempDir(), Environ: []string{}})
	ways := c.Ways(&client.World{Temp: discovery.TempDir(), Environ: []string{}})
	if c.IDE == nil || c.IDE.DisplayName != "Pollux" || len(ways) != 1 || ways[0].Command != program || strings.Join(ways[0].Args, " ") != "relay --tmp "+discovery.TempDir() {
		t.Errorf("a CLI takes %+v, %+v", c, ways)
	}
	for _, want := range []bool{true, false} {
		if removed, path, err := discovery.RemoveRelay(false); err != nil || removed != want {
			t.Errorf("%s: %v, %v", path, removed, err)
		}
	}
}

func FuzzTake(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":"/a"}}}`))
	f.Add([]byte(`{"id":"x","method":"initialize"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := &relay{o: Options{Out: io.Discard}, changed: make(chan struct{}), ready: make(chan struct{})}
		r.handle(ctx, data)
		r.work.Wait()
	})
}
