package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox/inside"
)

// attackAndWait makes files that must not stay, and waits to be killed.
const attackAndWait = "mkdir -p a .vscode && echo EVIL >.vscode/tasks.json && echo EVIL >a/.envrc && rm -f .mcp.json; chmod 311 a; echo made; sleep 1000"

// runWriter is a pollux that is killed while its command writes. Below dir are home, home/work and records.
func runWriter(dir string) int {
	s := New(&Options{Home: dir + "/home", Records: dir + "/records"})
	_, err := s.Run(context.Background(), Policy{Write: permission.Workspace}, Command{Workspace: dir + "/home/work", Args: []string{"sh", "-c", attackAndWait}, Stdout: os.Stdout})
	fmt.Println(err)
	return 1
}

// startWriter starts runWriter and waits until its command has written.
func startWriter(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-victim", "writer:"+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "made\n" {
		t.Fatalf("%q %v", line, err)
	}
	return cmd
}

func records(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// TestKilled: when pollux was killed during a run, the next start moves aside what the command made; not before, and
// only once (SPEC E-2).
func TestKilled(t *testing.T) {
	p := newPlace(t)
	runIn(t, p.s, Policy{}, Command{Args: []string{"true"}}) // skips the test without namespaces
	if err := os.MkdirAll(filepath.Join(p.workspace, ".idea"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(p.root, "records")
	s := New(&Options{Home: p.home, Records: dir})
	victim := startWriter(t, p.root)
	for _, e := range records(t, dir) {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
	}
	next := func(policy Policy) *Result {
		t.Helper()
		return runIn(t, s, policy, Command{Args: []string{"true"}, Workspace: p.workspace})
	}
	if r := next(Policy{}); len(r.Quarantined) > 0 {
		t.Errorf("while it runs: %+v", r.Quarantined)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // killed
	made := filepath.Join(p.workspace, ".git-of-the-user")
	if err := os.Mkdir(made, 0o700); err != nil {
		t.Fatal(err)
	}
	r := next(Policy{})
	var moved []string
	for _, q := range r.Quarantined {
		moved = append(moved, strings.TrimPrefix(q.Path, p.workspace+"/"))
		if !q.Earlier || q.Err != "" {
			t.Errorf("%+v", q)
		}
	}
	if fmt.Sprint(moved) != "[.vscode a/.envrc]" {
		t.Errorf("moved aside: %q", moved)
	}
	for name, there := range map[string]bool{".vscode": false, "a/.envrc": false, ".idea": true, ".git/config": true, ".envrc": true, ".git-of-the-user": true} {
		if _, err := os.Lstat(filepath.Join(p.workspace, name)); (err == nil) != there {
			t.Errorf("%s: should be there: %v (%v)", name, there, err)
		}
	}
	if left := records(t, dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if r := next(Policy{Write: permission.Workspace}); len(r.Quarantined) > 0 {
		t.Errorf("once more: %+v", r.Quarantined)
	}
}

// TestKilledTwice: several runs were killed, one in a folder that is gone, and some records are unreadable. Each is
// handled once.
func TestKilledTwice(t *testing.T) {
	p := newPlace(t)
	runIn(t, p.s, Policy{}, Command{Args: []string{"true"}})
	dir := filepath.Join(p.root, "records")
	for range 2 {
		victim := startWriter(t, p.root)
		_ = victim.Process.Kill()
		_ = victim.Wait()
		if err := os.RemoveAll(filepath.Join(p.workspace, ".vscode")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(p.workspace, p.workspace+"-moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(p.workspace, ".vscode"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"run-bad": "{", "run-old": `{"version":0}`, "run-empty": "", "other": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(p.home, "notes"), filepath.Join(dir, "run-link")); err != nil {
		t.Fatal(err)
	}
	s := New(&Options{Home: p.home, Records: dir})
	r := runIn(t, s, Policy{}, Command{Args: []string{"true"}})
	said := fmt.Sprintf("%+v", r.Quarantined)
	if strings.Count(said, "is another one now") < 2 || strings.Count(said, "cannot be used") != 3 {
		t.Errorf("%s", said)
	}
	if _, err := os.Lstat(filepath.Join(p.workspace, ".vscode")); err != nil {
		t.Error("what lies in another folder was moved:", err)
	}
	if r := runIn(t, s, Policy{}, Command{Args: []string{"true"}}); len(r.Quarantined) > 0 {
		t.Errorf("once more: %+v", r.Quarantined)
	}
}

// TestLaterIsTheUsers: a file made after a killed command's last moment stays in place.
func TestLaterIsTheUsers(t *testing.T) {
	p := newPlace(t)
	l := &layout{mounts: map[string]inside.Mount{}}
	l.anchor(p.workspace)
	w := &watch{Anchors: l.watched.Anchors, Root: p.workspace, Paths: []watched{{Path: filepath.Join(p.workspace, ".vscode")}}}
	for _, name := range []string{".vscode", "x/.git"} {
		if err := os.MkdirAll(filepath.Join(p.workspace, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if found := w.quarantine(time.Now().Add(-time.Hour).UnixNano()); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	if found := w.quarantine(time.Now().Add(time.Hour).UnixNano()); len(found) < 2 {
		t.Errorf("%+v", found)
	}
}

// TestRecordNeeded: if no record can be written, a command that needs one is not run.
func TestRecordNeeded(t *testing.T) {
	p := newPlace(t)
	s := New(&Options{Home: p.home, Records: filepath.Join(p.home, "notes", "records")})
	_, err := s.Run(context.Background(), Policy{Write: permission.Workspace}, Command{Args: []string{"touch", "ran"}, Workspace: p.workspace})
	if err == nil || !strings.Contains(err.Error(), "record") && !strings.Contains(err.Error(), "notes") {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(filepath.Join(p.workspace, "ran")); err == nil {
		t.Error("it was run")
	}
}
