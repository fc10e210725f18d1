package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A floorEditor is the smallest editor: it answers at once what it is asked, over a process's standard input and
// output, without reading what it shows.
type floorEditor struct {
	in    io.Writer
	diff  string         // the id of the last diff that it was told to open
	text  []byte         // and its proposal, as JSON
	shown chan time.Time // when it had each diff; dropped when nobody takes it
	asked []byte         // the memory of the last message
}

func newFloorEditor(in io.Writer, out io.Reader) *floorEditor {
	e := &floorEditor{in: in, shown: make(chan time.Time, 1)}
	go e.run(bufio.NewReaderSize(out, 64<<10))
	return e
}

func (e *floorEditor) say(m []byte) {
	_, _ = e.in.Write(append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(m)), m...))
}

func (e *floorEditor) run(out *bufio.Reader) {
	for {
		head, err := out.ReadString('\n')
		length, err2 := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(head, "Content-Length:")))
		if _, err3 := out.Discard(2); err != nil || err2 != nil || err3 != nil {
			return
		}
		e.asked = slices.Grow(e.asked[:0], length)[:length]
		if _, err := io.ReadFull(out, e.asked); err != nil {
			return
		}
		e.answer(e.asked)
	}
}

// answer looks at the beginning of a message alone, but for the text that closeDiff returns.
func (e *floorEditor) answer(m []byte) {
	id := member(m[:min(len(m), 200)], "id")
	switch {
	case bytes.Contains(m[:min(len(m), 200)], []byte("openDiff")):
		at := time.Now()
		e.diff = strings.Trim(string(member(m, "diffId")), `"`)
		if e.text = append(e.text[:0], member(m, "newText")...); len(e.text) == 0 { // of the floor
			e.text = append(e.text[:0], member(m, "newContent")...)
		}
		e.say(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"opened":true,"content":[]}}`, id))
		select {
		case e.shown <- at:
		default:
		}
	case bytes.Contains(m[:min(len(m), 200)], []byte("closeDiff")):
		e.say(append(append(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"version":0,"content":`, id), e.text...), "}}"...))
	case bytes.Contains(m[:min(len(m), 200)], []byte(`"error":`)):
		fmt.Fprintf(os.Stderr, "the editor is told %s\n", m)
	case len(id) > 0 && bytes.Contains(m[:min(len(m), 200)], []byte(`"method":`)):
		e.say(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":null}`, id))
	}
}

// member is the value of an object's member that is a string or a number, as JSON; nil without one.
func member(m []byte, name string) []byte {
	_, rest, ok := bytes.Cut(m, []byte(`"`+name+`":`))
	if !ok || len(rest) == 0 {
		return nil
	}
	if rest[0] != '"' {
		return rest[:bytes.IndexAny(rest, ",}")]
	}
	for i := 1; i < len(rest); i++ {
		n := bytes.IndexAny(rest[i:], `"\`)
		if i += n; n < 0 {
			return nil
		}
		if rest[i] == '"' {
			return rest[:i+1]
		}
		i++
	}
	return nil
}

// A lane is one server as a user's CLI and editor see it.
type lane struct {
	*spawned
	name   string
	way    string       // the address to which agents connect; "" is its own
	editor *floorEditor // nil for the floor without one
}

// lanes are the floor without an editor, pollux lsp, and the floor with an editor behind a pipe. None of them runs yet.
func lanes(b *testing.B, by *launcher, dir string) []*lane {
	b.Helper()
	all := []*lane{
		{name: "floor", spawned: prepare(b, filepath.Join(dir, "floor"))},
		{name: "pollux", spawned: prepare(b, filepath.Join(dir, "pollux"), "lsp")},
		{name: "piped", spawned: prepare(b, filepath.Join(dir, "floor"), "pipe")},
	}
	for _, w := range all {
		w.by, w.piped = by, w.name != "floor"
		if w.piped {
			w.greet = w.hello
		}
	}
	return all
}

// hello has the editor begin.
func (w *lane) hello() {
	w.editor = newFloorEditor(w.stdin, w.out)
	if w.name == "pollux" {
		w.editor.say(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"processId":null,"rootUri":"file://%s",`+
			`"initializationOptions":{"pollux":{"version":2,"context":true,"openDiff":true,"ide":{"name":"floor","displayName":"Floor"}}}}}`, w.cmd.Dir))
		w.editor.say([]byte(`{"jsonrpc":"2.0","method":"initialized","params":{}}`))
	}
}

