package runner

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/extension/audit"
	"github.com/pollux-companion/pollux/internal/permission"
)

// A file that the permissions withhold from a tool is reported as a denial, with the permission that would allow it
// (SPEC X-1, S-1).
func TestFileDenials(t *testing.T) {
	home, err := os.MkdirTemp(".", "denied-") // temporary folders are private to the tool
	if err == nil {
		home, err = filepath.Abs(home)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	t.Setenv("HOME", home)
	w := worldAt(t, home)
	w.file("work/code", "text")
	if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{".ssh/id_ed25519": "secret", "notes.txt": "x"} {
		if err := os.WriteFile(filepath.Join(home, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	none, reads, whole := permission.Permissions{}, permission.Permissions{Read: permission.Workspace}, permission.Permissions{Read: permission.Home}
	python := `import argparse
p = argparse.ArgumentParser(); p.add_argument("--file"); p.add_argument("--write", action="store_true")
a = p.parse_args()
open(a.file, "w" if a.write else "r").read()`
	node := `const { values: v } = require('util').parseArgs({ options: { file: { type: 'string' }, write: { type: 'boolean' } } });
const fs = require('fs'); v.write ? fs.writeFileSync(v.file, 'x') : fs.readFileSync(v.file);`
	shell := `if [ "$3" = --write ]; then echo x >"$2"; else cat "$2"; fi`
	scripts := map[string]string{"python": python, "node": node, "shell": shell}
	n := 0
	for runtime, script := range scripts {
		for _, test := range []struct {
			policy permission.Permissions
			file   string
			write  bool
			want   FileDenial
		}{
			{none, "code", false, FileDenial{filepath.Join(w.workspace, "code"), "read", "workspace", `the permission "read" is "none", and "workspace" would allow it`}},
			{none, filepath.Join(w.workspace, "code"), false, FileDenial{filepath.Join(w.workspace, "code"), "read", "workspace", `the permission "read" is "none", and "workspace" would allow it`}},
			{reads, "code", true, FileDenial{filepath.Join(w.workspace, "code"), "write", "workspace", `the permission "write" is "none", and "workspace" would allow it`}},
			{reads, filepath.Join(home, "notes.txt"), false, FileDenial{filepath.Join(home, "notes.txt"), "read", "home", `the permission "read" is "workspace", and "home" would allow it`}},
			{reads, "/var/log/x", false, FileDenial{"/var/log/x", "read", "full", `the permission "read" is "workspace", and "full" would allow it`}},
			{whole, filepath.Join(home, ".ssh/id_ed25519"), false, FileDenial{filepath.Join(home, ".ssh/id_ed25519"), "read", "", "secret stores are out of reach of every permission"}},
			{reads, filepath.Join(home, ".ssh/id_ed25519"), false, FileDenial{filepath.Join(home, ".ssh/id_ed25519"), "read", "", "secret stores are out of reach of every permission"}},
			{none, filepath.Join(home, ".aws/missing"), true, FileDenial{filepath.Join(home, ".aws/missing"), "read", "", "secret stores are out of reach of every permission"}},
			{none, "/etc/shadow", false, FileDenial{"/etc/shadow", "read", "", "secret stores are out of reach of every permission"}},
			{reads, "/etc/new", true, FileDenial{"/etc/new", "write", "full", `the permission "write" is "none", and "full" would allow it`}},
			{reads, "missing", false, FileDenial{}},
			{reads, "/tmp/missing", false, FileDenial{}},
		} {
			n++
			name := "x" + string(rune('a'+n/26)) + string(rune('a'+n%26))
			w.extension(name, runtime, script, test.policy, nil, "file:string", "write:boolean")
			w.allow(name)
			args, err := json.Marshal(map[string]any{"file": test.file, "write": test.write})
			if err != nil {
				t.Fatal(err)
			}
			r, err := w.run(name, string(args))
			if r == nil {
				t.Fatal(err)
			}
			if test.want == (FileDenial{}) {
				if len(r.Files) > 0 {
					t.Errorf("%s, %s: %+v", runtime, test.file, r.Files)
				}
				continue
			}
			if len(r.Files) != 1 || r.Files[0] != test.want {
				t.Errorf("%s, %s: %+v, want %+v\n%s", runtime, test.file, r.Files, test.want, r.Stderr)
				continue
			}
			text, failed := Reply(r, err, 4000)
			if !failed || !strings.Contains(text, "The sandbox refused it "+test.want.Words()) || strings.Contains(text, "tell the user") != (test.want.Needs != "") {
				t.Errorf("the model is told %q", text)
			}
		}
	}
	entries := 0
	all, err := w.audit.Read(audit.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Event == audit.File && e.Target != "" && e.Why != "" {
			entries++
		}
	}
	if want := 10 * len(scripts); entries != want {
		t.Errorf("%d denials are recorded, want %d", entries, want)
	}
}
