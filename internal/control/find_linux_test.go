package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/e2e/child"
	"github.com/pollux-companion/pollux/e2e/ended"
	"github.com/pollux-companion/pollux/internal/ownpipe"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/usertest"
)

// TestMain is also a companion in a process of its own, which claims to be newer, until its standard input ends.
func TestMain(m *testing.M) {
	ended.Main()
	if dirs := os.Getenv("POLLUX_TEST_DECIDE"); dirs != "" {
		fmt.Println(MayDecide(context.Background(), strings.Fields(dirs)))
		return
	}
	if path := os.Getenv("POLLUX_TEST_FILL"); path != "" {
		for range 2 * maxPeers {
			if _, err := net.Dial("unix", path); err != nil {
				panic(err)
			}
		}
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	if dumpable := os.Getenv("POLLUX_TEST_DUMPABLE"); dumpable != "" {
		_ = syscall.Setresgid(usertest.ID, usertest.ID, usertest.ID)
		_ = syscall.Setresuid(usertest.ID, usertest.ID, usertest.ID)
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(dumpable[0]-'0'), 0, 0, 0)
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	dir := os.Getenv("POLLUX_TEST_SERVE")
	if dir == "" {
		os.Exit(m.Run())
	}
	f := &fake{reviewed: newReviewed(), status: Status{Editor: "agent's", Started: time.Unix(2, 0), Roots: strings.Fields(os.Getenv("POLLUX_TEST_ROOTS"))}}
	if err := listenFor(dir, f); err != nil {
		panic(err)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// listenFor serves f in dir. Where the program is asked to hide, a process listens that ends at once; its child answers.
func listenFor(dir string, f *fake) error {
	log := slog.New(slog.DiscardHandler)
	hide := os.Getenv("POLLUX_TEST_HIDE")
	switch hide {
	case "":
		_, err := Listen([]string{dir}, f, log)
		return err
	case "maker":
		ln, err := ownpipe.ListenIn([]string{dir}, socketSuffix)
		if err != nil {
			return err
		}
		socket, err := ln.(*net.UnixListener).File()
		if err != nil {
			return err
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.ExtraFiles = append(os.Environ(), "POLLUX_TEST_HIDE="+strconv.Itoa(os.Getpid())), []*os.File{socket}
		cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
		if err := cmd.Start(); err != nil {
			return err
		}
		os.Exit(0)
	}
	for maker, _ := strconv.Atoi(hide); proc.Alive(maker); {
		time.Sleep(time.Millisecond)
	}
	ln, err := net.FileListener(os.NewFile(3, "socket"))
	if err == nil {
		s := &Server{backend: f, log: log, ln: ln, conns: map[net.Conn]struct{}{}}
		s.done.Go(s.accept)
	}
	return err
}

// SPEC A-4: an agent's processes cannot keep a person's commands out.
func TestAgentFillsHalf(t *testing.T) {
	dirs := []string{shortDir(t)}
	s := listen(t, dirs, &fake{status: Status{PID: 5}})
	belowShell(t, "POLLUX_TEST_FILL="+s.Path(), "GEMINI_CLI=1")
	clients, silent := ListAll(t.Context(), dirs)
	if len(clients) != 1 || len(silent) != 0 {
		t.Fatalf("%d companions, %v", len(clients), silent)
	}
	clients[0].Close()
}

// served starts a companion below a shell, whose process it returns.
func served(t *testing.T, dir, roots, mark string) (shell int) {
	t.Helper()
	return belowShell(t, "POLLUX_TEST_SERVE="+dir, "POLLUX_TEST_ROOTS="+roots, mark)
}

// belowShell starts this program below a shell, and waits until it is ready.
func belowShell(t *testing.T, env ...string) (shell int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", os.Args[0]+"; true")
	cmd.Env = env
	in, out := child.Start(t, cmd)
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// SPEC §11.1: what a person's command talks to is no companion that an agent has started, be it pollux itself or a program that
// says so at a socket in the right place: it would show a reviewer what it likes, and env would send a CLI to it.
func TestFindLeavesOutAgents(t *testing.T) {
	const root = "/r/p"
	for name, tt := range map[string]struct {
		roots string // of the one that an agent has started
		mark  string // its
		below bool   // the person's knows its agent
		asks  string // this process's own mark
		alone bool   // there is no person's
		want  string
	}{
		"with a mark":                    {roots: root, mark: "GEMINI_CLI=1", want: "person's"},
		"with a mark, and a nearer root": {roots: root + " /r/p/sub", mark: "AI_AGENT=x", want: "person's"},
		"wiped, below a known agent":     {roots: root, mark: "X=1", below: true, want: "person's"},
		"wiped, nearer, below an agent":  {roots: "/r/p/sub", mark: "X=1", below: true, want: "person's"},
		"with a mark, alone":             {roots: root, mark: "CLAUDECODE=1", alone: true},
		"its socket's maker has ended":   {roots: root + " /r/p/sub", mark: "POLLUX_TEST_HIDE=maker", want: "person's"},
		"asked by the agent itself":      {roots: root, mark: "GEMINI_CLI=1", asks: "GEMINI_CLI", want: "agent's"},
		"another person's, newer":        {roots: root, mark: "X=1", want: "agent's"},
		"for another folder":             {roots: "/else", mark: "GEMINI_CLI=1", want: "person's"},
	} {
		t.Run(name, func(t *testing.T) {
			dirs := []string{shortDir(t)}
			shell := served(t, dirs[0], tt.roots, tt.mark)
			if !tt.alone {
				f := &fake{reviewed: newReviewed(), status: Status{Editor: "person's", Started: time.Unix(1, 0), Roots: []string{root}}}
				if tt.below {
					f.agent = shell
				}
				listen(t, dirs, f)
			}
			if tt.asks != "" {
				t.Setenv(tt.asks, "1")
			}
			c, err := Find(t.Context(), dirs, "/r/p/sub/x")
			if tt.want == "" {
				if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "an agent's own shell") {
					t.Errorf("%v, %v", c, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if c.Status.Editor != tt.want {
				t.Errorf("found the %s, want the %s", c.Status.Editor, tt.want)
			}
		})
	}
}

// SPEC §11.1: a companion whose process hides its environment, and so perhaps an agent's mark, from its own user counts as an agent's. Root sees
// through that, so it is tried as another user.
func TestHidesItsMarks(t *testing.T) {
	for dumpable, want := range map[string]bool{"0": true, "1": false} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "POLLUX_TEST_DUMPABLE="+dumpable)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 {
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatalf("%q, %v", line, err)
			}
		}
		usertest.Do(t, func() {
			server, _ := proc.Lookup(cmd.Process.Pid)
			c := &Client{server: server}
			if got := c.FromAgent(nil); got != want {
				t.Errorf("dumpable %s: an agent's: %v", dumpable, got)
			}
		})
		_ = in.Close()
		if cmd.Process != nil {
			_ = cmd.Wait()
		}
	}
}
