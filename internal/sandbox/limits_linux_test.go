package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox/cgroup"
	"github.com/pollux-companion/pollux/internal/words"
)

// TestLimits: each limit ends the command that exceeds it, and the result names it.
func TestLimits(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		limits Limits
		kind   string // of the LimitError; "" if the kernel refuses or signals instead
		code   int
		output string
	}{
		"time":             {"sleep 1000", Limits{Time: 200 * time.Millisecond}, limitTime, 137, ""},
		"output":           {"yes", Limits{Output: 64 * kib}, limitOutput, 137, strings.Repeat("y\n", 32*kib)},
		"standard error":   {"yes >&2", Limits{Output: 64 * kib}, limitOutput, 137, ""},
		"memory":           {`x=$(yes | head -c 300000000); sleep 1000; :`, Limits{Memory: 64 * mib}, limitMemory, 137, ""},
		"many processes":   {`for i in 1 2 3 4 5 6 7 8; do (x=$(yes | head -c 30000000); sleep 1000; :) & done; wait`, Limits{Memory: 128 * mib}, limitMemory, 137, ""},
		"processor":        {"while :; do :; done", Limits{CPU: time.Second}, limitCPU, 137, ""},
		"another's":        {"(while :; do :; done)", Limits{CPU: time.Second}, limitCPU, 137, ""},
		"ignored":          {"trap '' XCPU; while :; do :; done", Limits{CPU: time.Second}, limitCPU, 137, ""},
		"file":             {"exec head -c 1000000 /dev/zero >/tmp/x", Limits{FileSize: 1000}, limitFile, 137, ""},
		"the same by hand": {"exit 152", Limits{CPU: time.Minute}, "", 152, ""},
		"file size":        {"head -c 1000000 /dev/zero >/tmp/x; echo $?; stat -c %s /tmp/x", Limits{FileSize: 1000}, "", 0, "153\n1000\n"},
		"scratch":          {"head -c 4000000 /dev/zero >/tmp/x && echo all", Limits{Scratch: mib}, "", 1, ""},
		"private home":     {"head -c 4000000 /dev/zero >$HOME/x && echo all", Limits{Scratch: mib}, "", 1, ""},
		"shared memory":    {"head -c 4000000 /dev/zero >/dev/shm/x && echo all", Limits{Scratch: mib}, "", 1, ""},
		"files":            {"ulimit -n", Limits{Files: 99}, "", 0, "99\n"},
		"not to be raised": {"ulimit -n 5000 && echo raised; true", Limits{Files: 99}, "", 0, ""},
		"processes":        {`i=0; while [ $i -lt 400 ]; do sleep 1000 & i=$((i+1)); done; echo all`, Limits{Processes: 301}, "", 2, ""},
		"none":             {"exit 3", Limits{}, "", 3, ""},
		"signal":           {"kill -TERM $$", Limits{}, "", 143, ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			r := runIn(t, New(nil), Policy{}, Command{Args: []string{"sh", "-c", test.script}, Limits: test.limits})
			kind := ""
			if r.Limit != nil {
				kind = r.Limit.Kind
			}
			if kind != test.kind || r.Code != test.code || string(r.Stdout) != test.output {
				t.Errorf("limit %q, exit code %d, output %.100q; want %q, %d, %.100q\n%s", kind, r.Code, r.Stdout, test.kind, test.code, test.output, words.Clip(string(r.Stderr), 500))
			}
			if took := time.Since(begun); took > testTime-time.Second {
				t.Errorf("it took %v", took)
			}
			if r.Limit != nil && !strings.Contains(r.Limit.Error(), "limit") {
				t.Errorf("it says %q", r.Limit)
			}
		})
	}
}

// TestForkBomb: the time limit ends it, and the machine stays usable.
func TestForkBomb(t *testing.T) {
	mark := marker(t)
	r := runIn(t, New(nil), Policy{}, Command{Args: []string{"sh", "-c", `b() { b | b & }; b; sleep ` + mark}, Limits: Limits{Time: time.Second, Processes: 301}})
	if r.Code == 0 {
		t.Errorf("%+v", r)
	}
	nobody(t, mark)
}

