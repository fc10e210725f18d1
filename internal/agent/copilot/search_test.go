package copilot

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/lockfile"
	"github.com/pollux-companion/pollux/internal/core/text"
)

// SPEC GC-1: a lock says what Copilot CLI reads, and is read again as it was; what is no lock is none.
func TestLockGC1(t *testing.T) {
	k := Locks()
	in := lockfile.Lock{Socket: "/run/x.agents", Scheme: "unix", Since: time.UnixMilli(1700000000123), Roots: []string{"/a b", "/<ü>"}, Token: "t0ken", PID: 7, DisplayName: "Ed"}
	data, err := k.Encode(&in)
	want := `{"socketPath":"/run/x.agents","scheme":"unix","headers":{"Authorization":"Nonce t0ken"},"pid":7,"ideName":"Ed","timestamp":1700000000123,"workspaceFolders":["/a b","/<ü>"],"pollux":true}`
	if err != nil || string(data) != want {
		t.Errorf("%s, %v", data, err)
	}
	out, err := k.Decode(data)
	if err != nil || out.Socket != in.Socket || out.Token != in.Token || !out.Ours || fmt.Sprint(out.Roots) != fmt.Sprint(in.Roots) {
		t.Errorf("%+v, %v", out, err)
	}
	for _, bad := range []string{``, `[]`, `{}`, `{"socketPath":"/x"}`, `{"socketPath":"/x","headers":{"Authorization":"Bearer x"}}`, `{"headers":{"Authorization":"Nonce x"}}`} {
		if _, err := k.Decode([]byte(bad)); err == nil {
			t.Errorf("%s is a lock", bad)
		}
	}
	if _, err := k.Encode(&lockfile.Lock{Roots: []string{"/\xff"}}); err == nil {
		t.Error("a folder that no JSON can name")
	}
}

// SPEC GC-1: it takes the first lock by name whose folder is its own and whose process lives, and no other.
func TestChooseGC1(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	deep := filepath.Join(dir, "deep")
	for _, d := range []string{lockfile.Dir(home), deep} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, lock := range map[string]lockfile.Lock{
		"1":                                    {PID: 2, Roots: []string{dir}, DisplayName: "dead"},
		"2":                                    {PID: 1, Roots: []string{deep}, DisplayName: "deeper"},
		"2f0c6c0e-98c4-4b2e-8a56-0d2f6f3b1a77": {PID: 1, Roots: []string{"/elsewhere", dir}, DisplayName: "first"}, // as Visual Studio Code names it
		"4":                                    {PID: 1, Roots: []string{dir}, DisplayName: "second"},
		"5":                                    {PID: 1, Roots: []string{"/"}, DisplayName: "above"},
	} {
		lock.Socket, lock.Token = "/s", "t"
		data, err := Locks().Encode(&lock)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(lockfile.Dir(home), name+".lock"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	choose := func(dir string) *lockfile.Choice {
		return Choose(lockfile.World{Home: home, Dir: dir, Getenv: func(string) string { return "" }, Alive: func(pid int) bool { return pid == 1 }})
	}
	if c := choose(dir); c.Taken < 0 || c.Candidates[c.Taken].Lock.DisplayName != "first" || c.Trouble != nil {
		t.Errorf("%+v", c)
	}
	if c := choose(deep); c.Taken < 0 || c.Candidates[c.Taken].Lock.DisplayName != "deeper" {
		t.Errorf("%+v", c)
	}
	if c := choose(t.TempDir()); c.Taken >= 0 || c.Trouble == nil || !strings.Contains(c.Trouble.What, "serves this folder too") {
		t.Errorf("%+v", c)
	}
}

// SPEC GC-5: what Copilot CLI tells its model of a selection; without one it tells nothing.
func TestToldGC5(t *testing.T) {
	for params, want := range map[string]string{
		`{"text":"two\n","filePath":"/w/a.txt","selection":{"start":{"line":1,"character":0},"end":{"line":1,"character":3}}}`:      "File: a.txt (line 2)\n```\ntwo",
		`{"text":"two\nthree","filePath":"/w/a.txt","selection":{"start":{"line":1,"character":0},"end":{"line":2,"character":5}}}`: "File: a.txt (lines 2-3)",
		`{"text":"","filePath":"/w/a.txt","selection":{"isEmpty":true}}`:                                                            "",
		`{"text":"","filePath":""}`: "",
	} {
		if got, err := Told([]byte(params)); err != nil || !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, %v", params, got, err)
		}
	}
	if _, err := Told([]byte(`[`)); err == nil {
		t.Error("no JSON is told")
	}
}

// FuzzDecode: whatever lies in the folder, no lock of it is half a lock, and choosing among such locks ends well.
func FuzzDecode(f *testing.F) {
	home, dir := f.TempDir(), f.TempDir()
	file := filepath.Join(lockfile.Dir(home), "x.lock")
	if err := os.Mkdir(lockfile.Dir(home), 0o700); err != nil {
		f.Fatal(err)
	}
	whole := fmt.Sprintf(`{"socketPath":"/s","scheme":"unix","headers":{"Authorization":"Nonce t"},"pid":7,"ideName":"Ed","timestamp":1,"workspaceFolders":[%q]}`, dir)
	for _, seed := range []string{
		whole, strings.Replace(whole, "7", "-1", 1), strings.Replace(whole, "unix", "pipe", 1), strings.Replace(whole, `"/s"`, `"\\\\.\\pipe\\s"`, 1),
		strings.Replace(whole, "Authorization", "authorization", 1), strings.Replace(whole, "Nonce t", "Nonce ", 1), `{"workspaceFolders":null}`,
		`{"socketPath":"/s","headers":{"Authorization":"Nonce t"},"workspaceFolders":["","\u0000","/"]}`, `{"pid":1e99}`, `{}`, `[]`, ``, "/s\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if l, err := decode(data); err == nil {
			again, err := encode(l)
			if err != nil {
				return // a folder that is not UTF-8
			}
			back, err := decode(again)
			if err != nil || back.Socket != l.Socket || back.Token != l.Token || back.PID != l.PID || len(back.Roots) != len(l.Roots) {
				t.Errorf("%q reads back as %+v, %v", data, back, err)
			}
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c := Choose(lockfile.World{Home: home, Dir: dir, Getenv: func(string) string { return "" }, Alive: func(pid int) bool { return pid == 7 }})
		if c.Taken >= 0 && c.Candidates[c.Taken].Lock == nil {
			t.Errorf("%q is no lock, and is taken", data)
		}
	})
}

// FuzzTold: whatever a companion says of a selection, what the model would be told holds the file's name and the selected text.
func FuzzTold(f *testing.F) {
	for _, seed := range []string{
		`{"text":"two","filePath":"/w/a.txt","selection":{"start":{"line":1},"end":{"line":1}}}`,
		`{"text":"x","filePath":"/","selection":{"start":{"line":9e18},"end":{"line":-1}}}`, `{"text":"x","filePath":"a","selection":null}`, `{}`, `[]`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var said struct{ Text, FilePath string }
		told, err := Told(data)
		if err != nil || told == "" {
			return
		}
		if err := json.Unmarshal(data, &said); err != nil || !strings.Contains(told, filepath.Base(said.FilePath)) || !strings.Contains(told, text.CutUTF16(said.Text, maxTold)) {
			t.Errorf("of %q: %q", data, told)
		}
	})
}
