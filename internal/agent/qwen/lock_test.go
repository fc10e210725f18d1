package qwen

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/agent/lockfile"
)

func lock(t *testing.T) *lockfile.Lock {
	return &lockfile.Lock{Port: 4711, Roots: []string{t.TempDir()}, Token: "secret", PID: 1 << 21, Name: "pollux", DisplayName: "Pollux"}
}

// SPEC: the members that Qwen Code wants; the folders are a JSON array inside a string, whatever they are called.
func TestEncodeQ1(t *testing.T) {
	t.Parallel()
	l := lock(t)
	l.Roots = append(l.Roots, l.Roots[0]+"/a:b", l.Roots[0]+"/100%", l.Roots[0]+"/<&>", l.Roots[0]+`/"quoted"`, l.Roots[0]+"/ü")
	data, err := encode(l)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Port                              int
		WorkspacePath, AuthToken, IDEName string
		PPID                              int
		IDEInfo                           struct{ Name, DisplayName string }
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	var roots []string
	if err := json.Unmarshal([]byte(file.WorkspacePath), &roots); err != nil || !reflect.DeepEqual(roots, l.Roots) {
		t.Errorf("the folders are %q, %v", file.WorkspacePath, err)
	}
	if file.Port != l.Port || file.AuthToken != l.Token || file.PPID != l.PID || file.IDEName != "Pollux" || file.IDEInfo.Name != "pollux" || file.IDEInfo.DisplayName != "Pollux" {
		t.Errorf("%s", data)
	}
	if strings.Contains(string(data), `\u00`) {
		t.Errorf("characters are escaped that need not be: %s", data)
	}
	l.Ours = true
	if back, err := decode(data); err != nil || !reflect.DeepEqual(back, l) {
		t.Errorf("it reads back as %+v, %v", back, err)
	}
}

// A folder that no Qwen Code would find is an error that names it.
func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	for _, root := range []string{"", "relative", t.TempDir() + "/\xff"} {
		l := lock(t)
		l.Roots = append(l.Roots, root)
		if data, err := encode(l); err == nil || !strings.Contains(err.Error(), "folder") {
			t.Errorf("%q: %s, %v", root, data, err)
		}
	}
}

// What other programs write is read as far as it goes; what is no lock is an lockfile.ErrLock.
func TestDecode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]*lockfile.Lock{
		`{"port":1,"workspacePath":"/a","authToken":"t","ppid":2,"ideName":"X"}`:          {Port: 1, Roots: []string{"/a"}, Token: "t", PID: 2, DisplayName: "X"},
		`{"port":1,"workspacePath":"[\"/a\",\"/b:c\"]","ideInfo":{"name":"n"},"new":[1]}`: {Port: 1, Roots: []string{"/a", "/b:c"}, Name: "n"},
		`{"port":1,"workspacePath":"[\"/a\",1]"}`:                                         {Port: 1, Roots: []string{`["/a",1]`}},
		`{"port":1}`: {Port: 1},
		`{"workspacePath":"/","stdio":{"command":"pollux","args":["relay"]},"pollux":true}`: {Roots: []string{"/"}, Stdio: &lockfile.Stdio{Command: "pollux", Args: []string{"relay"}}, Ours: true},
	} {
		if got, err := decode([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "{", "[]", "null", "{}", `{"port":"1"}`, `{"port":-1}`, `{"port":65536}`, `{"port":1.5}`, `{"stdio":{"command":""}}`, `{"port":1,"workspacePath":["/a"]}`} {
		if got, err := decode([]byte(text)); !errors.Is(err, lockfile.ErrLock) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// FuzzParse: whatever lies in the folder, Parse returns a lock with a port or a command, or an lockfile.ErrLock.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"port":1,"workspacePath":"[\"/a\"]","authToken":"t","ppid":2,"ideInfo":{"name":"n","displayName":"N"}}`,
		`{"workspacePath":"/","stdio":{"command":"c","args":[]}}`, `{"port":1,"workspacePath":"/a:/b"}`, `{"port":1e3,"ppid":-1}`, `[`, ``,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := decode(data)
		if err != nil {
			if !errors.Is(err, lockfile.ErrLock) || l != nil {
				t.Fatalf("%q: %+v, %v", data, l, err)
			}
			return
		}
		if l.Port == 0 && (l.Stdio == nil || l.Stdio.Command == "") || l.Port < 0 || l.Port > 65535 {
			t.Fatalf("%q: %+v", data, l)
		}
	})
}
