//go:build unix

package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// SPEC CC-4: of two companions of one folder the first, which writes Claude Code's lock and answers Codex, is suspended. The second serves these agents
// a few seconds after its user's next move, and says so. When the first goes on, the second withdraws at once. When the first is killed
// while it is suspended, the second takes over whole.
func TestStoppedElected(t *testing.T) {
	t.Parallel() // it mostly waits
	w := newWorld(t)
	codex := filepath.Join(w.tmp, "codex-ipc", fmt.Sprintf("ipc-%d.sock", os.Getuid()))
	for _, dir := range []string{".claude", ".codex"} {
		if err := os.Mkdir(filepath.Join(w.root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(w.project, "f")
	if err := os.WriteFile(file, []byte("1\n2\n3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := w.serve()
	t.Cleanup(func() { _ = first.cmd.Process.Signal(syscall.SIGCONT) })
	second := w.serve()
	page := openPage(t, second)
	go func() { // a page that does not read is dropped
		for {
			if _, _, err := page.Read(context.Background()); err != nil {
				return
			}
		}
	}()
	locks := func(want ...*live) func() bool {
		var names []string
		for _, l := range want {
			names = append(names, filepath.Join(w.root, ".claude", "ide", fmt.Sprintf("%d.lock", l.Port)))
		}
		slices.Sort(names)
		return func() bool {
			found, _ := filepath.Glob(filepath.Join(w.root, ".claude", "ide", "*.lock"))
			return slices.Equal(found, names)
		}
	}
	moves := func(line int) {
		say(t, page, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"context/update","params":{"open":[%q],"active":{"path":%[2]q,"cursor":{"line":%[1]d,"character":1}},"focused":true}}`, line, file))
	}
	says := func() bool {
		out, _ := w.command("status").CombinedOutput()
		return strings.Contains(string(out), fmt.Sprintf("process %d, which serves Claude Code", first.PID))
	}
	eventually(t, "the lock of the first alone", locks(first))
	eventually(t, "Codex's socket", func() bool { return exists(codex) })

	_ = first.cmd.Process.Signal(syscall.SIGSTOP)
	moves(1)
	eventually(t, "the second serves as well", locks(first, second))
	eventually(t, "it says so", says)
	_ = first.cmd.Process.Signal(syscall.SIGCONT)
	eventually(t, "the second withdraws", locks(first))
	eventually(t, "it says nothing any more", func() bool { return !says() })

	_ = first.cmd.Process.Signal(syscall.SIGSTOP)
	moves(2)
	eventually(t, "the second serves again", locks(first, second))
	first.signal(syscall.SIGKILL)
	eventually(t, "the second answers Codex too", func() bool { // the socket that the first has left answers nobody
		conn, err := net.DialTimeout("unix", codex, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	eventually(t, "it says nothing any more", func() bool { return !says() })
}
