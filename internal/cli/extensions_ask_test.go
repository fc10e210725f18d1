//go:build unix

package cli

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/pollux-companion/pollux/internal/cli/console"
)

// dialogue runs pollux in a terminal, waits for each prompt, types its answer, and returns all output and the exit
// code.
func dialogue(t *testing.T, w *world, args []string, prompts ...[2]string) (string, int) {
	t.Helper()
	cmd := w.command(args...)
	cmd.Env = append(cmd.Env, "GEMINI_CLI_HOME=", "GEMINI_FORCE_FILE_STORAGE=true", "NO_COLOR=1")
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	shown := ""
	buf := make([]byte, 4096)
	for _, p := range prompts {
		for !strings.Contains(shown, p[0]) {
			n, err := tty.Read(buf)
			if shown += string(buf[:n]); err != nil {
				t.Fatalf("no prompt %q in\n%s", p[0], shown)
			}
		}
		if p[0] == "Key: " { // the echo is switched off right after the prompt
			eventually(t, "the end of the echo", func() bool {
				stty := exec.Command("stty", "-a")
				stty.Stdin = tty
				state, err := stty.Output()
				return err == nil && strings.Contains(string(state), "-echo ")
			})
		}
		io.WriteString(tty, p[1])
	}
	rest, _ := io.ReadAll(tty) // a closed terminal reads as an error
	cmd.Wait()
	return shown + string(rest), cmd.ProcessState.ExitCode()
}

// The question before an install: only yes is yes; Ctrl-C is 130; a no leaves nothing behind (SPEC M-2, S-2).
func TestInstallAsks(t *testing.T) {
	for answer, want := range map[string]int{"\n": console.CodeNo, "n\n": console.CodeNo, "nope\n": console.CodeNo, "\x04": console.CodeNo, "\x03": console.CodeCancelled, "y\n": console.CodeDone, "YES\n": console.CodeDone} {
		w := newWorld(t)
		source := filepath.Join(w.project, "ext")
		writeExtension(t, source, `{"name":"asks","version":"1.0.0","permissions":{"filesystem":{"read":"home"}},
			"mcpServers":{"s":{"command":"node","args":["x.js"]}}}`)
		shown, code := dialogue(t, w, []string{"ext", "install", "./ext"}, [2]string{"[y/N]: ", answer})
		if code != want {
			t.Errorf("%q: exit code %d, want %d\n%s", answer, code, want, shown)
		}
		for _, part := range []string{"asks 1.0.0", source, "node x.js", "outside any sandbox", "sha256:"} {
			if !strings.Contains(shown, part) {
				t.Errorf("%q: the question does not say %q:\n%s", answer, part, shown)
			}
		}
		installed := filepath.Join(w.root, ".gemini", "extensions", "asks")
		if _, err := os.Stat(installed); (err == nil) != (want == console.CodeDone) {
			t.Errorf("%q: installed: %v", answer, err)
		}
		if left, _ := os.ReadDir(filepath.Join(w.root, ".gemini", "pollux", "staging")); len(left) > 0 {
			t.Errorf("%q: left behind: %v", answer, left)
		}
	}
}

// A typed secret is never shown.
func TestSecretIsNotShown(t *testing.T) {
	w := newWorld(t)
	writeExtension(t, filepath.Join(w.project, "ext"), `{"name":"asks","version":"1.0.0","settings":[{"name":"Key","description":"d","envVar":"ASKS_KEY","sensitive":true}]}`)
	if shown, code := dialogue(t, w, []string{"ext", "install", "./ext", "--yes"}); code != console.CodeDone || !strings.Contains(shown, "ASKS_KEY -") {
		t.Fatalf("exit code %d\n%s", code, shown)
	}
	shown, code := dialogue(t, w, []string{"ext", "config", "asks", "ASKS_KEY", "-"}, [2]string{"Key: ", "s3cr3t\n"})
	if code != console.CodeDone || strings.Contains(shown, "s3cr3t") {
		t.Errorf("exit code %d\n%s", code, shown)
	}
	if shown, _ := dialogue(t, w, []string{"ext", "config", "asks"}); !strings.Contains(shown, "***") || strings.Contains(shown, "s3cr3t") {
		t.Errorf("config shows\n%s", shown)
	}
	if shown, code := dialogue(t, w, []string{"ext", "config", "asks", "ASKS_KEY", "s3cr3t"}); code != console.CodeUsage {
		t.Errorf("a secret as an argument: exit code %d\n%s", code, shown)
	}
	if shown, code := dialogue(t, w, []string{"ext", "config", "asks", "ASKS_KEY", "-"}, [2]string{"Key: ", "\x03"}); code != console.CodeCancelled {
		t.Errorf("Ctrl-C: exit code %d\n%s", code, shown)
	}
}

func writeExtension(t *testing.T, dir, manifest string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "gemini-extension.json"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
}
