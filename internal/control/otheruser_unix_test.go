//go:build unix

package control

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/usertest"
)

// openDir makes a folder that the other user may enter, as a private one never is.
func openDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Dir(shortDir(t))
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// SPEC §11.1, A-5: another user who comes as far as the socket is told nothing.
func TestOtherUserDials(t *testing.T) {
	dir := openDir(t)
	s, err := Listen([]string{filepath.Join(dir, "run")}, &fake{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for path, mode := range map[string]os.FileMode{filepath.Dir(s.Path()): 0o755, s.Path(): 0o666} { // what protects it first
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	const status = "Content-Length: 45\r\n\r\n" + `{"jsonrpc":"2.0","id":1,"method":"status"}   `
	answers := map[string]string{}
	ask := func(who string) {
		conn, err := net.Dial("unix", s.Path())
		if err != nil {
			answers[who] = err.Error()
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		_, _ = io.WriteString(conn, status)
		b := make([]byte, 100)
		n, _ := conn.Read(b)
		answers[who] = string(b[:n])
	}
	ask("own")
	if !usertest.Do(t, func() { ask("other") }) {
		return
	}
	if !strings.Contains(answers["own"], "jsonrpc") || answers["other"] != "" {
		t.Errorf("%q", answers)
	}
}

// SPEC A-5: a socket of another user's is told nothing either.
func TestOtherUserListens(t *testing.T) {
	path := filepath.Join(openDir(t), "1-abcdef"+socketSuffix)
	var ln net.Listener
	var err error
	if !usertest.Do(t, func() { ln, err = net.Listen("unix", path) }) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	heard := make(chan string, 1)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		b, _ := io.ReadAll(conn)
		heard <- string(b)
	}()
	c, err := Dial(t.Context(), path)
	if err == nil {
		c.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "user 65534") {
		t.Errorf("%v", err)
	}
	if got := <-heard; got != "" {
		t.Errorf("it was sent %q", got)
	}
}

// SPEC §11.1, A-5: a folder for sockets that another user was first to make is not used, and no socket in it is dialled: pollux listens in the
// next folder, and passes over who answers there.
func TestOtherUsersFolder(t *testing.T) {
	for name, plant := range map[string]func(dir string) error{
		"a folder of theirs":                func(dir string) error { return os.Mkdir(dir, 0o700) },
		"a folder of theirs, open to all":   func(dir string) error { return errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777)) },
		"a link to a folder of theirs":      func(dir string) error { return errors.Join(os.Mkdir(dir+".x", 0o755), os.Symlink(dir+".x", dir)) },
		"a link to the folder of this user": func(dir string) error { return os.Symlink(filepath.Join(filepath.Dir(dir), "own"), dir) },
		"a file":                            func(dir string) error { return os.WriteFile(dir, nil, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			base := openDir(t)
			dir, own := filepath.Join(base, "run"), filepath.Join(base, "own")
			var ln net.Listener
			var err error
			if !usertest.Do(t, func() {
				if err = plant(dir); err == nil {
					ln, _ = net.Listen("unix", filepath.Join(dir, "1-abcdef"+socketSuffix)) // not where that is no folder of theirs
				}
			}) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if ln != nil {
				defer ln.Close()
			}
			s := listen(t, []string{dir, own}, &fake{})
			if filepath.Dir(s.Path()) != own {
				t.Errorf("it listens at %s", s.Path())
			}
			clients, silent := ListAll(t.Context(), []string{dir, own})
			if len(clients) != 1 || clients[0].path != s.Path() || len(silent) != 0 {
				t.Errorf("it finds %d, silent %v", len(clients), silent)
			}
			for _, c := range clients {
				c.Close()
			}
			if ln == nil {
				return
			}
			_ = ln.(*net.UnixListener).SetDeadline(time.Now().Add(20 * time.Millisecond)) // nobody is in the queue
			if conn, err := ln.Accept(); err == nil {
				conn.Close()
				t.Error("their socket was dialled")
			}
		})
	}
}
