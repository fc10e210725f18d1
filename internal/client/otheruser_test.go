package client

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/usertest"
)

// SPEC A-5: another user who listens on a companion's port never receives its token, whether the client joins,
// listens or links.
func TestOtherUserListensA5(t *testing.T) {
	var ln net.Listener
	var err error
	if !usertest.Do(t, func() { ln, err = net.Listen("tcp4", "127.0.0.1:0") }) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	way := Way{Host: "127.0.0.1", Port: ln.Addr().(*net.TCPAddr).Port, Token: "secret"}
	for name, try := range map[string]func() error{
		"Join":   func() error { return New(nil, nil).Join(t.Context(), way) },
		"Dial":   func() error { _, err := Dial(t.Context(), way, LinkOptions{}); return err },
		"Listen": func() error { _, err := Listen(t.Context(), []Way{way}); return err },
	} {
		err := try()
		if !errors.Is(err, proc.ErrForeign) && (err == nil || !strings.Contains(err.Error(), "another user listens")) {
			t.Errorf("%s: %v", name, err)
		}
		conn, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if said, err := io.ReadAll(conn); len(said) > 0 {
			t.Errorf("%s: they were told %q, %v", name, said, err)
		}
		conn.Close()
	}
}

// SPEC A-5, K-1: a folder for discovery files that another user has made leads nowhere, whatever they put there: neither to their listener,
// nor by their link to a command in a file of this user's, which may come from a repository.
func TestOtherUserPlantsFilesA5(t *testing.T) {
	temp := t.TempDir()
	for dir := temp; dir != filepath.Dir(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o005 == 0 {
			_ = os.Chmod(dir, 0o755) // t.TempDir's own, so that the other user comes this far
		}
	}
	ours := filepath.Join(temp, "ours.json")
	planted := `{"port": 1, "workspacePath": "/", "authToken": "t", "ideInfo": {"name": "x", "displayName": "x"}, "stdio": {"command": "/bin/sh", "args": ["-c", "id"]}}`
	if err := os.WriteFile(ours, []byte(planted), 0o600); err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(temp, "shared")
	if err := os.Mkdir(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(shared, "gemini", "ide")
	for name, plant := range map[string]func(file string) error{
		"a file of theirs":                   func(file string) error { return os.WriteFile(file, []byte(planted), 0o644) },
		"a link to a file of ours":           func(file string) error { return os.Symlink(ours, file) },
		"a link to a link to a file of ours": func(file string) error { return errors.Join(os.Symlink(ours, file+".1"), os.Symlink(file+".1", file)) },
		"a link through a folder of ours": func(file string) error {
			return os.Symlink(filepath.Join(temp, "..", filepath.Base(temp), "ours.json"), file)
		},
	} {
		for _, file := range []string{"gemini-ide-server-1-1.json", "gemini-ide-server-7.json"} {
			var err error
			if !usertest.Do(t, func() {
				if err = os.MkdirAll(folder, 0o755); err == nil {
					err = plant(filepath.Join(folder, file))
				}
			}) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			w := &World{Temp: shared, Dir: "/", Environ: []string{"GEMINI_CLI_IDE_PID=7"}}
			if c := Choose(w); len(c.Candidates) != 1 || c.Candidates[0].UID != usertest.ID || len(c.Ways(w)) != 0 {
				t.Errorf("%s, %s: %+v leads to %+v", name, file, c.Candidates, c.Ways(w))
			}
			if err := os.RemoveAll(filepath.Join(shared, "gemini")); err != nil {
				t.Fatal(err)
			}
		}
	}
}
