package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/peers"
	"github.com/pollux-companion/pollux/internal/permission"
)

// testTime bounds each run in tests.
const testTime = time.Minute

// runIn runs a command under a policy, and fails the test if it could not be run. It skips the test on a machine
// without namespaces, unless peers are required.
func runIn(t testing.TB, s *Sandbox, p Policy, c Command) *Result {
	t.Helper()
	if c.Limits.Time == 0 {
		c.Limits.Time = testTime
	}
	r, err := s.Run(context.Background(), p, c)
	if errors.Is(err, ErrSetup) && !peers.Required() {
		if report := s.Check(context.Background()); !report.Enforced {
			t.Skip(report.Summary, report.Fixes)
		}
	}
	if err != nil {
		t.Fatalf("%v: %v", c.Args, err)
	}
	return r
}

// TestInterpretersStart: interpreters start at every level and can do their usual work (SPEC S-1, E-2).
func TestInterpretersStart(t *testing.T) {
	pace.NotRaced(t, "the programs that it starts share no memory with pollux")
	s := New(nil)
	workspace := t.TempDir()
	for _, level := range []permission.Access{permission.None, permission.Workspace, permission.Home, permission.Full} {
		for _, args := range [][]string{
			{"true"},
			{"sh", "-c", "echo hello | grep -q hello && test -w $TMPDIR"},
			{"python3", "-c", "import subprocess, multiprocessing, ssl, json; assert subprocess.run(['true']).returncode == 0"},
			{"node", "-e", "require('child_process').execFileSync('true'); new (require('worker_threads').Worker)('1', {eval: true})"},
		} {
			t.Run(level.String()+"/"+args[0], func(t *testing.T) {
				r := runIn(t, s, Policy{Read: level}, Command{Args: args, Workspace: workspace})
				if r.Code != 0 {
					t.Errorf("exit code %d\n%s%s", r.Code, r.Stdout, r.Stderr)
				}
			})
		}
	}
}

// TestRealWork: a small linter, in each runtime and at each level, finds the project if it may read it, and nothing
// if it may not (SPEC S-1, E-2, X-1).
func TestRealWork(t *testing.T) {
	pace.NotRaced(t, "the programs that it starts share no memory with pollux")
	s := New(nil)
	project, extension := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		filepath.Join(project, "good.txt"):   "one\ntwo\n",
		filepath.Join(project, "bad.txt"):    "one \ntwo\n",
		filepath.Join(project, "sub", "bad"): "\tx\t\n",
		filepath.Join(extension, "lint.py"): `import os, sys, json
found = [[os.path.relpath(os.path.join(d, f), sys.argv[1]), n] for d, _, fs in os.walk(sys.argv[1]) for f in fs for n, l in enumerate(open(os.path.join(d, f)), 1) if l.rstrip("\n") != l.rstrip()]
print(json.dumps(sorted(found), separators=(",", ":")))
`,
		filepath.Join(extension, "lint.js"): `const fs = require('fs'), path = require('path'), root = process.argv[2], found = []
const walk = d => { for (const e of fs.readdirSync(d, {withFileTypes: true})) { const p = path.join(d, e.name); if (e.isDirectory()) walk(p); else fs.readFileSync(p, 'utf8').split('\n').forEach((l, i) => { if (l !== l.trimEnd()) found.push([path.relative(root, p), i + 1]) }) } }
try { walk(root) } catch (e) { if (e.code !== 'ENOENT') throw e }
console.log(JSON.stringify(found.sort()))
`,
		filepath.Join(extension, "lint.sh"): `cd "$1" 2>/dev/null || { echo '[]'; exit; }
grep -rn "$(printf '[ \t]')\$" . | sed 's|^\./\([^:]*\):\([0-9]*\):.*|["\1",\2]|' | sort | paste -sd, | sed 's/.*/[&]/'
`,
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for script, runtime := range map[string]string{"lint.py": "python3", "lint.js": "node", "lint.sh": "sh"} {
		need(t, runtime)
		for _, level := range []permission.Access{permission.None, permission.Workspace, permission.Home, permission.Full} {
			want := `[["bad.txt",1],["sub/bad",1]]`
			if level == permission.None {
				want = "[]"
			}
			r := runIn(t, s, Policy{Read: level}, Command{Args: []string{runtime, filepath.Join(extension, script), project}, Workspace: project, ReadOnly: []string{extension}})
			if got := strings.TrimSpace(string(r.Stdout)); r.Code != 0 || got != want {
				t.Errorf("%s at %v: %d %q, want %q %s", script, level, r.Code, got, want, r.Stderr)
			}
		}
	}
}
