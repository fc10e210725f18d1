package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/permission"
)

// A siege is a workspace and a command that tries to leave something there that runs as the user later. Everything
// evil writes the marker when it runs, and contains the word EVIL.
type siege struct {
	name   string
	before string // a shell script that makes what the user has; $out is a folder outside
	attack string // the command
	write  permission.Access
	// says is part of the report, for what cannot be repaired.
	says string
}

// evil are shell functions for the attacks: hooks DIR makes a folder of hooks, repo DIR a repository whose settings
// run a program, each with the marker.
const evil = `
hook='#!/bin/sh
touch "$MARKER" # EVIL
'
hooks() { mkdir -p "$1" && for h in pre-commit post-checkout post-index-change reference-transaction; do printf '%s' "$hook" >"$1/$h" && chmod 755 "$1/$h"; done; }
settings() { printf '[core]\n\trepositoryformatversion = 0\n\tbare = %s\n\tfsmonitor = "touch \\"%s\\" # EVIL;"\n' "$2" "$MARKER" >"$1"; }
bare() { mkdir -p "$1/objects" "$1/refs/heads" && echo 'ref: refs/heads/main' >"$1/HEAD" && settings "$1/config" "${2:-true}"; }
repo() { bare "$1/.git" false; }
junk() { mkdir -p "$1"; seq 1 50001 | (cd "$1" && xargs touch); }
`