// cpuTime is the processor's time that the server has used, to the nanosecond.
func (w *lane) cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^w.pid<<3|2), &t); err != nil { // its CPU clock (clock_getcpuclockid(3))
		w.b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// A wire is an agent that costs next to nothing: prepared bytes, one connection.
type wire struct {
	w       *lane
	conn    net.Conn
	in      *bufio.Reader
	session string
}

func (w *lane) dial() *wire {
	w.b.Helper()
	conn, err := net.Dial("tcp", cmp.Or(w.way, fmt.Sprintf("127.0.0.1:%d", w.Port)))
	if err != nil {
		w.b.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute)) // no benchmark hangs
	return &wire{w: w, conn: conn, in: bufio.NewReader(conn)}
}

// join is a connection with a session of its own.
func (w *lane) join() *wire {
	c := w.dial()
	c.trade(c.post(`{"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}},"jsonrpc":"2.0","id":0}`))
	c.trade(c.post(`{"method":"notifications/initialized","jsonrpc":"2.0"}`))
	return c
}

func (c *wire) head(method string, length int) []byte {
	h := fmt.Appendf(nil, "%s /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nAccept: application/json, text/event-stream\r\n", method, c.w.Port, c.w.Token)
	if c.session != "" {
		h = fmt.Appendf(h, "Mcp-Session-Id: %s\r\n", c.session)
	}
	if method == "POST" {
		h = fmt.Appendf(h, "Content-Type: application/json\r\nContent-Length: %d\r\n", length)
	}
	return append(h, "\r\n"...)
}

func (c *wire) post(body string) []byte { return append(c.head("POST", len(body)), body...) }

// trade sends a request and reads its answer.
func (c *wire) trade(request []byte) {
	if _, err := c.conn.Write(request); err != nil {
		c.w.b.Fatal(err)
	}
	status, length := "", 0
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			c.w.b.Fatalf("%s: %v", c.w.name, err)
		}
		line = strings.TrimSpace(line)
		if line == "" {
			break
		}
		if status == "" {
			status = line
		}
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case strings.EqualFold(name, "Content-Length"):
			length, _ = strconv.Atoi(value)
		case strings.EqualFold(name, "Mcp-Session-Id"):
			c.session = value
		}
	}
	var answer []byte
	if length < 1000 { // of a large one only the size matters
		answer, _ = c.in.Peek(length)
	}
	if !strings.Contains(status, " 20") || bytes.Contains(answer, []byte("isError")) {
		c.w.b.Fatalf("%s: %s %s", c.w.name, status, answer)
	}
	_, _ = c.in.Discard(length)
}

// leave ends a session, as it ends by itself 30 seconds after its CLI. A keeper would go on serving one that is left.
func (c *wire) leave() {
	_ = c.conn.Close()
	end := c.w.dial()
	defer end.conn.Close()
	end.session = c.session
	_, _ = end.conn.Write(end.head("DELETE", 0))
	_, _ = end.in.ReadString('\n')
}

// stream opens a session's event stream on a connection of its own and reads the first context.
func (c *wire) stream() *wire {
	s := c.w.dial()
	s.session = c.session
	if _, err := s.conn.Write(s.head("GET", 0)); err != nil {
		c.w.b.Fatal(err)
	}
	s.event()
	return s
}

// event reads up to the end of the next event's data.
func (c *wire) event() {
	begun := false
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			c.w.b.Fatalf("%s: %v", c.w.name, err)
		}
		if begun = begun || bytes.HasPrefix(line, []byte("data:")); begun && err == nil {
			return
		}
	}
}

// A tally collects what was measured in turns, in one run: only ratios mean something on a machine that is shared.
type tally struct {
	lanes []*lane
	took  map[string][]time.Duration
}

func newTally(b *testing.B) *tally {
	b.Helper()
	t := &tally{lanes: lanes(b, newLauncher(b), programs(b)), took: map[string][]time.Duration{}}
	for _, w := range t.lanes {
		w.launch()
		b.Cleanup(w.stop)
	}
	return t
}

func (t *tally) note(w *lane, what string, took time.Duration) {
	t.took[w.name+" "+what] = append(t.took[w.name+" "+what], took)
}

