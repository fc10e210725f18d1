package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/permission"
)

// TestSecretsByVariable: a secret is hidden wherever a variable says it is, also in the workspace (SPEC E-2).
func TestSecretsByVariable(t *testing.T) {
	pace.NotRaced(t, "the programs that it starts share no memory with pollux")
	p := newPlace(t)
	env := map[string]string{}
	var files []string
	for name, rel := range map[string]string{"GEMINI_CLI_HOME": "g/.gemini/oauth_creds.json", "CLAUDE_CONFIG_DIR": "cl/.credentials.json", "QWEN_HOME": "q/oauth_creds.json", "CODEX_HOME": "co/auth.json",
		"XDG_CONFIG_HOME": "xc/gh/hosts.yml", "XDG_DATA_HOME": "xd/opencode/auth.json", "KUBECONFIG": "kube", "AWS_SHARED_CREDENTIALS_FILE": "aws", "GNUPGHOME": "gpg/key", "DOCKER_CONFIG": "d/config.json", "NETRC": "netrc",
		"PGPASSFILE": "pg", "CARGO_HOME": "cargo/credentials.toml", "NPM_CONFIG_USERCONFIG": "npmrc", "HF_HOME": "hf/token", "COPILOT_HOME": "cp/x", "XAUTHORITY": "xauth"} {
		file := filepath.Join(p.workspace, rel)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("content"), 0o600)); err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(rel, "/")
		env[name] = filepath.Join(p.workspace, first)
		files = append(files, strings.TrimPrefix(file, p.root+"/"))
	}
	env["KUBECONFIG"] += ":/no/such"
	open := filepath.Join(p.workspace, "cargo", "registry")
	if err := os.WriteFile(open, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := p.s.env
	read, _ := p.can(t, Policy{Read: permission.Workspace}, files...)
	if len(read) != len(files) {
		t.Errorf("without variables: %q", read)
	}
	p.s.env = func(name string) string { return env[name] }
	for _, policy := range []Policy{{Read: permission.Workspace}, {Write: permission.Workspace}, {Read: permission.Home}, {Write: permission.Home}} {
		if read, write := p.can(t, policy, files...); len(read)+len(write) > 0 {
			t.Errorf("%+v: reads %q, writes %q", policy, read, write)
		}
	}
	if read, _ := p.can(t, Policy{Read: permission.Workspace}, "home/work/cargo/registry"); len(read) != 1 {
		t.Error("more is hidden than secrets")
	}
	p.s.env = before
}

// TestSecretsOfAgents: the tokens of other agents and programs are hidden (SPEC E-2).
func TestSecretsOfAgents(t *testing.T) {
	p := newPlace(t)
	var files []string
	for _, rel := range []string{".qwen/oauth_creds.json", ".codex/auth.json", ".claude/.credentials.json", ".copilot/config.json", ".local/share/opencode/auth.json", ".cache/huggingface/token",
		".config/configstore/x.json", ".msmtprc", ".config/msmtp/config", ".config/Code/User/globalStorage/state.vscdb", ".authinfo", ".config/opencode/opencode.json"} {
		file := filepath.Join(p.home, rel)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("content"), 0o600)); err != nil {
			t.Fatal(err)
		}
		files = append(files, "home/"+rel)
	}
	for _, policy := range []Policy{{Read: permission.Home}, {Write: permission.Home}} {
		if read, write := p.can(t, policy, files...); len(read)+len(write) > 0 {
			t.Errorf("%+v: reads %q, writes %q", policy, read, write)
		}
	}
}