func sieges() []siege {
	const w, h = permission.Workspace, permission.Home
	init := "git init -q . && git config user.email a@b && git config user.name n && git commit -q --allow-empty -m one; "
	all := []siege{
		// Counting past the end.
		{"beside 50,001 junk files", "", "junk junk; repo sub", w, ""},
		{"a workspace of more than 50,000 files", "junk old; mkdir -p old/deep/er", "repo old/deep/er/x; mkdir old/.vscode && echo EVIL >old/.vscode/tasks.json", w, ""},
		{"in one of a thousand folders", "for i in $(seq 1 1000); do mkdir -p d/$i/e; done", "repo d/777/e", w, ""},
		{"a hundred and fifty of them", "", "for i in $(seq 1 150); do mkdir -p n/$i/.vscode; echo EVIL >n/$i/.vscode/tasks.json; done", w, "more of these names"},
		{"deeper than paths are long", "", "cd_() { mkdir -p $1 && cd $1; }; d=$(printf 'x%.0s' $(seq 1 200)); for i in $(seq 1 40); do cd_ $d; done; repo .", w, ""},
		// Modes.
		{"behind chmod 311", "", "repo a/b; chmod 311 a a/b", w, ""},
		{"behind chmod 555", "", "repo a/b; chmod 555 a/b a", w, ""},
		{"behind chmod 000", "", "repo a/b/c; chmod 000 a/b/c a/b a", w, ""},
		{"the workspace itself at 311", "", "repo a; repo .; chmod 311 .", w, ""},
		{"behind chmod 600", "", "repo a/b; chmod 600 a/b a", w, ""},
		{"an old folder at 111", "mkdir -p a/b/c", "repo a/b/c; chmod 111 a/b a", w, ""},
		{"in a folder that was at 311", "mkdir -p a/b && chmod 311 a", "repo a/b; repo a", w, ""},
		{"the protected folder itself at 000", "", "repo a; chmod 000 a/.git", w, ""},
		{"settings in a folder that was at 311", "mkdir -p a/.vscode && echo '{}' >a/.vscode/tasks.json && chmod 311 a", "echo EVIL >a/.vscode/tasks.json", w, ""},
		// Taken quarantine names, links, swapped folders, reused inode numbers.
		{"the names of the quarantine are taken", "", "repo a; for i in $(seq 1 1000); do mkdir a/.git.pollux-quarantine-$i; done", w, ""},
		{"a link in place of a protected link", "echo good >good; ln -s good .envrc; mkdir x; ln -s ../good x/.envrc", "echo EVIL >evil; rm -f .envrc x/.envrc; ln -s evil .envrc; ln -s ../evil x/.envrc; true", w, ""},
		{"the end of a protected link", "mkdir c && echo good >c/good; ln -s c/good .envrc", "echo EVIL >c/good; mv c d; mkdir c; echo EVIL >c/good; true", w, ""},
		{"a dangling protected link", "ln -s c/later .envrc; mkdir -p c x; ln -s ../c/more x/.mcp.json", "echo EVIL >c/later; echo EVIL >c/more; true", w, ""},
		{"a chain of links", "mkdir a b; echo good >b/end; ln -s ../b/end a/mid; ln -s a/mid .envrc", "echo EVIL >b/evil; rm -f a/mid; ln -s ../b/evil a/mid; rm -f b/end; echo EVIL >b/end; true", w, ""},
		{"an inode used again", "mkdir -p a b; ln -s x a/.envrc", "rm a/.envrc; for i in $(seq 1 300); do mkdir b/$i; echo EVIL >b/$i/.envrc; done", w, ""},
		{"a protected folder by another spelling", "", "mkdir a; bare a/.GIT false; mv a/.GIT a/.Git; true", w, ""},
		{"two folders exchanged", "mkdir -p a b/c", "repo a; mv a t; mv b a; mv t b; mv b a/c/", w, ""},
		{"an old folder moved and the new in its place", "mkdir -p lib/sub; git init -q lib/sub", "mv lib lib2; repo lib/sub", w, ""},
		{"a file of a protected folder that is a link", "mkdir .vscode tools; echo '{}' >tools/tasks.json; ln -s ../tools/tasks.json .vscode/tasks.json", "echo EVIL >tools/tasks.json; mv tools t2; mkdir tools; echo EVIL >tools/tasks.json; true", w, ""},
		// Hooks.
		{"hooksPath through a folder replaced by a link", init + "mkdir -p tools/hooks; git config core.hooksPath tools/hooks", `rm -rf tools; mv tools t; mkdir evil; hooks evil/hooks; ln -s evil tools; rm -rf tools; ln -s "$OUT" tools; true`, w, ""},
		{"hooksPath that is not there yet", init + "git config core.hooksPath tools/deep/hooks", `hooks tools/deep/hooks`, w, ""},
		{"hooksPath that is not there, through a link", init + "git config core.hooksPath tools/hooks", `hooks evil/hooks; ln -s evil tools`, w, ""},
		{"hooksPath that is not there, through a link to the outside", init + "git config core.hooksPath tools/hooks", `ln -s "$OUT" tools; true`, w, ""},
		{"one-line hooksPath", init + `printf '[core] hooksPath=tools/h\n' >>.git/config; mkdir -p tools/h`, "hooks tools/h; true", w, ""},
		{"hooksPath continued by a backslash", init + `printf '[core]\n hooksPath = too\\\nls/h\n' >>.git/config; mkdir -p tools/h`, "hooks tools/h; true", w, ""},
		{"hooksPath with a trailing comment", init + `printf '[core]\n hooksPath = tools/h   # ours\n' >>.git/config; mkdir -p tools/h`, "hooks tools/h; true", w, ""},
		{"hooksPath in quotes, with a blank", init + `printf '[CORE]\n HOOKSPATH = "my tools"/h ; ours\n' >>.git/config; mkdir -p "my tools/h"`, `hooks "my tools/h"; true`, w, ""},
		{"hooksPath of .", init + "git config core.hooksPath .", "hooks .", w, ""},
		{"hooksPath of ./ in a nested repository", "mkdir n; cd n; " + init + "git config core.hooksPath ./", "hooks n", w, ""},
		{"hooksPath above a nested repository", "mkdir n; cd n; " + init + "git config core.hooksPath ..", "hooks .", w, ""},
		{"hooksPath of a nested repository", "mkdir -p n/x; cd n/x; " + init + "git config core.hooksPath ../hk; mkdir ../hk", "hooks n/hk; mv n/hk n/h2; mv n n2; hooks n/hk; true", w, ""},
		{"hooksPath of a nested repository, not there", "mkdir -p n/x; cd n/x; " + init + "git config core.hooksPath hk/a", "hooks n/x/hk/a; mv n m; true", w, ""},
		{"hooksPath with dots through a folder that is missing", init + "git config core.hooksPath none/../h", "mkdir none; hooks h; true", w, ""},
		{"a hook that is a link into the project", init + "mkdir scripts; echo '#!/bin/sh' >scripts/pc; chmod 755 scripts/pc; ln -s ../../scripts/pc .git/hooks/pre-commit", `printf '%s' "$hook" >scripts/pc; rm -f scripts/pc; printf '%s' "$hook" >scripts/pc; chmod 755 scripts/pc; mv scripts s; mkdir scripts; printf '%s' "$hook" >scripts/pc; chmod 755 scripts/pc; true`, w, ""},
		{"hooksPath of the user's settings", init + `echo '[core] hooksPath = .githooks' >"$HOME/.gitconfig"; mkdir .githooks`, "hooks .githooks; true", w, ""},
		{"hooksPath of the user's settings, not there", init + `echo '[core] hooksPath = .githooks' >"$HOME/.gitconfig"`, "hooks .githooks; true", w, ""},
		// Settings inside the project.
		{"include.path", init + "git config include.path ../team.cfg; touch team.cfg", "settings team.cfg false; mv team.cfg t; settings team.cfg false; true", w, ""},
		{"include.path that is not there", init + "git config include.path ../conf/team.cfg", "mkdir conf; settings conf/team.cfg false; true", w, ""},
		{"includeIf", init + `git config 'includeIf.gitdir:/.path' ../team.cfg; touch team.cfg`, "settings team.cfg false; true", w, ""},
		{"include of an include", init + "mkdir conf; git config include.path ../conf/a; printf '[include]\npath=b\n' >conf/a; touch conf/b", "settings conf/b false; mv conf c; mkdir conf; settings conf/a false; true", w, ""},
		{"include.path of a nested repository that moves", "mkdir -p n/x/c; cd n/x; " + init + "git config include.path ../c/s; touch c/s", "mv n m; mv m/x m/y; mv n/x/c n/x/d; mkdir -p m/y/c n/x/c; settings m/y/c/s false; settings n/x/c/s false; true", w, ""},
		{"include.path of the user's settings", init + `printf '[include]\npath=%s/team.cfg\n' "$PWD" >"$HOME/.gitconfig"; touch team.cfg`, "settings team.cfg false; true", w, ""},
		{"settings that are a link", init + "mkdir shared; mv .git/config shared/config; ln -s ../shared/config .git/config", "settings shared/config false; mv shared s; mkdir shared; settings shared/config false; true", w, ""},
		{"a program that settings name", init + `mkdir tools; printf '#!/bin/sh\n' >tools/fsm; chmod 755 tools/fsm; git config core.fsmonitor tools/fsm`, `printf '%s' "$hook" >tools/fsm; mv tools t; mkdir tools; printf '%s' "$hook" >tools/fsm; chmod 755 tools/fsm; true`, w, ""},
		// Repositories elsewhere.
		{"a separate git folder", "git init -q --separate-git-dir=store . && git config user.email a@b", "settings store/config false; hooks store/hooks; true", w, ""},
		{"a separate git folder that is not there", "echo 'gitdir: store' >.git", "bare store false; true", w, ""},
		{"a separate git folder through a link", "mkdir real; git init -q --separate-git-dir=real/store . && ln -s real way && echo 'gitdir: way/store' >.git", "bare evil/store false; rm way; ln -s evil way; true", w, ""},
		{"a bare repository", "", "bare b; bare deep/er/b2", w, ""},
		{"a bare repository completed", "mkdir -p b/objects b/refs", "echo 'ref: refs/heads/main' >b/HEAD; settings b/config true", w, ""},
		{"a bare repository of the user's", "git init -q --bare b", "settings b/config true; hooks b/hooks; true", w, ""},
		{"a folder with a common one", "", "bare c/real; mkdir c/link; echo ../real >c/link/commondir; echo 'ref: refs/heads/main' >c/link/HEAD", w, ""},
		{"a working tree's common folder", init + "git worktree add -q wt", "echo 'gitdir: ../evil' >wt/.git; rm -rf wt/.git; mv wt w2; repo wt; true", w, ""},
		{"below a bare repository that is made", "mkdir -p src/x", "repo src/x; mkdir src/objects src/refs; echo 'ref: refs/heads/main' >src/HEAD", w, ""},
		{"a nested repository", "", "repo a; mkdir -p b/c; echo 'gitdir: ../../d' >b/c/.git; bare d false", w, ""},
		{"a submodule's file of git", init + "git init -q sub && git -C sub config user.email a@b && git -C sub config user.name n && git -C sub commit -q --allow-empty -m x; git submodule -q add ./sub sub 2>/dev/null; git submodule -q absorbgitdirs", "echo 'gitdir: ../evil' >sub/.git; rm -f sub/.git; mv sub s2; bare evil false; mkdir sub; echo 'gitdir: ../evil' >sub/.git; true", w, ""},
		// The home folder.
		{"~/.local linked elsewhere", `mkdir -p "$HOME/dot/local"; ln -s dot/local "$HOME/.local"`, `cd; mkdir -p dot/local/bin; echo EVIL >dot/local/bin/ls; true`, h, ""},
		{"~/.local replaced by a link", `mkdir -p "$HOME/.local/share"`, `cd; mkdir -p evil/bin; echo EVIL >evil/bin/ls; mv .local l; rm -rf .local; ln -s evil .local; true`, h, ""},
		{"~/.local, which is a link, replaced", `mkdir -p "$HOME/dot/local/bin"; ln -s dot/local "$HOME/.local"`, `cd; mkdir -p evil/bin; echo EVIL >evil/bin/ls; rm .local; ln -s evil .local; mv dot d; mkdir -p dot/local/bin; echo EVIL >dot/local/bin/ls; true`, h, ""},
		{"~/.config linked out of the home folder", `mkdir -p "$OUT/conf"; ln -s "$OUT/conf" "$HOME/.config"`, `cd; mkdir -p evil/autostart; echo EVIL >evil/autostart/x.desktop; rm .config; ln -s evil .config; true`, h, ""},
		{"start-up files behind a mode", "", `cd; echo EVIL >.bashrc; mkdir -p .config/autostart; echo EVIL >.config/autostart/x; chmod 000 .config/autostart .config; chmod 555 .`, h, ""},
		{"hooks of the user's settings", `printf '[core]\n hooksPath = ~/hk\n' >"$HOME/.gitconfig"; mkdir "$HOME/hk"; ` + init, `hooks ~/hk; mv ~/hk ~/h2; hooks ~/hk; true`, h, ""},
	}
	return all
}

