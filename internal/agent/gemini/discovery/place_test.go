package discovery

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/safefile"
)

func TestNames(t *testing.T) {
	if got := FileName(12, 345); got != "gemini-ide-server-12-345.json" {
		t.Error(got)
	}
	if pid, port, ok := ParseName("gemini-ide-server-12-345.json"); pid != 12 || port != 345 || !ok {
		t.Error(pid, port, ok)
	}
	for _, name := range []string{"", "gemini-ide-server-12.json", "gemini-ide-server--1-5.json", "gemini-ide-server-+1-5.json", "gemini-ide-server-01-5.json",
		"gemini-ide-server-1-5.json.tmp", "x-gemini-ide-server-1-5.json", "gemini-ide-server-1-65536.json", "gemini-ide-server-1-2-3.json", "gemini-ide-server-99999999999999999999-1.json"} {
		if _, _, ok := ParseName(name); ok {
			t.Errorf("%q is the name of a discovery file", name)
		}
	}
}

// SPEC D-1, D-4, D-5: made with its folders, replaced whole, gone at the end.
func TestPlaceD4(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gemini", "ide")
	p := NewPlace(dir, 7, 8)
	if err := p.Remove(); err != nil {
		t.Errorf("before it was written: %v", err)
	}
	f := &File{Port: 8, Token: "t", Roots: []string{abs(t, "/one")}, IDE: &IDE{"n", "d"}}
	for _, root := range []string{"/one", "/two"} {
		f.Roots = []string{abs(t, root)}
		if err := p.Put(f); err != nil {
			t.Fatal(err)
		}
		entries, err := List(dir)
		if err != nil || len(entries) != 1 || entries[0].PID != 7 || entries[0].Port != 8 || entries[0].Path != p.Path() || entries[0].File.Roots[0] != f.Roots[0] {
			t.Errorf("%+v, %v", entries, err)
		}
	}
	info, _ := os.Stat(p.Path())
	folder, _ := os.Stat(dir)
	if info.Mode().Perm()&0o077 != 0 || folder.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may look: %v, %v", info.Mode(), folder.Mode())
	}
	for range 2 {
		if err := p.Remove(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// The wrong calls: links and files where the folders should be.
func TestPrepareRefuses(t *testing.T) {
	for name, prepare := range map[string]func(tmp string) error{
		"gemini is a link": func(tmp string) error { return os.Symlink(t.TempDir(), filepath.Join(tmp, "gemini")) },
		"gemini is a file": func(tmp string) error { return os.WriteFile(filepath.Join(tmp, "gemini"), nil, 0o600) },
		"ide is a link": func(tmp string) error {
			return errors.Join(os.Mkdir(filepath.Join(tmp, "gemini"), 0o700), os.Symlink(t.TempDir(), filepath.Join(tmp, "gemini", "ide")))
		},
	} {
		tmp := t.TempDir()
		if err := prepare(tmp); err != nil {
			t.Fatal(err)
		}
		err := Prepare(filepath.Join(tmp, "gemini", "ide"))
		if !errors.Is(err, safefile.ErrNotPrivate) || !strings.Contains(err.Error(), filepath.Join(tmp, "gemini")) || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestListOdd(t *testing.T) {
	dir := t.TempDir()
	good := `{"port": 5}`
	os.WriteFile(filepath.Join(dir, "gemini-ide-server-1-5.json"), []byte(good), 0o600)
	os.WriteFile(filepath.Join(dir, "gemini-ide-server-2-5.json"), []byte("{"), 0o600)
	os.WriteFile(filepath.Join(dir, "other.json"), []byte(good), 0o600)
	os.WriteFile(filepath.Join(dir, "gemini-ide-server-3-5.json"), []byte(good+strings.Repeat(" ", maxFile)), 0o600)
	os.Symlink(filepath.Join(dir, "other.json"), filepath.Join(dir, "gemini-ide-server-4-5.json"))
	os.Mkdir(filepath.Join(dir, "gemini-ide-server-6-5.json"), 0o700)
	entries, err := List(dir)
	if err != nil || len(entries) != 1 || entries[0].PID != 1 {
		t.Errorf("%+v, %v", entries, err)
	}
	if entries, err := List(filepath.Join(dir, "none")); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// SPEC D-7, T-8: always all of them, and the container's where it is needed.
func TestEnvD7(t *testing.T) {
	f := &File{Port: 5, Token: "tok", Roots: []string{abs(t, "/a%b")}}
	base := map[string]string{
		"GEMINI_CLI_IDE_SERVER_PORT":    "5",
		"GEMINI_CLI_IDE_WORKSPACE_PATH": abs(t, "/a%25b"),
		"GEMINI_CLI_IDE_AUTH_TOKEN":     "tok",
		"GEMINI_CLI_IDE_PID":            "9",
	}
	for _, tt := range []struct {
		in   bool
		set  string
		want bool
	}{{false, "", false}, {true, "", true}, {true, "SSH_CONNECTION", false}, {true, "REMOTE_CONTAINERS", false}, {true, "VSCODE_REMOTE_CONTAINERS_SESSION", false}, {true, "OTHER", true}} {
		vars, err := Env(f, 9, tt.in, func(name string) string {
			if name == tt.set {
				return "1"
			}
			return ""
		})
		if err != nil {
			t.Fatal(err)
		}
		container := false
		for _, v := range vars {
			if v.Name == "REMOTE_CONTAINERS" {
				container = v.Value == "1"
			} else if base[v.Name] != v.Value {
				t.Errorf("%s=%s, want %s", v.Name, v.Value, base[v.Name])
			}
		}
		if container != tt.want || len(vars) != 4 && !container {
			t.Errorf("%+v: %v", tt, vars)
		}
	}
}
