package claude

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/agent/lockfile"
)

// SPEC OC-1: the longest folder that holds its own counts, then the newest file; a port in a variable names none.
func TestChooseOpenCodeOC1(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	deep := filepath.Join(dir, "deep")
	for _, d := range []string{lockfile.Dir(home), deep} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	for port, lock := range map[int]lockfile.Lock{
		1: {PID: 1, Roots: []string{dir}}, 2: {PID: 1, Roots: []string{"/", dir}}, 3: {PID: 1, Roots: []string{deep}},
		4: {PID: 2, Roots: []string{dir}}, 5: {PID: 1, Roots: []string{"/elsewhere"}},
	} {
		data, err := Locks().Encode(&lock)
		if err != nil {
			t.Fatal(err)
		}
		path := lockfile.Path(home, port)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(time.Duration(port)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	for folder, want := range map[string]int{dir: 2, deep: 3, t.TempDir(): 2} {
		c := ChooseOpenCode(lockfile.World{Home: home, Dir: folder, Alive: func(pid int) bool { return pid == 1 }, Getenv: func(name string) string {
			if name == PortVariable {
				return strconv.Itoa(1)
			}
			return ""
		}})
		got := 0
		if c.Taken >= 0 {
			got = c.Candidates[c.Taken].Lock.Port
		}
		if got != want {
			t.Errorf("%s: %d, want %d", folder, got, want)
		}
	}
}

// SPEC OC-2: a real port in either variable keeps it out; 0, nothing and text do not.
func TestOpenCodeModeOC2(t *testing.T) {
	for value, want := range map[string]finding.Level{"": finding.OK, "0": finding.OK, "text": finding.OK, "4711": finding.Fault} {
		for _, name := range OpenCodePorts() {
			if f := OpenCodeMode("", "", func(asked string) string { return map[string]string{name: value}[asked] }); f.Level != want {
				t.Errorf("%s=%s: %+v", name, value, f)
			}
		}
	}
}
