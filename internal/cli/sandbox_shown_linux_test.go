package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// hostile writes control sequences that take over a terminal to both outputs, among honest colours.
const hostile = `printf '\033[31mred\033[0m \033]52;c;cm0=\007\033]0;title\007\033[6n'; printf '\033]8;;http://x/\007\033[?2004l\302\2336n' >&2; printf 'end\n'`

// On a terminal, a sandboxed command can only paint; the terminal is restored (SPEC S-1).
func TestSandboxOnTerminal(t *testing.T) {
	w := newWorld(t)
	shows := func(args ...string) string {
		tty, err := pty.Start(w.command(append([]string{"sandbox"}, args...)...))
		if err != nil {
			t.Fatal(err)
		}
		defer tty.Close()
		data, _ := io.ReadAll(tty) // a closed terminal reads as an error
		return string(data)
	}
	got := shows("--", "sh", "-c", hostile)
	if !strings.Contains(got, "\x1b[31mred\x1b[0m ") || !strings.Contains(got, "control sequences of the command's") {
		t.Errorf("%q", got)
	}
	for _, bad := range []string{"\x1b]", "\x1b[6n", "\x1b[?2004l", "\u009b", "title"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q reaches the terminal in %q", bad, got)
		}
	}
	if got := shows("--raw", "--", "sh", "-c", hostile); !strings.Contains(got, "\x1b]52;c;cm0=\a") {
		t.Errorf("with --raw %q", got)
	}
	if got := shows("--time", "300ms", "--", "sh", "-c", `printf '\033[?1049h\033[?25lfull'; sleep 1000`); !strings.Contains(got, "full\x1b[?25h\x1b[?1049l") {
		t.Errorf("ended in the middle, it leaves %q", got)
	}
	if got := shows("--json", "--", "sh", "-c", hostile); strings.ContainsAny(got, "\x1b\u009b") || !strings.Contains(got, `\u009b6n`) {
		t.Errorf("as JSON %q", got)
	}
	if got := shows("--", "printf", `plain, \303\251, \033[1mbold\033[m\n`); !strings.Contains(got, "plain, é, \x1b[1mbold\x1b[m\r\n") || strings.Contains(got, "left out") {
		t.Errorf("an honest program shows %q", got)
	}
}

// A user's pipe and file get every byte; the pipe of a model's shell does not.
func TestSandboxInPipe(t *testing.T) {
	w := newWorld(t)
	for _, mark := range []string{"", "GEMINI_CLI=1", "CLAUDECODE=1", "QWEN_CODE=1"} {
		cmd := w.command("sandbox", "--", "sh", "-c", hostile)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs // pipes
		if mark != "" {
			cmd.Env = append(cmd.Env, mark)
		}
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		clean := !strings.Contains(out.String(), "\x1b]") && !strings.Contains(errs.String(), "\x1b[?2004l") && strings.HasPrefix(out.String(), "\x1b[31mred\x1b[0m ")
		if clean != (mark != "") || clean != strings.Contains(errs.String(), "left out; --raw passes them") {
			t.Errorf("%q: %q and %q", mark, out.String(), errs.String())
		}
		cmd = w.command("sandbox", "--", "printf", `\000\033\377\200`)
		cmd.Env = append(cmd.Env, "GEMINI_CLI=1")
		path := filepath.Join(w.root, "file")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout = f
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if data, err := os.ReadFile(path); string(data) != "\x00\x1b\xff\x80" || err != nil {
			t.Errorf("the file holds %q, %v", data, err)
		}
	}
}

// TestToolInPipe: what an extension's tool prints and what its documents hold reaches a user's pipe byte for byte, and
// a model's shell, whose agent shows it on a screen, without control sequences (SPEC S-1).
func TestToolInPipe(t *testing.T) {
	w := toolWorld(t)
	dir := filepath.Join(w.root, ".gemini", "extensions", "y")
	writeExtension(t, dir, `{"name":"y","version":"1.0.0","tools":[{"name":"u","description":"d","executable":"u.sh","runtime":"shell"}],"docs":[{"name":"doc","description":"d","file":"doc.md"}]}`)
	for name, text := range map[string]string{"u.sh": hostile, "doc.md": "a\x1b]52;c;cm0=\a b\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := w.command("ext", "consent", "grant", "y", "--yes").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, mark := range []string{"GEMINI_CLI=", "GEMINI_CLI=1"} {
		for _, args := range [][]string{{"ext", "run", "y", "u"}, {"ext", "read", "y", "doc"}} {
			cmd := w.command(args...)
			cmd.Env = append(cmd.Env, mark)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out // one pipe
			if err := cmd.Run(); err != nil {
				t.Fatalf("%q: %v %s", args, err, out.String())
			}
			got := out.String()
			if passes := strings.ContainsAny(got, "\x1b\u009b\a"); passes != (mark == "GEMINI_CLI=") || !strings.Contains(got, "52;c;cm0=") {
				t.Errorf("%s %q: %q", mark, args, got)
			}
		}
	}
}
