//go:build unix

package tty

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// A screen is what a user sees of a shared terminal, and the user's keyboard.
type screen struct {
	t    *testing.T
	keys *os.File

	mu   sync.Mutex // guards text
	text strings.Builder
}

func (s *screen) read() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) wait(text string) {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(s.read(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%q never comes; the screen has %q", text, s.read())
		}
	}
}

func (s *screen) typed(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.keys, text); err != nil {
		s.t.Fatal(err)
	}
}

func sharing(t *testing.T, script string) (*screen, *Shared, *exec.Cmd) {
	t.Helper()
	person, tty, err := pty.Open()
	if err == nil {
		err = pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: 80})
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, keys: person}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := person.Read(buf)
			s.mu.Lock()
			s.text.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	cmd := exec.Command("sh", "-c", script)
	st, err := Start(cmd, tty, tty)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		st.Close()
		tty.Close()
		person.Close()
		<-read
	})
	return s, st, cmd
}

// The command has the keys and the screen. Take gets both entirely; the command's output meanwhile follows
// afterwards, in order, with its modes restored.
func TestTake(t *testing.T) {
	s, st, _ := sharing(t, `stty size; printf '\033[?2004h'; while read line; do echo "got $line"; done`)
	s.wait("24 80")
	s.typed("one\n")
	s.wait("got one")
	err := st.Lend(func() error {
		s.wait("\x1b[?2004l")                                        // the modes are reset
		if _, err := st.pty.WriteString("meanwhile\n"); err != nil { // typed before Take
			t.Error(err)
		}
		deadline := time.Now().Add(30 * time.Second)
		for held := 0; held == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			st.mu.Lock()
			if strings.Contains(string(st.held), "got meanwhile") {
				held = 1
			}
			st.mu.Unlock()
		}
		s.typed("x") // a key for the program that has the screen
		key := make([]byte, 10)
		_ = st.in.SetReadDeadline(time.Now().Add(30 * time.Second))
		s.typed("\n")
		n, err := st.in.Read(key)
		if err != nil || !strings.HasPrefix(string(key[:n]), "x") {
			t.Errorf("the key came as %q, %v", key[:n], err)
		}
		if strings.Contains(s.read(), "got meanwhile") {
			t.Error("the command's words come while another has the screen")
		}
		return errors.New("mine")
	})
	if err == nil || err.Error() != "mine" {
		t.Errorf("%v", err)
	}
	s.wait("got meanwhile")
	if text := s.read(); strings.LastIndex(text, "\x1b[?2004h") > strings.Index(text, "got meanwhile") {
		t.Errorf("the modes come back too late: %q", text)
	}
	s.typed("two\n")
	s.wait("got two")
	if strings.Contains(s.read(), "got x") {
		t.Error("the key of another reached the command")
	}
}

// Ctrl-] alone calls; within other text it belongs to the command.
func TestCalled(t *testing.T) {
	s, st, _ := sharing(t, `stty raw -echo; printf ready; dd bs=1 count=3 2>/dev/null | od -c; echo end`)
	s.wait("ready")
	s.typed("\x1d")
	select {
	case <-st.Called():
	case <-time.After(30 * time.Second):
		t.Fatal("it does not call")
	}
	s.typed("a\x1db")
	s.wait("035")
	s.wait("end")
	for keys, want := range map[string]bool{"\x1d": true, "\x1b[93;5u": true, "\x1b[27;5;93~": true, "a": false, "\x1d\x1d": false, "": false} {
		if call(keys) != want {
			t.Errorf("%q: %v", keys, !want)
		}
	}
}

// A command that ends during Take, or never pauses its output, does not block Take.
func TestTakeFromTheDeadAndTheBusy(t *testing.T) {
	_, st, cmd := sharing(t, `exit 3`)
	_ = cmd.Wait()
	if err := st.Lend(func() error { return nil }); err != nil {
		t.Error(err)
	}
	s, st, _ := sharing(t, `printf '\033[?2026h'; printf half; cat`)
	s.wait("half")
	if err := st.Lend(func() error { return nil }); err != nil {
		t.Error(err)
	}
	s.typed("still\n")
	s.wait("still")
}