// TestHomes: home folders are found wherever a machine has them.
func TestHomes(t *testing.T) {
	root := makeTree(t, []string{"etc/passwd", "root/.ssh/", "home/ada/.ssh/", "home/staff/bob/.aws/", "home/staff/eve/.ssh/", "srv/accounts/cyd/.ssh/", "var/lib/postgres/.ssh/", "home/ada/work/.ssh/"})
	accounts := "root:x:0:0::/root:/bin/sh\ndaemon:x:1:1::/usr/sbin:/bin/sh\ncyd:x:1001:1001::/srv/accounts/cyd:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\nbroken\nodd:x:1002:1002::relative:/bin/sh\nall:x:1003:1003::/:/bin/sh\n"
	if err := os.WriteFile(string(root)+"/etc/passwd", []byte(accounts), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Sandbox{tree: root, home: "/home/ada", env: func(string) string { return "" }}
	got := s.secrets()
	for _, want := range []string{"/root/.ssh", "/home/ada/.ssh", "/home/staff/bob/.aws", "/home/staff/eve/.ssh", "/srv/accounts/cyd/.ssh"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not masked", want)
		}
	}
	for _, not := range []string{"/.ssh", "/usr/sbin/.ssh", "relative/.ssh", "/home/ada/work/.ssh"} {
		if slices.Contains(got, not) {
			t.Errorf("%s is masked", not)
		}
	}
}

// TestAliases: a secret that a second mount of its file system, or of a part of it, also shows is hidden there too.
func TestAliases(t *testing.T) {
	root := makeTree(t, []string{"home/ada/.ssh/id", "mnt/home/ada/.ssh/id", "mnt/keys/id", "data/ada/.ssh/id", "other/.ssh/id", "a b/.ssh/id"})
	mounts := "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /home rw - ext4 /dev/b rw\n3 1 8:2 / /mnt/home rw - ext4 /dev/b rw\n4 1 8:2 /ada/.ssh /mnt/keys rw - ext4 /dev/b rw\n" +
		"5 1 8:2 /ada /a\\040b rw - ext4 /dev/b rw\n6 1 8:3 / /other rw - ext4 /dev/c rw\nshort\n"
	if err := errors.Join(os.MkdirAll(string(root)+"/proc/self", 0o700), os.WriteFile(string(root)+"/proc/self/mountinfo", []byte(mounts), 0o600)); err != nil {
		t.Fatal(err)
	}
	got := root.aliases([]string{"/home/ada/.ssh", "/other/.ssh", "/no/such"})
	slices.Sort(got)
	if want := "[/a b/.ssh /mnt/home/ada/.ssh /mnt/keys]"; fmt.Sprint(got) != want {
		t.Errorf("%q, want %s", got, want)
	}
}

