package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/peers"
	"github.com/pollux-companion/pollux/internal/sandbox/escapes"
)

// A prey is what a host has and a sandbox must protect.
type prey struct {
	*escapes.Prey
	s *Sandbox
}

func newPrey(t *testing.T) *prey {
	t.Helper()
	root, err := os.MkdirTemp("", "px") // short, for the sockets in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	p, err := escapes.NewPrey(paths.Real(root))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return &prey{p, New(&Options{Home: p.Home})}
}

// TestEscapes: each escape works without a sandbox, if that is harmless, and fails in one, at the level that gives a
// program most (SPEC S-1, E-2).
func TestEscapes(t *testing.T) {
	p := newPrey(t)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pooled := New(&Options{Home: p.Home, Pool: newPool(t)})
	for _, e := range escapes.All() {
		t.Run(strings.ReplaceAll(e.Name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			if e.Play != nil {
				playEscape(t, &e)
				return
			}
			if p.Works(&e) {
				ctx, cancel := context.WithTimeout(t.Context(), trialWithin)
				defer cancel()
				if code, err := p.Outside(ctx, &e); code != escapes.Out || err != nil {
					t.Errorf("without a sandbox it ends with %d, %v: the probe proves nothing", code, err)
				}
			}
			for i, policy := range e.Policies() {
				s := p.s
				if i == 0 {
					s = pooled // a process that waited before it had a policy must hold too
				}
				r := runIn(t, s, policy, Command{Args: e.Command(binary), Workspace: p.Workspace, ReadOnly: []string{p.ReadOnly}, Env: p.Env})
				if r.Code != escapes.Held {
					t.Errorf("%+v: it ends with %d\n%s%s", policy, r.Code, r.Stdout, r.Stderr)
				}
			}
		})
	}
	if _, err := os.Lstat(filepath.Join(p.Home, "made-by-probe")); err == nil {
		t.Error("a probe wrote to the home folder")
	}
}

// playEscape plays an escape that takes more than one process, on a prey of its own.
func playEscape(t *testing.T, e *escapes.Escape) {
	dir, err := os.MkdirTemp("", "px")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	what, err := New(&Options{Records: filepath.Join(dir, "runs")}).playEscape(context.Background(), dir, e)
	if err != nil || what != "" {
		t.Errorf("%s, %v", what, err)
	}
}

// TestAsOrdinaryUser repeats the most important tests as another user if root runs them: the kernel applies other
// checks then.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this is an ordinary user's run already")
	}
	pace.NotRaced(t, "the same tests have just shared the same memory")
	if os.Getenv("SANDBOX_ORDINARY") != "" {
		t.Fatal("root again")
	}
	const uid = 64123 // nobody's
	dir, err := os.MkdirTemp("/var/lib", "pollux-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "sandbox.test"), binary, 0o755), os.Chmod(filepath.Join(dir, "sandbox.test"), 0o755), os.Chmod(dir, 0o755),
		os.Mkdir(filepath.Join(dir, "home"), 0o700), os.Chown(filepath.Join(dir, "home"), uid, uid)); err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.run=^(TestEscapes|TestLevels|TestLimits|TestNothingSurvives|TestHosts|TestQuarantine|TestReduced|TestWithoutNamespaces|TestMovesAroundProtection|TestSwap|TestParallel|TestPool.*|TestNestedProtection|TestNothingIsLeft|TestKilled|TestRawAddresses|TestEveryStepFails|TestInContainers)$", "-test.timeout=800s"}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.Command(filepath.Join(dir, "sandbox.test"), args...)
	cmd.Dir = filepath.Join(dir, "home")
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + cmd.Dir, "TMPDIR=" + cmd.Dir, "SANDBOX_ORDINARY=1", "GORACE=atexit_sleep_ms=0", peers.RequireEnv + "=" + os.Getenv(peers.RequireEnv)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	} else if testing.Verbose() {
		t.Logf("%s", out)
	}
}

// TestSelfTestCannotBegin: where the targets cannot be made, the self-test says so.
func TestSelfTestCannotBegin(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 120)) // too long for a socket
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	err := SelfTest(t.Context(), dir, "/proc/self/exe", func(Trial) { t.Error("something was tried") })
	if !errors.Is(err, ErrUnsupported) {
		t.Errorf("%v", err)
	}
}
