package remind

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// The terminal of an agent rings once, whatever number of its processes are known.
func TestRing(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	master, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) { // its environment says what the terminal understands
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid))
		if bytes.Contains(env, []byte("TERM=xterm-256color")) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no environment: %v", err)
		}
	}
	w := &Ways{Processes: func() []int { return []int{cmd.Process.Pid, cmd.Process.Pid, 1 << 30} }, Log: slog.New(slog.DiscardHandler)}
	w.Tell(t.Context(), 3)
	w.Tell(t.Context(), 1)
	master.SetReadDeadline(time.Now().Add(30 * time.Second))
	r := bufio.NewReader(master)
	for _, text := range []string{"3 things wait for your answer", "something waits for your answer"} {
		want := "\a\x1b]9;pollux: " + text + "\x1b\\"
		var got strings.Builder
		for got.Len() < len(want) {
			b, err := r.ReadByte()
			if err != nil {
				t.Fatal(err)
			}
			got.WriteByte(b)
		}
		if got.String() != want {
			t.Fatalf("the terminal got %q, want %q", got.String(), want)
		}
	}
}
