//go:build unix

package typein

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/pollux-companion/pollux/internal/peers"
)

// TestMain also serves as a terminal's host: it opens one for a script and shows it until its input ends.
func TestMain(m *testing.M) {
	if script := os.Getenv("HOST_SCRIPT"); script != "" {
		cmd := exec.Command("sh", "-c", script)
		screen, err := pty.Start(cmd)
		if err == nil {
			go func() { _, _ = io.Copy(io.Discard, screen) }()
			_, err = io.Copy(io.Discard, os.Stdin)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// host runs a script in a terminal shown by a program of this name, and returns the process that the script names.
func host(t *testing.T, name, script string, env ...string) int {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, name)
	if err := os.Link(self, program); err != nil {
		data, err := os.ReadFile(self)
		if err == nil {
			err = os.WriteFile(program, data, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "HOST_SCRIPT="+script)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	return pidIn(t, filepath.Join(dir, "pid"))
}

func pidIn(t *testing.T, file string) int {
	t.Helper()
	pid := 0
	until(t, "the process says its number", func() bool {
		data, err := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil && strings.HasSuffix(string(data), "\n") && pid > 0
	})
	return pid
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// named is a script that writes its PID to the file pid and waits for input.
const named = `echo $$ >pid.new; mv pid.new pid; cat; :`

// Nothing is typed into a terminal of an unknown program, one that the system does not reveal, or one that is not
// being read.
func TestNowhere(t *testing.T) {
	t.Parallel()
	apart := exec.Command("sleep", "60")
	apart.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := apart.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = apart.Process.Kill(); _ = apart.Wait() })
	for name, tt := range map[string]struct {
		pid  int
		want error
	}{
		"no process":         {1 << 30, ErrNoTerminal},
		"no terminal":        {apart.Process.Pid, ErrNoTerminal},
		"an unknown host":    {host(t, "someterm", named), ErrNoTerminal},
		"no variables":       {host(t, "kitty", named, "KITTY_WINDOW_ID=", "KITTY_LISTEN_ON="), nil},
		"in the background":  {host(t, "tmux", `bash -c 'set -m; sleep 60 & echo $! >pid.new; mv pid.new pid; exec cat'`), errBehind},
		"a suspended one":    {host(t, "tmux", `bash -c 'set -m; sh -c "echo \$\$ >pid.new; mv pid.new pid; kill -STOP \$\$"; exec cat'`), errBehind},
		"a variable's abuse": {host(t, "zellij", named, "ZELLIJ_PANE_ID=1 --help", "ZELLIJ_SESSION_NAME=x"), nil},
	} {
		var err error
		until(t, name, func() bool { // a shell takes its terminal back a moment after the suspension
			place, found := Find(tt.pid)
			if err = found; err == nil {
				_, err = place.Type(t.Context(), "@a.txt ")
			}
			return err != nil && (tt.want == nil || errors.Is(err, tt.want))
		})
		t.Logf("%s: %v", name, err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"@a.txt ", "@a b.txt lines 1-2 why so? ", "é漢😀", strings.Repeat("x", maxText)} {
		if err := Check(good); err != nil {
			t.Errorf("%.20q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "a\n", "a\r", "\x1b[201~rm", "a\tb", "\x03", "a\x00b", "a\x7f", "\u009b31m", "\xff", "\u2028", "a\u202eb", strings.Repeat("x", maxText+1)} {
		if err := Check(bad); !errors.Is(err, errText) {
			t.Errorf("%.20q: %v", bad, err)
		}
		if _, err := (Place{}).Type(t.Context(), bad); !errors.Is(err, errText) {
			t.Errorf("%.20q is typed: %v", bad, err)
		}
	}
}

// tmux pastes in brackets if the program asks for them, whatever the text, and never presses Enter.
func TestTmux(t *testing.T) {
	peers.Need(t, peers.Tmux)
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	tmux := func(args ...string) {
		t.Helper()
		cmd := exec.Command("tmux", append([]string{"-S", socket, "-f", "/dev/null"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("tmux %q: %v\n%s", args, err, out)
		}
	}
	text := "@a\\ b.txt lines 1-2 $HOME `x` #{pane_id} ^M \\r %1 'é😀' "
	tmux("new-session", "-d", "-s", "x", "stty raw -echo; printf '\\033[?2004h'; echo $$ >pid.new; mv pid.new pid; cat >brackets; :")
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", socket, "kill-server").Run() })
	first := pidIn(t, filepath.Join(dir, "pid"))
	tmux("new-window", "-d", "-t", "x", "stty raw -echo; echo $$ >pid2.new; mv pid2.new pid2; cat >plain; :")
	for pid, want := range map[int]struct{ file, bytes string }{
		first:                                {"brackets", "\x1b[200~" + text + "\x1b[201~"},
		pidIn(t, filepath.Join(dir, "pid2")): {"plain", text},
	} {
		place, err := Find(pid)
		if err != nil {
			t.Fatal(err)
		}
		if by, err := place.Type(t.Context(), text); err != nil || by != "tmux" {
			t.Fatalf("%s, %v", by, err)
		}
		var got []byte
		until(t, want.file, func() bool {
			got, _ = os.ReadFile(filepath.Join(dir, want.file))
			return len(got) >= len(want.bytes)
		})
		if string(got) != want.bytes {
			t.Errorf("%s: %q, want %q", want.file, got, want.bytes)
		}
	}
}

// screen types the text as it is, however long, and never presses Enter. It knows no brackets.
func TestScreen(t *testing.T) {
	peers.Need(t, peers.Screen)
	dir := t.TempDir()
	t.Setenv("SCREENDIR", filepath.Join(dir, "s"))
	if err := os.Mkdir(filepath.Join(dir, "s"), 0o700); err != nil {
		t.Fatal(err)
	}
	// As the daemon of a session: -D -m makes no other process of it.
	cmd := exec.Command("screen", "-D", "-m", "-U", "-c", "/dev/null", "-S", "a session", "sh", "-c", "stty raw -echo; echo $$ >pid.new; mv pid.new pid; cat >plain; :")
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	place, err := Find(pidIn(t, filepath.Join(dir, "pid")))
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, text := range []string{"@a\\ b.txt lines 1-2 $HOME `x` %1 #{x} ^M \\r \\015 'é😀' \"q\" ", strings.Repeat("0123456789", 300), strings.Repeat("$😀^", 200)} {
		if by, err := place.Type(t.Context(), text); err != nil || by != "screen" {
			t.Fatalf("%s, %v", by, err)
		}
		want += text
		var got []byte
		until(t, "the text", func() bool {
			got, _ = os.ReadFile(filepath.Join(dir, "plain"))
			return len(got) >= len(want)
		})
		if string(got) != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}

// The other terminals, with stand-ins for their programs: each receives the pane that the terminal named, and the
// text unchanged.
func TestOthers(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	said := filepath.Join(bin, "said")
	for _, name := range []string{"screen", "zellij", "kitty", "wezterm"} {
		script := "#!/bin/sh\n{ printf '<%s>' \"$0\" \"$@\"; printf '|'; cat; printf '|%s' \"$WEZTERM_UNIX_SOCKET\"; } >" + said + "\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const text = `@a\ b.txt "quoted" $HOME ^[ `
	for name, tt := range map[string]struct {
		env  []string
		want string
	}{
		"screen":             {[]string{"STY=12.x", "WINDOW=3"}, `<-S><12.x><-p><3><-X><stuff><@a\\ b.txt "quoted" \044HOME \^[ >||`},
		"zellij":             {[]string{"ZELLIJ_SESSION_NAME=my one", "ZELLIJ_PANE_ID=7"}, `<--session><my one><action><write-chars><--pane-id><terminal_7><--><` + text + `>||`},
		"kitty":              {[]string{"KITTY_LISTEN_ON=unix:/tmp/k", "KITTY_WINDOW_ID=2"}, `<@><--to><unix:/tmp/k><send-text><--match><id:2><--bracketed-paste><auto><--stdin>|` + text + `|`},
		"wezterm-mux-server": {[]string{"WEZTERM_PANE=5", "WEZTERM_UNIX_SOCKET=/s"}, `<cli><--no-auto-start><send-text><--pane-id><5>|` + text + `|/s`},
		"wezterm-gui":        {[]string{"WEZTERM_PANE=6", "WEZTERM_UNIX_SOCKET=/s"}, `<cli><--no-auto-start><send-text><--pane-id><6>|` + text + `|/s`},
	} {
		place, err := Find(host(t, name, named, tt.env...))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := place.Type(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		data, _ := os.ReadFile(said)
		if _, rest, _ := strings.Cut(string(data), ">"); rest != tt.want {
			t.Errorf("%s was told\n%s, want\n%s", name, rest, tt.want)
		}
	}
}
