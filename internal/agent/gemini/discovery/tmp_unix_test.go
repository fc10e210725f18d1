//go:build unix

package discovery

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var tempCases = []struct{ tmpdir, tmp, temp, want string }{
	{"", "", "", "/tmp"},
	{"/a", "/b", "/c", "/a"},
	{"", "/b", "/c", "/b"},
	{"", "", "/c", "/c"},
	{"/a/", "", "", "/a"},
	{"/a b/ü", "", "", "/a b/ü"},
	{"/", "", "", "/"},
	{"/a//", "", "", "/a/"}, // Node strips one slash; the path is joined and cleaned afterwards
}

// SPEC D-1: as Node's os.tmpdir().
func TestTempDirD1(t *testing.T) {
	for _, tt := range tempCases {
		t.Setenv("TMPDIR", tt.tmpdir)
		t.Setenv("TMP", tt.tmp)
		t.Setenv("TEMP", tt.temp)
		if got := TempDir(); got != strings.TrimSuffix(tt.want, "/") && got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
	t.Setenv("TMPDIR", "rel")
	wd, _ := os.Getwd()
	if got := Dir(); got != wd+"/rel/gemini/ide" {
		t.Errorf("a relative TMPDIR: %s", got)
	}
}

// The table above is what Node does, where there is one.
func TestTempDirAgreesWithNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Logf("no node here to compare with: %v", err)
		return
	}
	for _, tt := range tempCases {
		cmd := exec.Command(node, "-p", "require('os').tmpdir()")
		cmd.Env = []string{"TMPDIR=" + tt.tmpdir, "TMP=" + tt.tmp, "TEMP=" + tt.temp}
		out, err := cmd.Output()
		if got := strings.TrimSuffix(string(out), "\n"); err != nil || got != tt.want {
			t.Errorf("%+v: node says %q, %v", tt, got, err)
		}
	}
}

// A FIFO in place of the folder of discovery files is not waited for.
func TestSweepNoFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ide")
	if err := syscall.Mkfifo(dir, 0o600); err != nil {
		t.Fatal(err)
	}
	if removed := (&Sweeper{Dir: dir}).Sweep(t.Context()); len(removed) > 0 {
		t.Errorf("removed %v", removed)
	}
}