// report says the medians, and ours as a multiple of each floor's.
func (t *tally) report(b *testing.B, names ...string) {
	b.ReportMetric(0, "ns/op") // means nothing: it is all of them together
	for _, what := range names {
		ours := median(t.took["pollux "+what])
		b.ReportMetric(ours, what+"-ms")
		for _, floor := range []string{"floor", "piped"} {
			if times := t.took[floor+" "+what]; len(times) > 0 {
				b.ReportMetric(ours/median(times), what+"-×"+floor)
			}
		}
	}
}

// sourceCode looks like a program: an escape for every 15 bytes, a letter that is not ASCII here and there.
func sourceCode(size int) string {
	const piece = "func (s *Server) handle(ctx context.Context, m Message) error {\n\tif err := s.check(m); err != nil {\n" +
		"\t\treturn fmt.Errorf(\"handle %s: %w\", m.Method, err)\n\t}\n\treturn nil // Größe\n}\n\n"
	return strings.Repeat(piece, size/len(piece)+1)[:size]
}

// F-2: openDiff until it is answered and until the editor has it, closeDiff until it is answered, and the server's CPU for
// both; of a new file, and of one that holds nearly the same. Goals: 4× the floor at 1 KB, 5× at 100 KB, 8× at 5 MB.
func BenchmarkFeltDiff(b *testing.B) {
	for _, file := range []struct {
		name string
		size int
		old  bool
	}{{"1KB", 1 << 10, false}, {"100KB", 100 << 10, false}, {"5MB", 5 << 20, false}, {"5MBover", 5 << 20, true}} {
		b.Run(file.name, func(b *testing.B) {
			t := newTally(b)
			text, err := json.Marshal("package x\n" + sourceCode(file.size))
			if err != nil {
				b.Fatal(err)
			}
			agents, opens, closes := []*wire{}, [][]byte{}, [][]byte{}
			for _, w := range t.lanes {
				path := filepath.Join(w.cmd.Dir, "x.go")
				if file.old {
					if err := os.WriteFile(path, []byte("package y\n"+sourceCode(file.size)), 0o600); err != nil {
						b.Fatal(err)
					}
				}
				c := w.join()
				b.Cleanup(c.leave)
				agents = append(agents, c)
				opens = append(opens, c.post(fmt.Sprintf(`{"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":%q,"newContent":%s}},"jsonrpc":"2.0","id":1}`, path, text)))
				closes = append(closes, c.post(fmt.Sprintf(`{"method":"tools/call","params":{"name":"closeDiff","arguments":{"filePath":%q}},"jsonrpc":"2.0","id":1}`, path)))
			}
			time.Sleep(500 * time.Millisecond) // the search for the agents' processes
			for b.Loop() {
				for i, w := range t.lanes {
					cpu, start := w.cpuTime(), time.Now()
					agents[i].trade(opens[i])
					t.note(w, "open", time.Since(start))
					if w.editor != nil {
						t.note(w, "shown", (<-w.editor.shown).Sub(start))
					}
					start = time.Now()
					agents[i].trade(closes[i])
					t.note(w, "close", time.Since(start))
					time.Sleep(100 * time.Millisecond) // what is done afterwards counts too
					t.note(w, "cpu", w.cpuTime()-cpu)
				}
			}
			t.report(b, "open", "shown", "close", "cpu")
		})
	}
}

