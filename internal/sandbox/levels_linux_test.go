package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/permission"
)

// A place is a home folder with a workspace, secrets and start-up files.
type place struct {
	s                     *Sandbox
	root, home, workspace string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	root := paths.Real(t.TempDir())
	p := &place{root: root, home: root + "/home", workspace: root + "/home/work"}
	for _, path := range []string{"home/.ssh/id", "home/.npmrc", "home/.bashrc", "home/notes", "home/.config/gh/hosts.yml", "home/.local/bin/tool",
		"home/work/code", "home/work/.git/config", "home/work/.envrc", "outside/file"} {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("content of "+filepath.Base(path)), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	p.s = New(&Options{Home: p.home})
	return p
}

// can asks a shell inside which of the paths it can read and write.
func (p *place) can(t *testing.T, policy Policy, paths ...string) (read, write []string) {
	t.Helper()
	script := `for p; do if grep -q content "$p" 2>/dev/null; then echo "r $p"; fi; if (echo x >>"$p") 2>/dev/null; then echo "w $p"; fi; done; exit 0`
	var full []string
	for _, path := range paths {
		full = append(full, filepath.Join(p.root, path))
	}
	r := runIn(t, p.s, policy, Command{Args: append([]string{"sh", "-c", script, "sh"}, full...), Workspace: p.workspace})
	for line := range strings.Lines(string(r.Stdout)) {
		kind, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		path = strings.TrimPrefix(path, p.root+"/")
		if kind == "r" {
			read = append(read, path)
		} else if _, err := os.Stat(filepath.Join(p.root, path)); err == nil {
			data, _ := os.ReadFile(filepath.Join(p.root, path))
			if strings.HasSuffix(string(data), "x\n") { // otherwise it was written in the private home
				write = append(write, path)
			}
		}
	}
	return read, write
}

// TestLevels: what each pair of levels can read and write (SPEC E-2).
func TestLevels(t *testing.T) {
	const code, git, envrc, notes, bashrc, tool, outside = "home/work/code", "home/work/.git/config", "home/work/.envrc", "home/notes", "home/.bashrc", "home/.local/bin/tool", "outside/file"
	secrets := []string{"home/.ssh/id", "home/.npmrc", "home/.config/gh/hosts.yml"}
	all := append([]string{code, git, envrc, notes, bashrc, tool, outside}, secrets...)
	inWorkspace, inHome := []string{code, git, envrc}, []string{code, git, envrc, notes, bashrc, tool}
	everything := append(slices.Clone(inHome), outside)
	for _, test := range []struct {
		read, write permission.Access
		reads       []string
		writes      []string
	}{
		{permission.None, permission.None, nil, nil},
		{permission.Workspace, permission.None, inWorkspace, nil},
		{permission.Home, permission.None, inHome, nil},
		{permission.None, permission.Workspace, inWorkspace, []string{code}},
		{permission.Home, permission.Workspace, inHome, []string{code}},
		{permission.None, permission.Home, inHome, []string{code, notes}},
	} {
		t.Run(test.read.String()+"-"+test.write.String(), func(t *testing.T) {
			p := newPlace(t)
			read, write := p.can(t, Policy{Read: test.read, Write: test.write}, all...)
			if !slices.Equal(read, test.reads) {
				t.Errorf("reads %q, want %q", read, test.reads)
			}
			if !slices.Equal(write, test.writes) {
				t.Errorf("writes %q, want %q", write, test.writes)
			}
		})
	}
	t.Run("full", func(t *testing.T) {
		// The temporary folder is private at every level, so the place must lie elsewhere. Tests may run with another
		// temporary folder than /tmp.
		if tmp := os.TempDir(); paths.Within("/tmp", tmp) || paths.Within("/var/tmp", tmp) {
			dir, err := os.MkdirTemp("/var/lib", "pollux-test-")
			if err != nil {
				t.Skip("needs a folder outside /tmp and /var/tmp:", err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			t.Setenv("TMPDIR", dir)
		}
		for write, writes := range map[permission.Access][]string{permission.None: nil, permission.Workspace: {code}, permission.Home: {code, notes}, permission.Full: {code, notes, outside}} {
			p := newPlace(t)
			read, write := p.can(t, Policy{Read: permission.Full, Write: write}, all...)
			if !slices.Equal(read, everything) {
				t.Errorf("reads %q, want %q", read, everything)
			}
			if !slices.Equal(write, writes) {
				t.Errorf("writes %q, want %q", write, writes)
			}
		}
	})
}

// TestQuarantine: what could not be protected before it existed is moved aside after the command made it, and links
// are put back (SPEC E-2).
func TestQuarantine(t *testing.T) {
	p := newPlace(t)
	ws := p.workspace
	if err := errors.Join(os.Symlink("code", filepath.Join(ws, ".mcp.json"))); err != nil {
		t.Fatal(err)
	}
	r := runIn(t, p.s, Policy{Write: permission.Workspace}, Command{Workspace: ws, Args: []string{"sh", "-c", `
		mkdir .vscode && echo '{}' >.vscode/tasks.json; rm .mcp.json; echo evil >.mcp.json; ln -s /tmp .idea
		mv .git git 2>/dev/null && echo moved; rm -rf .git 2>/dev/null && echo removed; mkdir ok; true`}})
	if r.Code != 0 || len(r.Stdout) != 0 {
		t.Errorf("%d %s%s", r.Code, r.Stdout, r.Stderr)
	}
	for name, gone := range map[string]bool{".vscode": true, ".idea": true, ".git/config": false, ".mcp.json": false, "ok": false} {
		if _, err := os.Lstat(filepath.Join(ws, name)); (err != nil) != gone {
			t.Errorf("%s: gone should be %v (%v)", name, gone, err)
		}
	}
	if to, err := os.Readlink(filepath.Join(ws, ".mcp.json")); err != nil || to != "code" {
		t.Errorf("the link was not put back: %q, %v", to, err)
	}
	if len(r.Quarantined) != 2 {
		t.Errorf("%+v", r.Quarantined)
	}
	for _, q := range r.Quarantined {
		if _, err := os.Lstat(q.Moved); err != nil || q.Err != "" {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// TestNestedProtection: below the top of a workspace too, protected names are not written, even when moved, and new
// ones are moved aside. Packages may contain editor settings, and a virtual environment is the workspace's own code:
// pip writes .pth files (SPEC E-2).
func TestNestedProtection(t *testing.T) {
	p := newPlace(t)
	ws := p.workspace
	for _, name := range []string{"lib/sub/.git/config", "lib/.envrc", "tools/hooks/pre-commit", "node_modules/x/.vscode/tasks.json"} {
		path := filepath.Join(ws, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("content"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(ws, ".git", "config"), []byte("[core]\n\thookspath = tools/hooks\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runIn(t, p.s, Policy{Write: permission.Workspace}, Command{Workspace: ws, Args: []string{"sh", "-c", `
		for f in lib/sub/.git/config lib/.envrc tools/hooks/pre-commit tools/hooks/new; do (echo x >$f) 2>/dev/null && echo "wrote $f"; done
		for f in lib/sub/.git lib/.envrc tools/hooks tools; do mv $f $f.old 2>/dev/null && echo "moved $f"; done
		(echo x >node_modules/x/.vscode/tasks.json) && mkdir -p node_modules/z/.idea
		mkdir -p .venv/lib/python3/site-packages && echo 'import x' >.venv/lib/python3/site-packages/editable.pth
		mv lib lib2 && mkdir -p lib/sub/.git && echo evil >lib/sub/.git/config
		mkdir -p new/deep/.git && ln -s /tmp new/.Vscode && mkdir node_modules/z/.git; touch -d 2001-01-01 new new/deep lib lib/sub .; true`}})
	if r.Code != 0 || len(r.Stdout) != 0 {
		t.Errorf("%d %s%s", r.Code, r.Stdout, r.Stderr)
	}
	var moved []string
	for _, q := range r.Quarantined {
		moved = append(moved, strings.TrimPrefix(q.Path, ws+"/"))
		if _, err := os.Lstat(q.Moved); err != nil || q.Err != "" {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if want := []string{"lib/sub/.git", "new/.Vscode", "new/deep/.git"}; !slices.Equal(moved, want) {
		t.Errorf("moved aside: %q, want %q", moved, want)
	}
	for name, want := range map[string]string{"lib2/sub/.git/config": "content", ".venv/lib/python3/site-packages/editable.pth": "import x\n"} {
		if data, err := os.ReadFile(filepath.Join(ws, name)); err != nil || string(data) != want {
			t.Errorf("%s is now %q, %v", name, data, err)
		}
	}
}

// TestMovesAroundProtection: the folder above a protected one stays in place, and new secret stores are moved aside.
func TestMovesAroundProtection(t *testing.T) {
	p := newPlace(t)
	for _, dir := range []string{".config/autostart", ".local/share/systemd"} {
		if err := os.MkdirAll(filepath.Join(p.home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r := runIn(t, p.s, Policy{Write: permission.Home}, Command{Args: []string{"sh", "-c", `cd "$HOME"
		for d in .config .config/autostart .local .local/bin .local/share; do mv $d $d.old 2>/dev/null && echo moved $d; done
		mkdir .aws && echo evil >.aws/credentials; echo evil >.ssh/authorized_keys || true; echo x >.config/own; true`}})
	if len(r.Stdout) > 0 || r.Code != 0 {
		t.Errorf("%d %s", r.Code, r.Stdout)
	}
	if _, err := os.Lstat(filepath.Join(p.home, ".config/own")); err != nil {
		t.Error("the folder above cannot be written to:", err)
	}
	for _, name := range []string{".aws", ".ssh/authorized_keys"} {
		if _, err := os.Lstat(filepath.Join(p.home, name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// TestProtectedNamesAgree: what pollux itself never writes is read-only in a workspace. The sandbox's list is longer:
// a person sees a diff of AGENTS.md before it is written, and nobody sees what a command writes.
func TestProtectedNamesAgree(t *testing.T) {
	source, err := os.ReadFile("../workspace/protected.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(source), `const protectedNames = "`)
	list, _, _ = strings.Cut(list, `"`)
	elsewhere := strings.Fields(list)
	for _, name := range elsewhere {
		if !slices.Contains(protectedNames(), name) {
			t.Errorf("%s is not in both lists", name)
		}
	}
	if len(elsewhere) < 10 {
		t.Errorf("%q", elsewhere)
	}
}

// TestCopies: the command sees the files that were given, not what lies there (SPEC S-2).
func TestCopies(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Join(p.home, ".gemini", "extensions", "x")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(dir+"/run.sh", []byte("echo swapped"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, level := range []permission.Access{permission.None, permission.Workspace, permission.Home, permission.Full} {
		c := Command{Args: []string{"sh", dir + "/run.sh"}, Workspace: p.workspace,
			Copies: []Copy{{Dir: dir, Files: []CopyFile{{Name: "run.sh", Data: []byte("echo checked $(cat $(dirname $0)/lib/data); echo x > $0 || exit 0"), Executable: true}, {Name: "lib/data", Data: []byte("data")}}}}}
		r := runIn(t, p.s, Policy{Read: level}, c)
		if string(r.Stdout) != "checked data\n" || r.Code != 0 {
			t.Errorf("%v: %d %q %s", level, r.Code, r.Stdout, r.Stderr)
		}
	}
}

// TestRefusedPolicies: a policy that makes no sense is refused before anything runs.
func TestRefusedPolicies(t *testing.T) {
	p := newPlace(t)
	file := filepath.Join(p.home, "notes")
	for name, test := range map[string]struct {
		p Policy
		c Command
		w error
	}{
		"no command":           {Policy{}, Command{}, ErrPolicy},
		"no workspace":         {Policy{Read: permission.Workspace}, Command{Args: []string{"true"}}, ErrPolicy},
		"home as workspace":    {Policy{Read: permission.Workspace}, Command{Args: []string{"true"}, Workspace: p.home}, ErrPolicy},
		"above home":           {Policy{Write: permission.Workspace}, Command{Args: []string{"true"}, Workspace: p.root}, ErrPolicy},
		"root as workspace":    {Policy{Write: permission.Workspace}, Command{Args: []string{"true"}, Workspace: "/"}, ErrPolicy},
		"file as workspace":    {Policy{Read: permission.Workspace}, Command{Args: []string{"true"}, Workspace: file}, ErrPolicy},
		"missing workspace":    {Policy{Read: permission.Workspace}, Command{Args: []string{"true"}, Workspace: "/no/such"}, ErrPolicy},
		"workspace of secrets": {Policy{Read: permission.Workspace}, Command{Args: []string{"true"}, Workspace: filepath.Join(p.home, ".ssh")}, ErrPolicy},
		"relative":             {Policy{Read: permission.Workspace}, Command{Args: []string{"true"}, Workspace: "x"}, ErrPolicy},
		"needs home":           {Policy{}, Command{Args: []string{"true"}, ReadOnly: []string{p.home}}, ErrCommand},
		"no such program":      {Policy{}, Command{Args: []string{"no-such-program"}}, ErrCommand},
		"copy leads out":       {Policy{}, Command{Args: []string{"true"}, Copies: []Copy{{Dir: "/opt/x", Files: []CopyFile{{Name: "../y"}}}}}, ErrPolicy},
		"negative limit":       {Policy{}, Command{Args: []string{"true"}, Limits: Limits{Time: -1}}, ErrPolicy},
	} {
		if _, err := p.s.Run(context.Background(), test.p, test.c); !errors.Is(err, test.w) {
			t.Errorf("%s: %v, want %v", name, err, test.w)
		}
	}
}
