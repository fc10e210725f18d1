//go:build unix

package cli

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// drip answers every connection of a listener: with head at once, then with one byte of tail after the other, for ever.
func drip(t *testing.T, l net.Listener, head func(*http.Request) string, tail string) {
	t.Helper()
	var wait sync.WaitGroup
	t.Cleanup(func() { l.Close(); wait.Wait() })
	wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			stop := t.Context()
			wait.Go(func() {
				defer conn.Close()
				if head != nil {
					r, err := http.ReadRequest(bufio.NewReader(conn))
					if err != nil {
						return
					}
					fmt.Fprint(conn, head(r))
				}
				tick := time.NewTicker(300 * time.Millisecond)
				defer tick.Stop()
				for i := 0; ; i++ {
					if _, err := conn.Write([]byte{tail[i%len(tail)]}); err != nil {
						return
					}
					select {
					case <-tick.C:
					case <-stop.Done():
						return
					}
				}
			})
		}
	})
}

// Beside a program that answers byte by byte, without end, every command ends within its total time, and says that something answers wrongly.
func TestDrippingListener(t *testing.T) {
	heads := map[string]func(*http.Request) string{
		"the status line": func(*http.Request) string { return "" },
		"the header":      func(*http.Request) string { return "HTTP/1.1 400 Bad Request\r\n" },
		"the answer to a POST": func(r *http.Request) string {
			if r.Method == http.MethodPost {
				return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: x\r\nContent-Length: 4000\r\n\r\n"
			}
			return "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
		},
	}
	for name, head := range heads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			w.env = append(w.env, "REMOTE_CONTAINERS=1") // a CLI dials 127.0.0.1, wherever this test runs
			tail := "HTTP/1.1 "
			if name == "the header" {
				tail = "X: y\r\n"
			}
			drip(t, l, head, tail)
			port := l.Addr().(*net.TCPAddr).Port
			folder := filepath.Join(w.root, "t", "gemini", "ide")
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(folder, fmt.Sprintf("gemini-ide-server-%d-%d.json", os.Getpid(), port))
			if err := os.WriteFile(file, fmt.Appendf(nil, `{"port":%d,"workspacePath":%q,"authToken":"t","ideInfo":{"name":"x","displayName":"X"}}`, port, w.project), 0o600); err != nil {
				t.Fatal(err)
			}
			pid := fmt.Sprint(os.Getpid())
			commands := map[string]beside{
				"status":  {[]string{"status"}, 1, "no answer"},
				"doctor":  {[]string{"doctor"}, 1, "FAULT  something listens"},
				"context": {[]string{"context"}, 1, "does not let it in"},
				"conform": {[]string{"conform", "--pid", pid, "--only", "A-2a"}, 3, "suspended"},
			}
			if name == "the answer to a POST" {
				commands["status"] = beside{[]string{"status"}, 0, "ok"} // status opens no session
				commands["doctor"] = beside{[]string{"doctor"}, 1, "does not take"}
				delete(commands, "conform") // it reports each check that fails, after five seconds
			}
			w.together(commands)
		})
	}
	t.Run("the control socket", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		dir := filepath.Join(w.root, "r", "pollux")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", filepath.Join(dir, fmt.Sprintf("%d-x.sock", os.Getpid())))
		if err != nil {
			t.Fatal(err)
		}
		drip(t, l, nil, "Content-Length: 9")
		file := filepath.Join(w.project, "f")
		if err := os.WriteFile(file, []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		says := fmt.Sprintf("process %d hangs", os.Getpid())
		w.together(map[string]beside{
			"env":     {[]string{"env"}, 3, says},
			"page":    {[]string{"page"}, 3, says},
			"open":    {[]string{"open", file}, 3, says},
			"diff":    {[]string{"diff", file}, 3, says},
			"status":  {[]string{"status"}, 1, says},
			"doctor":  {[]string{"doctor"}, 1, ""},
			"context": {[]string{"context"}, 3, says},
			"stop":    {[]string{"stop"}, 3, says},
			"pause":   {[]string{"pause"}, 3, says},
		})
	})
}