// TestRunLater: what runs at the next start of a shell, desktop, interpreter or agent can be neither changed nor
// created (SPEC E-2).
func TestRunLater(t *testing.T) {
	pace.NotRaced(t, "the programs that it starts share no memory with pollux")
	p := newPlace(t)
	for _, c := range []struct {
		dir   string
		names []string
		write permission.Access
	}{
		{p.home, []string{".local/lib/python3.11/site-packages/evil.pth", ".cargo/env", ".bash_completion", ".bashrc.d/x", ".config/emacs/init.el", ".config/tmux/tmux.conf", ".config/sway/config", ".config/i3/config",
			".config/hypr/hyprland.conf", ".local/share/applications/x.desktop", ".local/share/dbus-1/services/x.service", ".config/autostart/x.desktop", ".xsessionrc"}, permission.Home},
		{p.workspace, []string{".zed/tasks.json", ".helix/languages.toml", ".exrc", ".pre-commit-config.yaml", ".env", "GEMINI.md", "AGENTS.md", "CLAUDE.md", ".claude/settings.json", ".qwen/settings.json", ".codex/config.toml",
			".copilot/config", ".opencode/plugin/x.js", ".cursor/mcp.json", "deep/er/AGENTS.md", "deep/er/.env", ".nvim.lua", ".dir-locals.el", ".E\u200bNV", "deep/.vſcode/x"}, permission.Workspace},
	} {
		script := ""
		for _, name := range c.names {
			script += fmt.Sprintf("mkdir -p \"$(dirname '%s')\" 2>/dev/null; (echo EVIL >'%s') 2>/dev/null\n", name, name)
		}
		for i, want := range []string{"made", "changed"} {
			r := runIn(t, p.s, Policy{Write: c.write}, Command{Workspace: p.workspace, Dir: c.dir, Args: []string{"sh", "-c", script + "exit 0"}})
			for _, name := range c.names {
				if data, err := os.ReadFile(filepath.Join(c.dir, name)); err == nil && strings.Contains(string(data), "EVIL") {
					t.Errorf("%s was %s: %+v", name, want, r.Quarantined)
				}
				if i == 0 {
					file := filepath.Join(c.dir, name)
					if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("mine"), 0o600)); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	// An ordinary page of the project with a similar name.
	r := runIn(t, p.s, Policy{Write: permission.Workspace}, Command{Workspace: p.workspace, Args: []string{"sh", "-c", "echo x >agents.md; echo x >MY-AGENTS.md; echo x >env"}})
	if r.Code != 0 || len(r.Quarantined) > 0 {
		t.Errorf("%d %+v %s", r.Code, r.Quarantined, r.Stderr)
	}
}

// TestClosedFolder: secrets in another user's folder, which root in a sandbox cannot search, are hidden by hiding the
// folder (SPEC S-1).
func TestClosedFolder(t *testing.T) {
	if os.Getuid() != 0 {
		return // only root can make another user's folder
	}
	root, err := os.MkdirTemp("/var/lib", "pollux-closed-") // temporary folders are private in the sandbox
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	other := filepath.Join(root, "other")
	var masked []string
	for _, name := range []string{".aws/credentials", ".ssh", "deep/er/.ssh", "deep/.netrc"} {
		path := filepath.Join(other, name)
		if err := errors.Join(os.MkdirAll(path, 0o700), os.WriteFile(path+"/key", []byte("content"), 0o644)); err != nil {
			t.Fatal(err)
		}
		masked = append(masked, path)
	}
	if err := os.WriteFile(filepath.Join(root, "open"), []byte("seen"), 0o644); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(other, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, 65534, 65534))
	})
	if err != nil {
		t.Fatal(err)
	}
	s := New(&Options{Masked: masked})
	for _, p := range []Policy{{Read: permission.Full}, {Write: permission.Full}} {
		for _, mode := range []os.FileMode{0o700, 0o711, 0o755} { // closed, and not
			if err := os.Chmod(other, mode); err != nil {
				t.Fatal(err)
			}
			r := runIn(t, s, p, Command{Args: []string{"sh", "-c", "cat " + root + "/open; find " + other + " -name key -exec cat {} +; ls -A " + other + "; cat " + strings.Join(masked, "/key ") + "/key; true"}})
			if out := string(r.Stdout); strings.Contains(out, "content") || !strings.HasPrefix(out, "seen") || mode == 0o700 && out != "seen" {
				t.Errorf("%v %o: %q %s", p, mode, out, r.Stderr)
			}
		}
	}
}

// TestAmong: names that may exist in a folder are found by listing folders, not by testing each name.
func TestAmong(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"home/.config/gh/hosts.yml", "home/.ssh/id", "home/.bashrc", "home/empty/.keep", "store/.aws/credentials"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700), os.WriteFile(filepath.Join(root, name), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../store/.aws", filepath.Join(root, "home/.aws")); err != nil {
		t.Fatal(err)
	}
	names := []string{".ssh", ".config/gh", ".config/tea", ".config/gh/hosts.yml", ".aws/credentials", ".aws/none", ".bashrc/.ssh", "none/.ssh"}
	for dir, want := range map[string]string{
		"home": ".aws/credentials .config/gh .config/gh/hosts.yml .ssh", "home/.bashrc": "", "home/none": "", "home/.config": "",
	} {
		dir = filepath.Join(root, dir)
		all := tree("").among(dir, names)
		slices.Sort(all)
		if got := strings.ReplaceAll(strings.Join(all, " "), dir+"/", ""); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
}

// TestInSecretStore: what no level shows is known by its name, in every home folder and on the system.
func TestInSecretStore(t *testing.T) {
	s := New(&Options{Home: "/home/u", Masked: []string{"/srv/pollux"}})
	s.env = func(name string) string { return map[string]string{"GNUPGHOME": "/data/keys"}[name] }
	for name, want := range map[string]bool{
		"/home/u/.ssh": true, "/home/u/.ssh/id": true, "/home/other/.aws/x": true, "/home/group/other/.ssh/id": true, "/root/.gnupg": true,
		"/etc/shadow": true, "/data/keys/x": true, "/srv/pollux/x": true,
		"/home/u/.sshx": false, "/home/u/notes": false, "/home/u/src/.ssh": false, "/home": false, "/home/u": false, "/etc/passwd": false, "/srv": false, "/": false,
	} {
		if s.InSecretStore(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
