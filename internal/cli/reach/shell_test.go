package reach

import (
	"os/exec"
	"strings"
	"testing"
)

// nasty are values that the path of a workspace can have.
var nasty = []string{
	"", "/home/me", "/a b/ü/😀", "it's", `'`, `''`, `"`, `\`, `\'`, `$HOME`, "`id`", "$(id)", "a;b", "a|b&c", "*?[x]", "~", "!!", "#x", "%PATH%", "%25",
	"a\nb", "\t", "-n", "‘typographic’‚quotes‛", `C:\a b\`, `\\`, "{a,b}", "^x^",
}

// Real shells read the output of env back exactly, and run nothing.
func TestShells(t *testing.T) {
	for shell, script := range map[string][2]string{
		"sh":   {"sh", `printf %s "$NAME"`},
		"bash": {"sh", `printf %s "$NAME"`},
		"zsh":  {"sh", `printf %s "$NAME"`},
		"dash": {"sh", `printf %s "$NAME"`},
		"fish": {"fish", `printf %s "$NAME"`},
		"pwsh": {"powershell", `[Console]::Out.Write($env:NAME)`},
	} {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("no %s here", shell)
			continue
		}
		assign, err := assigner(script[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range nasty {
			line, err := assign("NAME", value)
			if err != nil {
				t.Errorf("%s: %q: %v", shell, value, err)
				continue
			}
			out, err := exec.Command(path, "-c", line+"\n"+script[1]).CombinedOutput()
			if err != nil || string(out) != value {
				t.Errorf("%s: %q came back as %q by %s: %v", shell, value, out, line, err)
			}
		}
	}
}

func TestAssign(t *testing.T) {
	for _, tt := range []struct{ shell, value, want string }{
		{"sh", "it's", `export N='it'\''s'`},
		{"fish", `it's\`, `set -gx N 'it\'s\\'`},
		{"powershell", "it's ‘so’", "$env:N = 'it''s ‘‘so’’'"},
		{"cmd", `C:\100% a&b`, `@set "N=C:\100%% a&b"`},
	} {
		assign, err := assigner(tt.shell)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := assign("N", tt.value); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.shell, got, err, tt.want)
		}
	}
	for _, value := range []string{"a\nb", "a\rb", `a"b`} {
		if got, err := assignCmd("N", value); err == nil {
			t.Errorf("cmd took %q: %s", value, got)
		}
	}
	for _, shell := range append(shellNames(), "nonsense") {
		if _, err := assigner(shell); (err != nil) != (shell == "nonsense") {
			t.Errorf("%s: %v", shell, err)
		}
		if EvalHint(shell) == "" {
			t.Errorf("no hint for %s", shell)
		}
	}
}

// unquoteSh reads the single word after NAME= as POSIX shells do; ok is false if it contains anything else.
func unquoteSh(word string) (value string, ok bool) {
	var b strings.Builder
	for len(word) > 0 {
		switch word[0] {
		case '\'':
			inner, rest, closed := strings.Cut(word[1:], "'")
			if !closed {
				return "", false
			}
			b.WriteString(inner)
			word = rest
		case '\\':
			if len(word) < 2 {
				return "", false
			}
			b.WriteByte(word[1])
			word = word[2:]
		default:
			return "", false // everything must be quoted
		}
	}
	return b.String(), true
}

func FuzzAssignSh(f *testing.F) {
	for _, v := range nasty {
		f.Add(v)
	}
	assign, err := assigner("sh")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, value string) {
		line, err := assign("N", value)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := unquoteSh(strings.TrimPrefix(line, "export N=")); !ok || got != value {
			t.Errorf("%q became %q", value, got)
		}
	})
}

// For fish and PowerShell: no value ends its quotes early.
func FuzzAssignOthers(f *testing.F) {
	for _, v := range nasty {
		f.Add(v)
	}
	f.Add("\xe2'\x80\x98") // the bytes of a quote, with another one between
	fish, _ := assigner("fish")
	powershell, _ := assigner("powershell")
	f.Fuzz(func(t *testing.T, value string) {
		line, _ := fish("N", value)
		inner := strings.TrimSuffix(strings.TrimPrefix(line, "set -gx N '"), "'")
		if got := strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(inner); got != value || strings.ContainsRune(strings.NewReplacer(`\\`, `x`, `\'`, `x`).Replace(inner), '\'') {
			t.Errorf("fish: %q became %q by %s", value, got, line)
		}
		line, _ = powershell("N", value)
		inner = strings.TrimSuffix(strings.TrimPrefix(line, "$env:N = '"), "'")
		pairs := strings.NewReplacer("''", "x", "‘‘", "x", "’’", "x", "‚‚", "x", "‛‛", "x") // both sides stay apart
		if strings.ContainsAny(pairs.Replace(inner), "'‘’‚‛") {
			t.Errorf("powershell: %q is not closed in %s", value, line)
		}
	})
}