// TestStdin: input comes as it was given, and a command that reads none is not waited for.
func TestStdin(t *testing.T) {
	r := runIn(t, New(nil), Policy{}, Command{Args: []string{"cat"}, Stdin: strings.NewReader("input")})
	if string(r.Stdout) != "input" {
		t.Errorf("%q", r.Stdout)
	}
	endless, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if r := runIn(t, New(nil), Policy{}, Command{Args: []string{"true"}, Stdin: endless}); r.Code != 0 {
		t.Errorf("%+v", r)
	}
	if r := runIn(t, New(nil), Policy{}, Command{Args: []string{"cat"}}); len(r.Stdout) != 0 || r.Code != 0 {
		t.Errorf("%+v", r)
	}
}

// TestEnvironment: the command gets listed variables, not pollux's environment.
func TestEnvironment(t *testing.T) {
	t.Setenv("SANDBOX_TEST_TOKEN", "secret")
	r := runIn(t, New(nil), Policy{}, Command{Args: []string{"env"}, Env: []string{"GIVEN=1"}})
	if out := string(r.Stdout); strings.Contains(out, "secret") || !strings.Contains(out, "GIVEN=1\n") || !strings.Contains(out, "TMPDIR=/tmp\n") || strings.Contains(out, "PROXY") {
		t.Error(out)
	}
}

// marker returns a word that identifies the processes of a test: a number of seconds, so that a sleep can carry it.
func marker(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("1000.%d%d", os.Getpid(), time.Now().UnixNano())
}

// marked lists the processes with a word in their command lines.
func marked(mark string) (all []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), mark) {
			all = append(all, f)
		}
	}
	return all
}

// nobody waits until no marked process is left. It should be immediate.
func nobody(t *testing.T, mark string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for len(marked(mark)) > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("left over: %q", marked(mark))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// daemon is a script that leaves processes behind in every known way.
func daemon(mark string) []string {
	return []string{"sh", "-c", `(setsid sh -c "sleep ` + mark + `; :" >/dev/null 2>&1 &)
		nohup setsid sh -c "trap '' TERM HUP INT; sleep ` + mark + `; :" & echo started; shift; "$@"`, "sh", mark}
}

// leftovers lists what a run could leave: mounts, temporary folders (in a folder of the test's own: ownTemp), control
// groups of this process and of dead ones.
func leftovers(t *testing.T) []string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	all := []string{string(mounts)}
	for _, pattern := range []string{filepath.Join(os.TempDir(), "pollux-sandbox-*"), "/sys/fs/cgroup/*/" + cgroup.Prefix + "*", "/sys/fs/cgroup/*/*/*/*/" + cgroup.Prefix + "*"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			maker, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(f), cgroup.Prefix), "-")
			if pid, err := strconv.Atoi(maker); err == nil && pid != os.Getpid() && exists("/proc/"+maker) {
				continue // it belongs to another package's test
			}
			all = append(all, f)
		}
	}
	return all
}

// ownTemp gives a test, and what it starts, a temporary folder of its own.
func ownTemp(t *testing.T) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
}

