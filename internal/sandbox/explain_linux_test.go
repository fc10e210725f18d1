package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox/program"
)

// A layoutCase is a kind of machine: its files, and what runs on it.
type layoutCase struct {
	home, workspace string
	has             []string // folders end in a slash, links are "a -> b", all else is files
	program         program.Program
	command         Command
	pairs           [][2]permission.Access // read, write
}

// everyPair returns each effective pair of levels.
func everyPair() [][2]permission.Access {
	const n, w, h, f = permission.None, permission.Workspace, permission.Home, permission.Full
	return [][2]permission.Access{{n, n}, {w, n}, {h, n}, {f, n}, {n, w}, {h, w}, {f, w}, {n, h}, {f, h}, {n, f}}
}

func someEtc() []string {
	return []string{"etc/passwd", "etc/group", "etc/hosts", "etc/resolv.conf", "etc/nsswitch.conf", "etc/ld.so.cache", "etc/ssl/certs/", "etc/ssl/private/", "etc/shadow", "etc/ssh/", "tmp/", "var/tmp/", "proc/", "dev/", "sys/", "run/", "boot/"}
}

func layouts() map[string]layoutCase {
	const n, w, h = permission.None, permission.Workspace, permission.Home
	debian := slices.Concat(someEtc(), []string{"usr/bin/python3", "usr/lib/", "bin -> usr/bin", "lib -> usr/lib", "sbin -> usr/sbin", "srv/", "opt/", "run/user/", "root/.ssh/",
		"home/u/.ssh/", "home/u/.npmrc", "home/u/.bashrc", "home/u/.config/gh/", "home/u/.config/autostart/", "home/u/.config/pollux/", "home/u/.local/bin/pollux", "home/u/.gitconfig -> dotfiles/gitconfig", "home/u/dotfiles/gitconfig", "home/u/.gemini/extensions/lint/lint.py",
		"home/other/.aws/",
		"home/u/work/app/.git/config", "home/u/work/app/.envrc -> shared/envrc", "home/u/work/app/shared/envrc", "home/u/work/app/lib/sub/.git", "home/u/work/app/node_modules/x/.vscode/", "home/u/work/app/main.py"})
	return map[string]layoutCase{
		"debian": {home: "/home/u", workspace: "/home/u/work/app", has: debian, program: program.Program{Path: "/usr/bin/python3", ReadOnly: []string{"/usr/bin/python3"}},
			command: Command{Args: []string{"python3", "/home/u/.gemini/extensions/lint/lint.py", "--file", "a b"}, Copies: []Copy{{Dir: "/home/u/.gemini/extensions/lint", Files: []CopyFile{{Name: "lint.py"}}}}}, pairs: everyPair()},
		"pyenv": {home: "/home/u", workspace: "/home/u/work/app", has: append(slices.Clone(debian), "home/u/.pyenv/versions/3.11/bin/python3", "home/u/.pyenv/shims/python3"),
			program: program.Program{Path: "/home/u/.pyenv/versions/3.11/bin/python3", ReadOnly: []string{"/home/u/.pyenv/versions/3.11"}, PathDirs: []string{"/home/u/.pyenv/versions/3.11/bin"}},
			command: Command{Args: []string{"python3"}}, pairs: [][2]permission.Access{{n, n}, {h, w}, {n, h}}},
		"ostree": {home: "/var/home/u", workspace: "/var/home/u/app", has: slices.Concat(slices.DeleteFunc(someEtc(), func(n string) bool { return n == "tmp/" }), []string{"usr/bin/sh", "usr/lib64/", "bin -> usr/bin", "lib64 -> usr/lib64", "home -> var/home", "root -> var/roothome", "var/roothome/.ssh/", "tmp -> sysroot/tmp", "sysroot/tmp/", "var/home/u/.ssh/", "var/home/u/app/.git/config"}),
			program: program.Program{Path: "/usr/bin/sh"}, command: Command{Args: []string{"sh"}}, pairs: [][2]permission.Access{{n, n}, {n, w}, {permission.Full, n}}},
		"nix": {home: "/home/u", workspace: "/home/u/app", has: []string{"nix/store/abc-python/bin/python3", "bin/sh", "usr/bin/env", "etc/static -> /nix/store/xyz-etc", "nix/store/xyz-etc/ssl/certs/ca.crt", "etc/ssl/certs -> ../static/ssl/certs", "etc/passwd", "tmp/", "run/current-system/", "home/u/.ssh/", "home/u/app/x"},
			program: program.Program{Path: "/nix/store/abc-python/bin/python3", ReadOnly: []string{"/nix/store/abc-python"}}, command: Command{Args: []string{"python3"}}, pairs: [][2]permission.Access{{n, n}, {w, n}, {n, w}}},
		"split": {home: "/root", workspace: "/workspace", has: slices.Concat(someEtc(), []string{"usr/bin/node", "bin/sh", "sbin/", "lib/", "lib64/", "root/.ssh/", "root/.bashrc", "workspace/.git/config", "workspace/.git/hooks/", "workspace/tools/hooks/"}),
			program: program.Program{Path: "/usr/bin/node"}, command: Command{Args: []string{"node"}}, pairs: [][2]permission.Access{{n, n}, {n, w}, {n, h}}},
		"homeless": {home: "", workspace: "/workspace", has: slices.Concat(someEtc(), []string{"usr/bin/sh", "bin -> usr/bin", "workspace/x"}),
			program: program.Program{Path: "/usr/bin/sh"}, command: Command{Args: []string{"sh"}}, pairs: [][2]permission.Access{{n, n}, {n, w}}},
	}
}

