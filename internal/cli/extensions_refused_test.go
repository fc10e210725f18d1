//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/pace"
)

// validate finds everything that install would refuse: both check each broken folder, and validate never calls valid
// what install refuses (SPEC E-4, M-2). It also finds problems that only an author cares about.
func TestValidateFindsWhatInstallRefuses(t *testing.T) {
	pace.NotRaced(t, "each command is a process of its own, and shares its memory with no other")
	w := newWorld(t)
	tool := func(runtime, file string) string {
		return `{"name":"x","version":"1.0.0","description":"d","permissions":{},"tools":[{"name":"t","description":"d","executable":"` + file + `","runtime":"` + runtime + `","args":[]}]}`
	}
	plain := `{"name":"x","version":"1.0.0"}`
	link := func(target string) func(string) error {
		return func(dir string) error { return os.Symlink(target, filepath.Join(dir, "link")) }
	}
	file := func(name, text string) func(string) error {
		return func(dir string) error {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
		}
	}
	for name, c := range map[string]struct {
		manifest string
		make     func(dir string) error
		refused  bool   // by install
		invalid  bool   // for validate, although install accepts it
		says     string // by validate
	}{
		"plain":              {plain, nil, false, false, "is valid"},
		"no JSON":            {"{", nil, true, true, "never closed"},
		"UTF-16 manifest":    {"\xff\xfe{\x00", nil, true, true, "UTF-16"},
		"reserved name":      {`{"name":"pollux","version":"1.0.0"}`, nil, true, true, "pollux"},
		"missing script":     {tool("shell", "gone.sh"), nil, true, true, "no file"},
		"pipe":               {plain, func(dir string) error { return unix.Mkfifo(filepath.Join(dir, "p"), 0o600) }, true, true, "a named pipe"},
		"link out":           {plain, link("../../etc"), true, true, "leads out of the extension"},
		"absolute link":      {plain, link("/etc/passwd"), true, true, "absolute path"},
		"circle":             {plain, link("link"), true, true, "in a circle"},
		"dangling":           {plain, link("nowhere"), false, false, `warning: it is a link to "nowhere", which is not there`},
		"dangling context":   {`{"name":"x","version":"1.0.0","contextFileName":"link"}`, link("nowhere"), false, false, "link"},
		"deep":               {plain, file(strings.Repeat("d/", 40)+"x", ""), true, true, "lies deeper than"},
		"deepest":            {plain, file(strings.Repeat("d/", 31)+"x", ""), false, false, "is valid"},
		"large":              {plain, func(dir string) error { return large(dir, "big", 257<<20) }, true, true, "more than 256 MiB"},
		"left out":           {plain, link("nowhere/.git"), false, false, "is not there"},
		"environment":        {plain, func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, ".env")) }, false, false, "is valid"},
		"python":             {tool("python", "x.py"), file("x.py", "x = 1\nprint(\n"), false, true, "x.py:2:1: error: python3 cannot read it: '(' was never closed"},
		"python return":      {tool("python", "x.py"), file("x.py", "return 1\n"), false, true, "outside function"},
		"good python":        {tool("python", "x.py"), file("x.py", "import sys\nraise SystemExit(1)\n"), false, false, "is valid"},
		"node":               {tool("node", "x.js"), file("x.js", "let a\nfunction(\n"), false, true, "x.js:2:1: error: node cannot read it: "},
		"good node":          {tool("node", "x.mjs"), file("x.mjs", "import fs from 'node:fs'\nprocess.exit(1)\n"), false, false, "is valid"},
		"shell":              {tool("shell", "x.sh"), file("x.sh", "if true; then\necho\n"), false, true, "error: sh cannot read it: "},
		"good shell":         {tool("shell", "x.sh"), file("x.sh", "exit 1\n"), false, false, "is valid"},
		"broken command":     {plain, file("commands/a.toml", "prompt = [\n"), false, false, "not TOML"},
		"broken skill":       {plain, file("skills/s/SKILL.md", "---\nname: x\n"), false, false, "never closed"},
		"CR in a first line": {tool("python", "x.py"), file("x.py", "#!/usr/bin/python3\r\n"), false, false, "ends as on Windows"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(w.project, strings.ReplaceAll(name, " ", "-"))
			writeExtension(t, dir, c.manifest)
			if c.make != nil {
				if err := c.make(dir); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			out, install := combined(w, "ext", "install", dir, "--yes", "--dry-run")
			if (install != console.CodeDone) != c.refused || strings.Contains(out, "staging") {
				t.Errorf("install: exit code %d\n%s", install, out)
			}
			out, valid := combined(w, "ext", "validate", dir)
			if (valid != console.CodeDone) != (c.refused || c.invalid) || !strings.Contains(out, c.says) {
				t.Errorf("validate: exit code %d, want %q\n%s", valid, c.says, out)
			}
		})
	}
}

func large(dir, name string, size int64) error {
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		return err
	}
	return os.Truncate(filepath.Join(dir, name), size)
}

func combined(w *world, args ...string) (string, int) {
	cmd := w.command(args...)
	out, _ := cmd.CombinedOutput() // the exit code tells
	return string(out), cmd.ProcessState.ExitCode()
}