// TestNothingSurvives: nothing is left after success, failure, a limit, a cancelled context or kill -9 of pollux
// (SPEC S-1).
func TestNothingSurvives(t *testing.T) {
	ownTemp(t)
	before := strings.Join(leftovers(t), "\n")
	goroutines := runtime.NumGoroutine()
	for name, test := range map[string]struct {
		last   []string
		policy Policy
		limits Limits
	}{
		"success": {last: []string{"true"}},
		"failure": {last: []string{"false"}},
		"signal":  {last: []string{"sh", "-c", "kill -9 $PPID"}},
		"time":    {last: []string{"sleep", "1001"}, limits: Limits{Time: 300 * time.Millisecond}},
		"output":  {last: []string{"yes"}, limits: Limits{Output: 1000}},
		"hosts":   {last: []string{"true"}, policy: Policy{Hosts: hosts(t, "https://example.com")}},
	} {
		t.Run(name, func(t *testing.T) {
			mark := marker(t)
			runIn(t, New(nil), test.policy, Command{Args: append(daemon(mark), test.last...), Limits: test.limits})
			nobody(t, mark)
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		mark := marker(t)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(200*time.Millisecond, cancel)
		if _, err := New(nil).Run(ctx, Policy{}, Command{Args: append(daemon(mark), "sleep", mark)}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		nobody(t, mark)
	})
	for _, kind := range []string{"full", "reduced"} {
		t.Run("killed-"+kind, func(t *testing.T) { killed(t, kind) })
	}
	deadline := time.Now().Add(30 * time.Second)
	for strings.Join(leftovers(t), "\n") != before {
		if time.Now().After(deadline) {
			t.Fatalf("before:\n%s\nafter:\n%s", before, strings.Join(leftovers(t), "\n"))
		}
		time.Sleep(5 * time.Millisecond)
	}
	for runtime.NumGoroutine() > goroutines && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
}

// killed kills a pollux that runs a command, and checks what is left.
func killed(t *testing.T, kind string) {
	mark := marker(t)
	cmd := exec.Command("/proc/self/exe", "-victim", mark)
	cmd.Env = append(os.Environ(), "VICTIM="+kind)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	word := make([]byte, len("started"))
	if _, err := out.Read(word); err != nil || string(word) != "started" {
		t.Errorf("%q %v", word, err)
	}
	if len(marked(mark)) < 3 {
		t.Errorf("only %q runs", marked(mark))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	nobody(t, mark)
}

// runVictim is a pollux that is about to be killed.
func runVictim(mark string) int {
	if mark == "pool" {
		return runPoolVictim()
	}
	if dir, ok := strings.CutPrefix(mark, "writer:"); ok {
		return runWriter(dir)
	}
	s := New(nil)
	c := Command{Args: append(daemon(mark), "sleep", mark), Stdout: os.Stdout}
	c.Limits = c.Limits.filled()
	_, err := s.runOnce(context.Background(), Policy{}, c, os.Getenv("VICTIM") == "reduced")
	fmt.Println(err)
	return 1
}

// hosts parses entries of a policy.
func hosts(t testing.TB, texts ...string) (all []permission.Host) {
	t.Helper()
	for _, text := range texts {
		h, err := permission.ParseHost(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	return all
}

// TestReduced: without namespaces, reading follows the policy, and writing and the network are impossible. Policies
// that it cannot keep are refused.
func TestReduced(t *testing.T) {
	ownTemp(t)
	p := newPlace(t)
	for _, test := range []struct {
		policy Policy
		script string
		code   int
	}{
		{Policy{}, "echo hello | grep -q hello && echo x >$TMPDIR/x && cat $TMPDIR/x", 0},
		{Policy{}, "cat ../notes", 1},
		{Policy{}, "cat code", 1},
		{Policy{Read: permission.Workspace}, "cat code", 0},
		{Policy{Read: permission.Workspace}, "echo x >code", 2},
		{Policy{Read: permission.Workspace}, "chmod 777 code", 1},
		{Policy{Read: permission.Workspace}, "touch code", 1},
		{Policy{Read: permission.Workspace}, "cat ../.ssh/id", 1},
	} {
		c := Command{Args: []string{"sh", "-c", "cd " + p.workspace + " 2>/dev/null; " + test.script}, Workspace: p.workspace}
		c.Limits = c.Limits.filled()
		r, err := p.s.runOnce(context.Background(), test.policy, c, true)
		if err != nil {
			t.Fatal(err)
		}
		if r.Code != test.code || r.Assurance != Reduced {
			t.Errorf("%v %s: %d %s", test.policy, test.script, r.Code, r.Stderr)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "pollux-sandbox-*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// TestParallel: simultaneous runs do not see or hinder each other.
func TestParallel(t *testing.T) {
	s := New(nil)
	for i := range 40 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			r := runIn(t, s, Policy{}, Command{Args: []string{"sh", "-c", "echo $0 >/tmp/x$0; echo /tmp/x*; cat /tmp/x$0; ls -d /proc/[0-9]* | wc -l", fmt.Sprint(i)}})
			if want := fmt.Sprintf("/tmp/x%d\n%d\n", i, i); !strings.HasPrefix(string(r.Stdout), want) || r.Code != 0 {
				t.Errorf("%d %q %s", r.Code, r.Stdout, r.Stderr)
			}
		})
	}
}
