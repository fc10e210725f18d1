package peers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReportNamesEveryPeer: a peer is either found, with path and version, or missing, with a reason and a way to
// install it.
func TestReportNamesEveryPeer(t *testing.T) {
	report := Report()
	if len(report) != len(All()) {
		t.Fatalf("%d findings for %d peers", len(report), len(All()))
	}
	for _, f := range report {
		found := filepath.IsAbs(f.Path) && f.Version != ""
		if found == (f.Err != nil) {
			t.Errorf("%s: path %q, version %q, error %v", f.Peer, f.Path, f.Version, f.Err)
		}
		if strings.Contains(f.Peer.Install(), "nobody") {
			t.Errorf("%s has no way to be installed", f.Peer)
		}
	}
}

// TestNeedSkipsOrFails runs itself in a repository without peers: the test is skipped with a reason, and fails where
// skips are forbidden.
func TestNeedSkipsOrFails(t *testing.T) {
	if os.Getenv("PEERS_CHILD") == "1" {
		Need(t, Gemini)
		return
	}
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), "module github.com/pollux-companion/pollux\n")
	write(t, filepath.Join(root, "e2e/peers/package.json"), `{"dependencies":{"@google/gemini-cli":"0.61.0"}}`)
	for value, want := range map[string]string{"": "--- SKIP", "1": "--- FAIL"} {
		child := exec.Command(os.Args[0], "-test.run=^TestNeedSkipsOrFails$", "-test.v")
		child.Dir = root
		child.Env = append(os.Environ(), "PEERS_CHILD=1", "PATH="+t.TempDir(), RequireEnv+"="+value)
		out, _ := child.CombinedOutput()
		for _, part := range []string{want, "@google/gemini-cli 0.61.0 is not installed", "npm ci --prefix e2e/peers"} {
			if !strings.Contains(string(out), part) {
				t.Errorf("%s=%q: no %q in\n%s", RequireEnv, value, part, out)
			}
		}
	}
}

// TestFindPackageRefusesOtherVersions: another version of the CLI proves nothing about the pinned one.
func TestFindPackageRefusesOtherVersions(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "e2e/peers/package.json"), `{"dependencies":{"x":"1.2.3"}}`)
	write(t, filepath.Join(root, "e2e/peers/node_modules/x/package.json"), `{"version":"1.2.4"}`)
	if _, err := findPackage(root, "x", "x.js", ""); err == nil || !strings.Contains(err.Error(), "1.2.4") {
		t.Errorf("a wrong version: %v", err)
	}
	write(t, filepath.Join(root, "e2e/peers/node_modules/x/package.json"), `{"version":"1.2.3"}`)
	f, err := findPackage(root, "x", "x.js", "")
	if err != nil || f.Version != "1.2.3" || filepath.Base(f.Path) != "x.js" {
		t.Errorf("the right version: %+v, %v", f, err)
	}
}

func TestMajor(t *testing.T) {
	for version, want := range map[string]int{"v22.23.3": 22, "20.1": 20, "26": 26, "": 0, "next": 0} {
		if got := major(version); got != want {
			t.Errorf("major(%q) = %d, want %d", version, got, want)
		}
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
