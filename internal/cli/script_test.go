package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pollux-companion/pollux/internal/pace"
)

// TestScript runs testdata/script: what a user types and what pollux prints.
func TestScript(t *testing.T) {
	pace.NotRaced(t, "each command is a process of its own, and shares its memory with no other")
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			// A separate folder, because names below testscript's are too long for a socket.
			root, err := os.MkdirTemp("", "px")
			if err != nil {
				return err
			}
			env.Defer(func() { os.RemoveAll(root) })
			for _, name := range []string{"HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"} {
				dir := filepath.Join(root, strings.ToLower(name))
				if err := os.Mkdir(dir, 0o700); err != nil {
					return err
				}
				env.Setenv(name, dir)
			}
			if program, err := exec.LookPath("pollux"); err == nil {
				env.Setenv("POLLUX", program)
			}
			env.Setenv("NO_COLOR", "")
			env.Setenv("CLAUDE_CONFIG_DIR", "")
			env.Setenv("QWEN_HOME", "")
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exitcode": exitCode,
			"nothing":  nothingLeft,
			"readonly": readOnly,
			"foreign":  foreign,
			"copyself": copySelf,
		},
	})
}

// exitCode runs a command and checks its exit code: exitcode 2 pollux serve x
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if err != nil || neg {
		ts.Fatalf("usage: exitcode CODE COMMAND ARGS…")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		code, err = strconv.Atoi(strings.TrimPrefix(err.Error(), "exit status "))
		if err != nil {
			ts.Fatalf("%v", err)
		}
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// nothingLeft fails if a companion left a file, socket or temporary file: nothing left
func nothingLeft(ts *testscript.TestScript, neg bool, args []string) {
	for _, pattern := range []string{"$TMPDIR/gemini/ide/*", "$TMPDIR/*.sock", "$XDG_RUNTIME_DIR/pollux/*", "$XDG_STATE_HOME/pollux/run/*", "$XDG_STATE_HOME/pollux/open/*"} {
		left, _ := filepath.Glob(os.Expand(pattern, ts.Getenv))
		if len(left) > 0 {
			ts.Fatalf("left behind: %v", left)
		}
	}
}

// readOnly sets TMPDIR to a folder in which nobody can create anything, not even root.
func readOnly(ts *testscript.TestScript, neg bool, args []string) {
	if _, err := os.Stat("/sys/kernel"); err == nil {
		ts.Setenv("TMPDIR", "/sys")
		return
	}
	dir := ts.MkAbs("readonly")
	ts.Check(os.Mkdir(dir, 0o500))
	ts.Setenv("TMPDIR", dir)
}

// foreign makes TMPDIR/gemini a folder of another user.
func foreign(ts *testscript.TestScript, neg bool, args []string) {
	dir := filepath.Join(ts.Getenv("TMPDIR"), "gemini")
	ts.Check(os.Mkdir(dir, 0o755))
	if os.Chown(dir, 12345, -1) == nil {
		return
	}
	// Without root, a link takes its place: a link is refused as well.
	ts.Check(os.Remove(dir))
	ts.Check(os.Symlink("/", dir))
}

// copySelf puts a copy of pollux at a path: copyself go-build1/exe/pollux
func copySelf(ts *testscript.TestScript, neg bool, args []string) {
	path, err := exec.LookPath("pollux")
	ts.Check(err)
	data, err := os.ReadFile(path)
	ts.Check(err)
	// A child that another script starts meanwhile would hold the file open, and nobody could run it.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o755))
}
