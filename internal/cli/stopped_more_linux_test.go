package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/pollux-companion/pollux/e2e/child"
)

// stoppedWorld is a world with an extension and a suspended companion.
func stoppedWorld(t *testing.T) (*world, *live) {
	t.Helper()
	w := toolWorld(t)
	l := w.serve()
	if err := l.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.cmd.Process.Signal(syscall.SIGCONT) })
	return w, l
}

// Beside a suspended companion, commands that start another companion, run a command or a tool, or ask for consent
// end as they would without it, or say why not.
func TestStoppedCompanionBeside(t *testing.T) {
	w, _ := stoppedWorld(t)
	w.together(map[string]beside{
		"run":                      {[]string{"run", "--no-open", "--", "sh", "-c", "echo it ran; exit 4"}, 4, "it ran"},
		"extensions list":          {[]string{"extensions", "list"}, 0, "x"},
		"extensions describe":      {[]string{"extensions", "describe", "x"}, 0, "x"},
		"extensions run":           {[]string{"extensions", "run", "x", "t"}, 1, "x"},
		"extensions run --yes":     {[]string{"extensions", "run", "--yes", "x", "t"}, 1, "kill -CONT"},
		"extensions consent":       {[]string{"extensions", "consent", "list"}, 0, ""},
		"extensions consent --yes": {[]string{"extensions", "consent", "grant", "x", "--yes"}, 1, "kill -CONT"},
		"extensions link --yes":    {[]string{"extensions", "link", filepath.Join(w.root, ".gemini", "extensions", "x"), "--force", "--yes"}, 1, "kill -CONT"},
		"extensions enable":        {[]string{"extensions", "enable", "x"}, 1, "kill -CONT"},
		"bridge --headless":        {[]string{"extensions", "bridge", "install", "--headless"}, 1, "kill -CONT"},
		"extensions bridge status": {[]string{"extensions", "bridge", "status"}, 1, ""},
		"extensions prompt":        {[]string{"extensions", "prompt"}, 0, ""},
	})
}

// A FIFO in place of a file of pollux's, the CLI's or the project's is waited for by no command.
func TestFIFOsForFiles(t *testing.T) {
	w := toolWorld(t)
	for _, path := range []string{
		filepath.Join(w.state, "pollux", "audit.jsonl"), filepath.Join(w.state, "pollux", "setup.json"), filepath.Join(w.state, "pollux", "pollux.log"),
		filepath.Join(w.root, ".gemini", "policies", "pollux.toml"), filepath.Join(w.root, ".gemini", "settings.json"), filepath.Join(w.root, ".gemini", "trustedFolders.json"),
		filepath.Join(w.project, ".gemini", "settings.json"), filepath.Join(w.project, ".gitignore"), filepath.Join(w.project, ".env"),
		filepath.Join(w.project, ".gemini", "package.json"),
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	w.together(map[string]beside{
		"extensions prompt":        {[]string{"extensions", "prompt"}, 0, ""},
		"extensions list":          {[]string{"extensions", "list"}, 0, "x"},
		"extensions bridge status": {[]string{"extensions", "bridge", "status"}, 1, ""},
		"doctor":                   {[]string{"doctor"}, 1, ""},
		"status":                   {[]string{"status"}, 1, ""},
		"detect":                   {[]string{"detect"}, 1, ""},
	})
	w.together(map[string]beside{"run": {[]string{"run", "--no-open", "--", "sh", "-c", "echo it ran; exit 4"}, 4, "it ran"}}) // status would list its companion
}

// A reviewer at a terminal names the companion that does not answer, and can be left.
func TestStoppedCompanionReview(t *testing.T) {
	w, l := stoppedWorld(t)
	cmd := w.command("review")
	cmd.Env = append(cmd.Env, "NO_COLOR=1", "TERM=xterm")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	shown, buf := "", make([]byte, 4096)
	for want := fmt.Sprintf("kill -CONT %d", l.PID); !strings.Contains(shown, want); {
		n, err := tty.Read(buf)
		if shown += string(buf[:n]); err != nil {
			t.Fatalf("it does not say %q:\n%q", want, shown)
		}
	}
	if _, err := io.WriteString(tty, "q"); err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(tty) // a closed terminal reads as an error
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// Behind a relay, a CLI beside a suspended editor gets an answer: it connects, and its proposal is decided in its
// terminal.
func TestStoppedCompanionRelay(t *testing.T) {
	w, _ := stoppedWorld(t)
	cmd := w.command("relay")
	in, out := child.Start(t, cmd)
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { timer.Stop(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	ask := func(id int, message string) string {
		t.Helper()
		fmt.Fprintln(in, message)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("no answer: %v", err)
			}
			if strings.Contains(line, fmt.Sprintf(`"id":%d`, id)) {
				return line
			}
		}
	}
	if said := ask(0, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`); !strings.Contains(said, `"result"`) {
		t.Errorf("initialize: %s", said)
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	path := filepath.Join(w.project, "f")
	if err := os.WriteFile(path, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := ask(1, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":%q,"newContent":"y\n"}}}`, path)); !strings.Contains(said, `"isError":true`) {
		t.Errorf("openDiff: %s", said)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("its end: %v", err)
	}
}
