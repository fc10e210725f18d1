package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/peers"
)

// A prey is what a host has that a sandbox must keep: files, a process,
// services, a descriptor, a token in the environment.
type prey struct {
	s         *Sandbox
	home      string
	workspace string
	env       []string // for the probes
}

func newPrey(t *testing.T) *prey {
	t.Helper()
	root := t.TempDir()
	p := &prey{home: filepath.Join(root, "home"), workspace: filepath.Join(root, "home", "work")}
	for _, dir := range []string{".ssh", "work/.git", "extension"} {
		if err := os.MkdirAll(filepath.Join(p.home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(p.home, ".ssh", "id")
	for _, path := range []string{secret, filepath.Join(p.workspace, "file"), filepath.Join(p.home, "extension", "tool")} {
		if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(p.workspace, "link")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SANDBOX_TEST_TOKEN", "token")
	// What an editor left open in us, on a number that is not ours to close.
	leaked, err := unix.Open(secret, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(leaked) })
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	shm, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o600|unix.IPC_CREAT)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(shm, unix.IPC_RMID, nil) })
	p.s = New(&Options{Home: p.home})
	fifo := filepath.Join(root, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := unix.Open(fifo, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) // a program of the user's that listens
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(reader) })
	p.env = []string{"GORACE=atexit_sleep_ms=0", "PROBE_SECRET=" + secret, "PROBE_HOME=" + p.home, "PROBE_WORKSPACE=" + p.workspace, "PROBE_READONLY=" + filepath.Join(p.home, "extension"),
		fmt.Sprintf("PROBE_PID=%d", other.Process.Pid), fmt.Sprintf("PROBE_SHM=%d", shm), "PROBE_SOCKET=" + filepath.Join(root, "s"), "PROBE_FIFO=" + fifo}
	datagrams, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(root, "d"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { datagrams.Close() })
	p.env = append(p.env, "PROBE_DATAGRAMS="+filepath.Join(root, "d"))
	p.env = append(p.env, echoes(t, filepath.Join(root, "s"))...)
	return p
}

// echoes serves on loopback what comes back as it was sent.
func echoes(t *testing.T, socket string) []string {
	t.Helper()
	var env []string
	for name, where := range map[string][2]string{"TCP": {"tcp", "127.0.0.1:0"}, "TCP6": {"tcp6", "[::1]:0"}, "UNIX": {"unix", fmt.Sprintf("@pollux-test-%d", os.Getpid())}, "": {"unix", socket}} {
		l, err := net.Listen(where[0], where[1])
		if err != nil && name == "TCP6" {
			t.Logf("no version 6 on this machine: %v", err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		env = append(env, "PROBE_"+name+"="+l.Addr().String())
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() { defer conn.Close(); _, _ = io.Copy(conn, conn) }()
			}
		}()
	}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { packets.Close() })
	go func() {
		buf := make([]byte, 100)
		for {
			n, from, err := packets.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = packets.WriteTo(buf[:n], from)
		}
	}()
	return append(env, "PROBE_UDP="+packets.LocalAddr().String())
}

// outside runs a probe without a sandbox.
func (p *prey) outside(t *testing.T, name string) int {
	t.Helper()
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"probe", "-probe", name}, &syscall.ProcAttr{Env: append(os.Environ(), p.env...), Files: []uintptr{0, 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		t.Fatal(err)
	}
	return status.ExitStatus()
}

// TestEscapes: each way out works without a sandbox, where that harms nobody,
// and fails in it, at the level that gives a program the most to work with
// (SPEC S-1, E-2).
func TestEscapes(t *testing.T) {
	p := newPrey(t)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pooled := New(&Options{Home: p.home, Pool: newPool(t)})
	six := slices.ContainsFunc(p.env, func(v string) bool { return strings.HasPrefix(v, "PROBE_TCP6=") })
	for _, probe := range probes() {
		t.Run(strings.ReplaceAll(probe.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			works := probe.outside == forAll || probe.outside == forRoot && os.Getuid() == 0
			if works && (six || probe.name != "the same by IPv6" && probe.name != "raw packets of version 6") {
				if code := p.outside(t, probe.name); code != probeOut {
					t.Errorf("without a sandbox it ends with %d: the probe proves nothing", code)
				}
			}
			for i, policy := range policiesFor(probe.name) {
				s := p.s
				if i == 0 {
					s = pooled // what waited before it had a policy holds as well
				}
				r := runIn(t, s, policy, Command{Args: []string{binary, "-probe", probe.name}, Workspace: p.workspace, ReadOnly: []string{filepath.Join(p.home, "extension")}, Env: p.env})
				if r.Code != probeHeld {
					t.Errorf("%+v: it ends with %d\n%s%s", policy, r.Code, r.Stdout, r.Stderr)
				}
			}
		})
	}
	if _, err := os.Lstat(filepath.Join(p.home, "made-by-probe")); err == nil {
		t.Error("a probe wrote to the home folder")
	}
}

// policiesFor chooses what a probe must not do in spite of: reading the
// workspace; and writing to it, except for what that allows.
func policiesFor(name string) []Policy {
	if slices.ContainsFunc(moreProbes(), func(p probe) bool { return p.name == name }) {
		return []Policy{{Write: manifest.Workspace}}
	}
	all := []Policy{{}, {Read: manifest.Workspace}}
	switch name {
	case "write to the workspace", "change the times of a file of the workspace", "make the workspace writable":
		return all
	}
	return append(all, Policy{Write: manifest.Workspace})
}

// TestAsOrdinaryUser repeats, when it is root who tests, what matters most as
// somebody who is not: other checks of the kernel's are in force then.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this is an ordinary user's run already")
	}
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