// F-3: a decision in the editor until the agent has it.
func BenchmarkFeltDecision(b *testing.B) {
	for _, size := range []int{1 << 10, 5 << 20} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			t := newTally(b)
			text, err := json.Marshal(sourceCode(size))
			if err != nil {
				b.Fatal(err)
			}
			agents, streams := map[*lane]*wire{}, map[*lane]*wire{}
			for _, w := range t.lanes[1:] {
				agents[w] = w.join()
				streams[w] = agents[w].stream()
				b.Cleanup(streams[w].leave)
			}
			round := 0
			for b.Loop() {
				round++ // each has a file of its own: what was accepted is about to be written
				for w, c := range agents {
					c.trade(c.post(fmt.Sprintf(`{"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":"%s/%d.go","newContent":%s}},"jsonrpc":"2.0","id":1}`, w.cmd.Dir, round, text)))
					<-w.editor.shown
					decision := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"d","method":"pollux/resolveDiff","params":{"diffId":%q,"version":0,"baseVersion":0,"outcome":"accepted","edit":1,"content":%s}}`, w.editor.diff, text)
					cpu, start := w.cpuTime(), time.Now()
					w.editor.say(decision)
					streams[w].event()
					t.note(w, "decided", time.Since(start))
					time.Sleep(20 * time.Millisecond)
					t.note(w, "cpu", w.cpuTime()-cpu)
				}
			}
			t.report(b, "decided", "cpu")
		})
	}
}

// L-1: from the start of the process until the first diff is answered. Goal: 1.6× the floor.
func BenchmarkFeltStart(b *testing.B) {
	by, dir := newLauncher(b), programs(b)
	t := &tally{took: map[string][]time.Duration{}}
	for b.Loop() {
		for _, w := range lanes(b, by, dir) {
			w.launch()
			t.note(w, "found", time.Since(w.start))
			c := w.join()
			c.trade(c.post(`{"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":"` + w.cmd.Dir + `/x.go","newContent":"package x\n"}},"jsonrpc":"2.0","id":1}`))
			t.note(w, "start", time.Since(w.start))
			t.note(w, "cpu", w.cpuTime())
			c.leave()
			w.stop()
		}
	}
	t.report(b, "found", "start", "cpu")
}

// debounce is how long a change of the context waits for others (SPEC C-2).
const debounce = 50 * time.Millisecond

// A crowd counts what its members read.
type crowd struct {
	streams []*wire
	left    atomic.Int64
	done    chan struct{}
}

// gather joins n agents with a stream each.
func (w *lane) gather(n int) *crowd {
	c := &crowd{done: make(chan struct{}, 1)}
	for range n {
		member := w.join()
		s := member.stream()
		_ = member.conn.Close()
		c.streams = append(c.streams, s)
		go func() {
			buf := make([]byte, 4096)
			for {
				n, err := s.conn.Read(buf)
				if err != nil {
					return
				}
				if bytes.Contains(buf[:n], []byte("data:")) && c.left.Add(-1) == 0 {
					c.done <- struct{}{}
				}
			}
		}()
	}
	return c
}

// leave ends the sessions.
func (c *crowd) leave() {
	for _, s := range c.streams {
		s.leave()
	}
}

// move has the editor's cursor go to another line, and returns when every member has heard of it.
func (c *crowd) move(w *lane, line int) (took time.Duration) {
	c.left.Store(int64(len(c.streams)))
	start := time.Now()
	w.editor.say(w.cursor(line))
	<-c.done
	took = time.Since(start)
	if w.name == "pollux" {
		took -= debounce
	}
	return took
}

func (w *lane) cursor(line int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"pollux/didChangeContext","params":{"textDocument":{"uri":"file://%s/a.go"},"position":{"line":%d,"character":1}}}`, w.cmd.Dir, line)
}

// feltSessions are how many sessions a crowd has.
var feltSessions = []int{1, 10, 1000}

// C-2, T-3: a move of the cursor until the last session has heard of it, less the debounce, and the server's CPU for each
// notification. With 1,000 sessions, also its CPU in the seconds after they have come, and for a move after they have gone.
// Goals: 2× the floor with 10 sessions, 1.5× its CPU with 1,000, 0.1 s of CPU in 20 s, 2×.
func BenchmarkFeltCrowd(b *testing.B) {
	for _, n := range feltSessions {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			t := newTally(b)
			crowds := map[*lane]*crowd{}
			for _, w := range t.lanes[1:] { // the floor without an editor has nobody to tell
				if err := os.WriteFile(filepath.Join(w.cmd.Dir, "a.go"), nil, 0o600); err != nil {
					b.Fatal(err)
				}
				before := w.cpuTime()
				crowds[w] = w.gather(n)
				t.note(w, "cpu-join", w.cpuTime()-before)
				before = w.cpuTime()
				time.Sleep(afterJoin)
				t.note(w, "cpu-joined", w.cpuTime()-before)
			}
			line := 0
			for b.Loop() {
				line++
				for w, c := range crowds {
					cpu := w.cpuTime()
					t.note(w, "last", c.move(w, line))
					time.Sleep(10 * time.Millisecond)
					t.note(w, "cpu-event", w.cpuTime()-cpu)
				}
			}
			for w, c := range crowds {
				c.leave()
				time.Sleep(afterJoin)
				for range 20 {
					line++
					cpu := w.cpuTime()
					w.editor.say(w.cursor(line))
					time.Sleep(debounce + 20*time.Millisecond)
					t.note(w, "cpu-left", w.cpuTime()-cpu)
				}
			}
			t.report(b, "last", "cpu-event", "cpu-join", "cpu-joined", "cpu-left")
		})
	}
}

// afterJoin is how long a crowd is watched after it has come, and gone.
const afterJoin = 5 * time.Second
