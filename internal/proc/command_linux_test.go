package proc

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	line, ok := Command(os.Getpid())
	if !ok || !strings.HasPrefix(line, os.Args[0]) {
		t.Errorf("Command of this process: %q, %v; want %q first", line, ok, os.Args[0])
	}
	if line, ok := Command(2); ok && os.Getuid() == 0 && line == "" {
		t.Error("a process without a command line has no name either")
	}
	for _, pid := range []int{0, -1, 1 << 30} {
		if line, ok := Command(pid); ok {
			t.Errorf("process %d: %q", pid, line)
		}
	}
	if got := splitWords([]byte("bash\x00-c\x00a b\x00")); !slices.Equal(got, []string{"bash", "-c", "a b"}) {
		t.Errorf("words: %q", got)
	}
}

func TestEnviron(t *testing.T) {
	t.Parallel()
	cmd := start(t, "sleep")
	env, err := Environ(cmd.Process.Pid)
	// Start returns a moment before the system shows the new program's environment.
	for end := time.Now().Add(30 * time.Second); (err != nil || len(env) == 0) && time.Now().Before(end); time.Sleep(time.Millisecond) {
		env, err = Environ(cmd.Process.Pid)
	}
	if err != nil {
		t.Error(err)
	}
	here, _ := os.Getwd()
	if dir, err := Dir(cmd.Process.Pid); err != nil || dir != here {
		t.Errorf("dir %q, want %q (%v)", dir, here, err)
	}
	found := false
	for _, e := range env {
		found = found || e == "PROC_TEST=sleep"
	}
	if !found {
		t.Errorf("the environment lacks what it was given: %d entries", len(env))
	}
	for _, pid := range []int{0, -1, 1 << 30} {
		if _, err := Environ(pid); err == nil {
			t.Error("no process has an environment")
		}
		if _, err := Dir(pid); err == nil {
			t.Error("no process has a folder")
		}
	}
}
