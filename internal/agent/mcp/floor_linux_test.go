package mcp_test

import (
	"bufio"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini"
	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
)

// A target is a server in a process of its own, told what to do over its
// stdin: ours, or the floor that ours is measured against.
type target struct {
	t    testing.TB
	addr string
	pid  int
	in   io.WriteCloser
	out  *bufio.Reader
}

// childEnv says which target a child is, profileEnv in which folder it leaves
// a CPU profile, none when unset.
const (
	childEnv   = "POLLUX_BENCH_CHILD"
	profileEnv = "POLLUX_BENCH_PROFILE"
)

func startTarget(t testing.TB, kind string) *target {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childEnv+"="+kind)
	cmd.Stderr = os.Stderr
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x := &target{t: t, pid: cmd.Process.Pid, in: in, out: bufio.NewReader(out)}
	x.addr = x.line()
	t.Cleanup(func() {
		in.Close() // the child ends with its stdin
		_ = cmd.Wait()
	})
	return x
}

func (x *target) line() string {
	x.t.Helper()
	line, err := x.out.ReadString('\n')
	if err != nil {
		x.t.Fatalf("child: %v", err)
	}
	return strings.TrimSpace(line)
}

// ask sends one command and returns the number that it answers.
func (x *target) ask(command string) int64 {
	x.t.Helper()
	fmt.Fprintln(x.in, command)
	n, err := strconv.ParseInt(x.line(), 10, 64)
	if err != nil {
		x.t.Fatal(err)
	}
	return n
}

// cpu is the process's CPU time so far.
func (x *target) cpu() time.Duration { return time.Duration(x.ask("cpu")) }

// rss is the process's resident memory in KB, after it has collected its garbage.
func (x *target) rss() int64 { x.ask("gc"); return x.residue() }

// residue is rss as it is, peak the most that it ever was.
func (x *target) residue() int64 { return x.status("VmRSS:") }
func (x *target) peak() int64    { return x.status("VmHWM:") }

func (x *target) status(line string) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", x.pid))
	if err != nil {
		x.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), line)
	n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	return n
}

// TestChild is the child of startTarget and does nothing in an ordinary run.
func TestChild(t *testing.T) {
	kind := os.Getenv(childEnv)
	if kind == "" {
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv(profileEnv); dir != "" { // look at it with go tool pprof
		f, err := os.Create(filepath.Join(dir, kind+".prof"))
		if err != nil || pprof.StartCPUProfile(f) != nil {
			t.Fatal(err)
		}
		defer func() {
			pprof.StopCPUProfile()
			if f, err := os.Create(filepath.Join(dir, kind+".mem")); err == nil {
				_ = pprof.Lookup("allocs").WriteTo(f, 0)
			}
		}()
	}
	var publish func(n int)
	if kind == "ours" {
		publish = serveOurs(l)
	} else {
		publish = serveFloor(l)
	}
	fmt.Println(l.Addr())
	n := 0
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		answer := int64(0)
		switch in.Text() {
		case "publish":
			n++
			publish(n)
		case "cpu":
			var u syscall.Rusage
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
			answer = u.Utime.Nano() + u.Stime.Nano()
		case "gc":
			debug.FreeOSMemory()
		case "goroutines":
			answer = int64(runtime.NumGoroutine())
		}
		fmt.Println(answer)
	}
}

// A page is an editor that waits for nobody, as pollux's own is.
type page struct{ *editor }

func (p page) ShowNow(*review.Diff) error { return nil }

func serveOurs(l net.Listener) func(int) {
	s := mcp.New(mcp.Options{
		Store: state.New(nil), Registry: review.New(review.Options{View: page{&editor{}}}),
		Version: "1.2.3", Agents: geminiOnly(), Grace: time.Second,
	})
	s.Publish(snapshotWithCursorAt(0))
	go func() { _ = s.Serve(l) }()
	return func(n int) { s.Publish(snapshotWithCursorAt(n)) }
}