// TestNothingIsLeft: whatever a command does, nothing that it made runs as the user later, through git or a protected
// name. Nothing outside its writable folders is renamed (SPEC E-2).
func TestNothingIsLeft(t *testing.T) {
	need(t, "git")
	for _, s := range sieges() {
		if os.Getenv("SANDBOX_ORDINARY") != "" && !strings.Contains(s.before+s.attack, "chmod") {
			continue // only modes behave differently for an ordinary user
		}
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			s.run(t)
		})
	}
}

// shellIn runs a script with these functions in a folder.
func shellIn(t *testing.T, dir, script string, env ...string) {
	t.Helper()
	cmd := exec.Command("sh", "-ec", evil+script)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func (s siege) run(t *testing.T) {
	root := paths.Real(t.TempDir())
	home, out := filepath.Join(root, "home"), filepath.Join(root, "out")
	ws, marker := filepath.Join(home, "work"), filepath.Join(home, "marker")
	if err := errors.Join(os.MkdirAll(ws, 0o700), os.MkdirAll(filepath.Join(out, "hooks"), 0o700), os.WriteFile(filepath.Join(out, "hooks", "mine"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwx", root).Run() })
	env := []string{"HOME=" + home, "OUT=" + out, "MARKER=" + marker}
	shellIn(t, ws, s.before, env...)
	outside := names(t, out)
	box := New(&Options{Home: home, Records: filepath.Join(root, "records")})
	box.env = func(string) string { return "" }
	r := runIn(t, box, Policy{Write: s.write},
		Command{Workspace: ws, Args: []string{"sh", "-c", evil + s.attack}, Env: env[1:]})
	if r.Limit != nil {
		t.Fatalf("%+v %s", r.Limit, r.Stderr)
	}
	if _, err := os.Lstat(marker); err == nil {
		t.Fatal("the attack ran its own hook")
	}
	if got := names(t, out); got != outside {
		t.Errorf("outside is now\n%swas\n%s", got, outside)
	}
	evilLeft(t, home)
	useGit(t, home, marker, env)
	said := fmt.Sprintf("%+v", r.Quarantined)
	if !strings.Contains(said, s.says) {
		t.Errorf("it does not say %q: %s", s.says, said)
	}
	if left, _ := os.ReadDir(filepath.Join(root, "records")); len(left) > 0 {
		t.Errorf("records are left: %v", left)
	}
}

// names lists everything below a folder.
func names(t *testing.T, dir string) string {
	t.Helper()
	var w strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		fmt.Fprintln(&w, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return w.String()
}

// evilLeft fails if a protected name leads to something evil. It follows links, as the user's programs do.
func evilLeft(t *testing.T, home string) {
	t.Helper()
	watched := []string{".local/bin/ls", ".config/autostart/x", ".config/autostart/x.desktop", ".bashrc"}
	for _, name := range watched {
		if data, err := os.ReadFile(filepath.Join(home, name)); err == nil && strings.Contains(string(data), "EVIL") {
			t.Errorf("%s is evil", name)
		}
	}
	// The user can change modes.
	cmd := exec.Command("sh", "-c", `chmod -R u+rwX . ; find . -iname .git -o -name .envrc -o -name .vscode -o -name .mcp.json | while read -r f; do grep -rq EVIL "$f" 2>/dev/null && echo "$f"; if [ -d "$f" ]; then find "$f" -type l | while read -r l; do grep -q EVIL "$l" 2>/dev/null && echo "$l"; done; fi; done; exit 0`)
	cmd.Dir = filepath.Join(home, "work")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "" {
		t.Errorf("left: %v\n%s", err, out)
	}
}

// useGit runs git commands in every folder of a workspace.
func useGit(t *testing.T, home, marker string, env []string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `find . -type d -not -path '*/.git/*' -not -path '*pollux-quarantine*' -not -path '*/junk/*' | head -2500 | while read -r d; do
		[ -e "$d/.git" ] || [ -e "$d/HEAD" ] || [ "$d" = . ] || continue
		(cd "$d" && git status && git commit --allow-empty -m x && git checkout -b "b$$") >/dev/null 2>&1
		[ -e "$MARKER" ] && { echo "$d"; break; }; done; exit 0`)
	cmd.Dir = filepath.Join(home, "work")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v %s", err, out)
	}
	if _, err := os.Lstat(marker); err == nil {
		t.Errorf("git ran the attacker's program in %s", out)
	}
}