// makeTree makes a folder that stands for a machine.
func makeTree(t *testing.T, has []string) tree {
	t.Helper()
	root := t.TempDir()
	for _, name := range has {
		name, to, isLink := strings.Cut(name, " -> ")
		path, isDir := filepath.Join(root, name), strings.HasSuffix(name, "/")
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case isLink:
			err = os.Symlink(to, path)
		case isDir:
			err = os.MkdirAll(path, 0o755)
		case name == "workspace/.git/config":
			err = os.WriteFile(path, []byte("[core]\n\thooksPath = tools/hooks\n"), 0o600)
		default:
			err = os.WriteFile(path, nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return tree(root)
}

// TestPlans: what each pair of levels shows on each kind of machine, so that a diff shows a change of policy (SPEC
// E-2, S-1).
func TestPlans(t *testing.T) {
	t.Setenv("LC_ALL", "")
	for name, lc := range layouts() {
		t.Run(name, func(t *testing.T) {
			s := New(&Options{Home: lc.home})
			s.home, s.self, s.tree = lc.home, "/home/u/.local/bin/pollux", makeTree(t, lc.has)
			s.env = func(string) string { return "" }
			var w strings.Builder
			for i, pair := range lc.pairs {
				p := Policy{Read: pair[0], Write: pair[1]}
				if i == 1 {
					p.Hosts = hosts(t, "https://api.example.com", "*.example.org", "http://10.1.2.3:8080")
				}
				fmt.Fprintf(&w, "=== read %v, write %v, %d hosts\n", p.Read, p.Write, len(p.Hosts))
				w.WriteString(planText(t, s, p, lc))
			}
			compareGolden(t, filepath.Join("testdata", "plans", name+".txt"), w.String())
		})
	}
}

// planText is a plan for a program that is already found.
func planText(t *testing.T, s *Sandbox, p Policy, lc layoutCase) string {
	t.Helper()
	c, prog := lc.command, lc.program
	c.Workspace = lc.workspace
	plan, err := s.explained(p, c, func(c Command) (*Plan, error) { return s.describe(p, c, &prog) })
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(plan.String(), string(s.tree), "TREE")
}

// compareGolden compares with a file; -update writes it.
func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s is not what the code makes (%v); run: go test ./internal/sandbox -run %s -update, and read the diff", file, err, t.Name())
	}
}

// TestExplain: a plan says what a run then does, and is refused when the run is.
func TestExplain(t *testing.T) {
	p := newPlace(t)
	c := Command{Args: []string{"sh", "-c", "echo x"}, Workspace: p.workspace, Env: []string{"SECRET=hush"}}
	plan, err := p.s.Explain(Policy{Write: permission.Workspace, Hosts: hosts(t, "example.com")}, c)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(data), plan.String()} {
		if strings.Contains(text, "hush") || !strings.Contains(text, "SECRET") || !strings.Contains(text, p.workspace+"/.envrc") && !strings.Contains(text, ".envrc") || !strings.Contains(text, "example.com") {
			t.Error(text)
		}
	}
	for path, want := range map[string]Access{p.workspace: AccessWrite, p.workspace + "/.git": AccessRead, p.home: AccessPrivate, "/usr": AccessRead, p.workspace + "/.vscode": AccessWatched} {
		if !slices.ContainsFunc(plan.Paths, func(pp PlanPath) bool { return pp.Path == path && pp.Access == want }) {
			t.Errorf("%s is not %s: %+v", path, want, plan.Paths)
		}
	}
	if _, err := p.s.Explain(Policy{}, Command{Args: []string{"no-such-program"}}); err == nil {
		t.Error("what cannot be run is explained")
	}
}