// serveFloor is the smallest net/http server that checks the token, swallows
// the body and writes the bytes that ours would.
func serveFloor(l net.Listener) func(int) {
	var mu sync.Mutex
	streams := map[http.ResponseWriter]bool{}
	event := func(n int) []byte { return mcp.Event(gemini.Dialect{}.Context(snapshotWithCursorAt(n))) }
	want := []byte("Bearer " + testToken)
	handler := func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write(append([]byte("retry: 3000\nid: ABCDEFGH-0\n"), event(0)...))
			w.(http.Flusher).Flush()
			mu.Lock()
			streams[w] = true
			mu.Unlock()
			<-r.Context().Done()
			mu.Lock()
			delete(streams, w)
			mu.Unlock()
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		switch r.Header.Get("X-Answer") {
		case "initialize":
			w.Header().Set(mcp.SessionHeader, mcp.NewSessionID(want, 1))
			_, _ = w.Write(jsonrpc.Initialized([]byte("0"), "2025-06-18", "1.2.3"))
		case "initialized":
			w.WriteHeader(http.StatusAccepted)
		default:
			_, _ = w.Write(wire.Opened([]byte("1")))
		}
	}
	go func() { _ = http.Serve(l, http.HandlerFunc(handler)) }()
	return func(n int) {
		mu.Lock()
		defer mu.Unlock()
		frame := event(n)
		for w := range streams {
			_, _ = w.Write(frame)
			w.(http.Flusher).Flush()
		}
	}
}

// A wireClient is a client that costs next to nothing: prepared bytes, one connection.
type wireClient struct {
	t       testing.TB
	conn    net.Conn
	in      *bufio.Reader
	addr    string
	session string
}

func (x *target) dial() *wireClient {
	x.t.Helper()
	conn, err := net.Dial("tcp", x.addr)
	if err != nil {
		x.t.Fatal(err)
	}
	return &wireClient{t: x.t, conn: conn, in: bufio.NewReaderSize(conn, 4096), addr: x.addr}
}

func (c *wireClient) head(method, answer, token string, length int) []byte {
	b := fmt.Appendf(nil, "%s /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nX-Answer: %s\r\nAccept: application/json, text/event-stream\r\n", method, c.addr, token, answer)
	if c.session != "" {
		b = fmt.Appendf(b, "Mcp-Session-Id: %s\r\n", c.session)
	}
	if method == "POST" {
		b = fmt.Appendf(b, "Content-Type: application/json\r\nContent-Length: %d\r\n", length)
	}
	return append(b, "\r\n"...)
}

func (c *wireClient) message(answer, body string) []byte {
	return append(c.head("POST", answer, testToken, len(body)), body...)
}

// trade sends a request and reads its answer; it returns the status.
func (c *wireClient) trade(request []byte) int {
	if _, err := c.conn.Write(request); err != nil {
		c.t.Fatal(err)
	}
	status, length := 0, 0
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			c.t.Fatal(err)
		}
		line = strings.TrimSpace(line)
		if line == "" {
			break
		}
		if status == 0 {
			status, _ = strconv.Atoi(strings.Fields(line)[1])
		}
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case strings.EqualFold(name, "Content-Length"):
			length, _ = strconv.Atoi(value)
		case strings.EqualFold(name, mcp.SessionHeader):
			c.session = value
		}
	}
	_, _ = c.in.Discard(length)
	return status
}

func (c *wireClient) handshake() {
	if status := c.trade(c.message("initialize", `{"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}},"jsonrpc":"2.0","id":0}`)); status != 200 {
		c.t.Fatalf("initialize: %d", status)
	}
	if status := c.trade(c.message("initialized", `{"method":"notifications/initialized","jsonrpc":"2.0"}`)); status != 202 {
		c.t.Fatalf("initialized: %d", status)
	}
}

// stream turns a connection into an event stream and reads the first context.
func (c *wireClient) stream() {
	if _, err := c.conn.Write(c.head("GET", "", testToken, 0)); err != nil {
		c.t.Fatal(err)
	}
	c.event()
}

// event reads up to the end of the next context.
func (c *wireClient) event() {
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			c.t.Fatal(err)
		}
		if len(line) > 5 && string(line[:5]) == "data:" {
			return
		}
	}
}
