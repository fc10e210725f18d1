package gitconfig

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// samples are files that people and attackers write.
func samples() []string {
	return []string{
		"", "[core]\n\thooksPath = tools/hooks\n", "[core] hooksPath=x", "[core]hooksPath=x # trailing\n", "[CORE]\nHOOKSPATH=\"a b\" ; c\n",
		"[core]\nhooksPath = a\\\nb\\\n/c\n", "[core]\r\n\thooksPath = x\r\n", "\ufeff[core]\nhookspath=y\n", "[core]\nhooksPath = \"tools\"/hooks\n",
		"[core]\nhooksPath = \"a#b\" # c\n", "[core]\nhooksPath = a\\\\b\\\"c\\td\n", "[include]\n\tpath = ../x\n[includeIf \"gitdir:~/w/\"] path = y\n",
		"[includeIf \"onbranch:a\\\"]b\"]\n path=z\n", "[remote \"A.b\"]\nurl = https://x\n", "[Section.Sub]\nkey\n", "[a \"b\"]\nx = 1\n[core]hooksPath=.\n",
		"# [core]\n; hooksPath=no\n[core] ; comment\n bare = false\nhooksPath\n", "[core]\nhooksPath = \n", "[core]\nhooksPath = x\\\n", "[core]\nhooksPath=\"open\n",
		"[core\nx=y\n", "x=y\n", "[a]\n1=2\n", "[core]\nhooksPath = a   b  \t # c\n", "[core]\nhooksPath = a\\\n  # not a comment?\n", "[]\nx=1\n", "[a.]\nx=1\n", "[.a]\nx=1\n",
		"[a \"x\\y\"]\nk=1\n", "[core]\nhooksPath = \\x\n", "[core] [user] name=x [core]\n", "[core]\n\thooksPath\t=\tx\ty\n", "[core]\na-b=1\nc_d=2\n", "[core]\nhooksPath=x\r", "[core]\nhooksPath=x\ry\n",
		"[core]\nhooksPath = \" x \" \n", "[core]\nhooksPath = x\\ny\n", "[a\t\"b\"]c=d",
	}
}

// gitReads returns the settings that git reads in a file; false if git refuses the file.
func gitReads(t testing.TB, data string) ([]Setting, bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", "config", "--file", file, "--null", "--list", "--no-includes")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, false
	} else if err != nil {
		t.Fatal(err)
	}
	var all []Setting
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "\n")
		if !ok {
			value = "true"
		}
		all = append(all, Setting{key, value})
	}
	return all, true
}

// TestAsGit: Parse reads the same settings as git. If git stops at an error, none of the settings before it is missed
// (SPEC E-2).
func TestAsGit(t *testing.T) {
	for _, data := range samples() {
		compare(t, data)
	}
}

func compare(t *testing.T, data string) {
	t.Helper()
	got, err := Parse([]byte(data))
	want, ok := gitReads(t, data)
	if ok != (err == nil) {
		t.Errorf("%q: %v, git takes it: %v", data, err, ok)
	}
	for i := range got { // as git before 2.45 reads it
		got[i].Value = strings.NewReplacer("\t", " ", "\r", " ").Replace(got[i].Value)
	}
	for i := range want {
		want[i].Value = strings.NewReplacer("\t", " ", "\r", " ").Replace(want[i].Value)
	}
	if ok && !slices.Equal(got, want) {
		t.Errorf("%q:\n got %q\ngit %q", data, got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, data := range samples() {
		f.Add([]byte(data))
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = Parse(data)
	})
}
