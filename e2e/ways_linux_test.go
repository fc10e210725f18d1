package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/pollux-companion/pollux/e2e/browser"
	"github.com/pollux-companion/pollux/internal/peers"
)

// A seat is one place where a user sees proposals.
type seat struct {
	*lane
	agent   *wire
	heard   chan heard // what its stream says
	*typist            // nil where nobody types
	// expect begins to look for a text on the screen; shown is when it was there.
	expect func(marker string)
	shown  func() time.Time
	// accept accepts the proposal on show, move moves the cursor, and each returns when it began. move is nil where there is no cursor.
	accept, move func() time.Time
	// busy returns how long the editor left a key without an answer, the longest time until done is closed; nil where that means nothing.
	busy func(done <-chan struct{}) time.Duration
}

// A heard is one message on an agent's stream.
type heard struct {
	at   time.Time
	data []byte
}

// BenchmarkFeltWays measures what a user waits for, in the real editors: a proposal of a new file until it is on the screen, a
// decision by keys until the agent has it, a cursor's move by a key until the agent has been told, debounces included, and how long
// the editor does not answer a key meanwhile. "floor" is the smallest editor behind pollux lsp. Medians in milliseconds, in turns.
//
//	go test -run '^$' -bench FeltWays -benchtime 10x ./e2e
func BenchmarkFeltWays(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10, 5 << 20} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			by, dir := newLauncher(b), programs(b)
			ways := []*seat{floorWay(b, by, dir), neovimWay(b, dir), vimWay(b, dir), emacsWay(b, dir), reviewWay(b, dir), pageWay(b, dir)}
			t := &tally{took: map[string][]time.Duration{}}
			round := 0
			for b.Loop() {
				round++
				for _, w := range ways {
					w.measure(t, round, size)
				}
			}
			for what, times := range t.took {
				b.ReportMetric(median(times), strings.ReplaceAll(what, " ", "-")+"-ms")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// measure has one proposal come and be accepted.
func (w *seat) measure(t *tally, round, size int) {
	if w.move != nil {
		w.quiet()
		start := w.move()
		t.note(w.lane, "moved", w.await("contextUpdate").Sub(start))
	}
	marker := fmt.Sprintf("proposal-%d-", round)
	text, err := json.Marshal(marker + "\n" + sourceCode(size))
	if err != nil {
		w.b.Fatal(err)
	}
	session := w.agent.session
	_ = w.agent.conn.Close()
	w.agent = w.dial() // a connection that was idle for long is closed by the server
	w.agent.session = session
	open := w.agent.post(fmt.Sprintf(`{"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":"%s/%d.txt","newContent":%s}},"jsonrpc":"2.0","id":1}`, w.cmd.Dir, round, text))
	w.expect(marker)
	done, frozen := make(chan struct{}), make(chan time.Duration, 1)
	if w.busy != nil && round%2 == 0 { // keys delay what they measure
		go func() { frozen <- w.busy(done) }()
	}
	start := time.Now()
	w.agent.trade(open)
	at := w.shown()
	if w.busy != nil && round%2 == 0 {
		time.Sleep(500 * time.Millisecond) // what an editor does afterwards stops it as well
		close(done)
		t.note(w.lane, "frozen", <-frozen)
	} else {
		t.note(w.lane, "shown", at.Sub(start))
	}
	time.Sleep(700 * time.Millisecond) // a key that comes at once was meant for something else
	start = w.accept()
	t.note(w.lane, "accepted", w.await("diffAccepted").Sub(start))
	time.Sleep(300 * time.Millisecond)
}

// join is an agent, and listens to its stream. It is a process of its own, since what the same process starts is no
// person's editor.
func (w *seat) join() {
	w.b.Helper()
	w.way = elsewhere(w.b, w.Port)
	w.agent = w.lane.join()
	s := w.agent.stream()
	w.b.Cleanup(s.leave)
	_ = s.conn.SetDeadline(time.Now().Add(time.Hour))
	w.heard = make(chan heard, 10_000)
	go func() {
		for {
			line, err := s.in.ReadBytes('\n')
			if err != nil {
				return
			}
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				w.heard <- heard{time.Now(), data[:min(len(data), 200)]}
			}
		}
	}()
}

// await returns when the agent heard something.
func (w *seat) await(what string) time.Time {
	w.b.Helper()
	for end := time.After(second(60)); ; {
		select {
		case h := <-w.heard:
			if bytes.Contains(h.data, []byte(what)) {
				return h.at
			}
		case <-end:
			if w.typist != nil {
				w.b.Logf("on the screen: %q", w.typist.tail)
			}
			w.b.Fatalf("%s: the agent never hears %s", w.name, what)
		}
	}
}

// quiet waits until the agent hears nothing more.
func (w *seat) quiet() {
	for {
		select {
		case <-w.heard:
		case <-time.After(300 * time.Millisecond):
			return
		}
	}
}

// floorWay is the smallest editor.
func floorWay(b *testing.B, by *launcher, dir string) *seat {
	b.Helper()
	w := &seat{lane: lanes(b, by, dir)[1]}
	w.name = "floor"
	w.greet = func() { w.name = "pollux"; w.hello(); w.name = "floor" }
	w.launch()
	b.Cleanup(w.stop)
	w.join()
	if err := os.WriteFile(filepath.Join(w.cmd.Dir, "a.go"), nil, 0o600); err != nil {
		b.Fatal(err)
	}
	line := 0
	w.expect = func(string) {
		select {
		case <-w.editor.shown:
		default:
		}
	}
	w.shown = func() time.Time { return <-w.editor.shown }
	w.accept = func() time.Time {
		at := time.Now()
		w.editor.say(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"d","method":"pollux/resolveDiff","params":{"diffId":%q,"version":0,"baseVersion":0,"outcome":"accepted","edit":1,"content":%s}}`, w.editor.diff, w.editor.text))
		return at
	}
	w.move = func() time.Time {
		at := time.Now()
		line++
		w.editor.say(w.cursor(line % 50))
		return at
	}
	return w
}

// A typist is who sits at a program in a terminal of 120 columns and 40 lines.
type typist struct {
	tty *os.File

	mu      sync.Mutex // guards the below
	tail    []byte     // the end of what came
	marker  string
	seen    chan time.Time
	printed chan struct{} // has a value when something has come
}

func (w *seat) sit(cmd *exec.Cmd) *typist {
	w.b.Helper()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 120, Rows: 40})
	if err != nil {
		w.b.Fatal(err)
	}
	p := &typist{tty: tty, printed: make(chan struct{}, 1), seen: make(chan time.Time, 1)}
	over := make(chan struct{})
	go func() { p.read(); close(over) }()
	w.b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); tty.Close(); <-over })
	w.typist = p
	w.expect = func(marker string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.marker, p.tail = marker, nil
	}
	w.shown = func() time.Time {
		select {
		case at := <-p.seen:
			return at
		case <-time.After(second(20)):
			w.b.Fatalf("%s does not show the proposal: %q", w.name, p.tail)
			return time.Time{}
		}
	}
	return p
}

func (p *typist) read() {
	buf := make([]byte, 64<<10)
	for {
		n, err := p.tty.Read(buf)
		if err != nil {
			return
		}
		at := time.Now()
		p.mu.Lock()
		p.tail = append(p.tail[max(0, len(p.tail)-4096):], buf[:n]...)
		if p.marker != "" && bytes.Contains(p.tail, []byte(p.marker)) {
			p.marker = ""
			p.seen <- at
		}
		p.mu.Unlock()
		select {
		case p.printed <- struct{}{}:
		default:
		}
	}
}

// types returns when it began.
func (p *typist) types(keys string) func() time.Time {
	return func() time.Time {
		at := time.Now()
		_, _ = p.tty.WriteString(keys)
		return at
	}
}

// moves goes to a line and to the one after it, in turns.
func (p *typist) moves(keys func(line int) string, first int) func() time.Time {
	n := 0
	return func() time.Time {
		n++
		return p.types(keys(first + n%2))()
	}
}

// keepsBusy presses keys that move the cursor, each when the last one has been answered.
func (p *typist) keepsBusy(move func() time.Time) func(<-chan struct{}) time.Duration {
	return func(done <-chan struct{}) (longest time.Duration) {
		for {
			select {
			case <-p.printed:
			default:
			}
			at := move()
			select {
			case <-p.printed:
				longest = max(longest, time.Since(at))
			case <-time.After(second(20)):
				return time.Minute
			}
			select {
			case <-done:
				return longest
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
}

// user is a home with a project in it, with one file that is looked at.
func user(b *testing.B, name, dir string) (w *seat, env []string) {
	b.Helper()
	s := prepare(b, filepath.Join(dir, "pollux"), "lsp")
	s.cmd.Env = append(s.cmd.Env, "TERM=xterm-256color", "LANG=C.UTF-8", "PATH="+dir+":"+os.Getenv("PATH"), "SHELL=/bin/sh")
	var lines strings.Builder
	for i := range 30 {
		fmt.Fprintf(&lines, "line %d\n", i)
	}
	if err := os.WriteFile(filepath.Join(s.cmd.Dir, "a.txt"), []byte(lines.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	return &seat{lane: &lane{spawned: s, name: name}}, s.cmd.Env
}

// editorWay starts an editor of the terminal, and waits until its companion serves.
func editorWay(b *testing.B, dir, name, accept string, line func(n int) string, peer peers.Peer, args func(root, home string) []string) *seat {
	b.Helper()
	w, env := user(b, name, dir)
	root, err := peers.Root()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(peers.Need(b, peer), args(root, filepath.Dir(w.cmd.Dir))...)
	cmd.Dir, cmd.Env = w.cmd.Dir, env
	w.start = time.Now()
	p := w.sit(cmd)
	w.awaitFile()
	w.join()
	time.Sleep(time.Second) // the plugin knows of it
	w.accept, w.move = p.types(accept), p.moves(line, 5)
	w.busy = p.keepsBusy(p.moves(line, 2))
	return w
}

func viLine(n int) string { return fmt.Sprintf("%dG", n) }

func neovimWay(b *testing.B, dir string) *seat {
	b.Helper()
	return editorWay(b, dir, "neovim", ":w\r", viLine, peers.Neovim, func(root, _ string) []string {
		return []string{"--clean", "-n", "-i", "NONE", "--cmd", "set rtp^=" + filepath.Join(root, "plugins", "nvim") + " shortmess+=I", "--cmd", "let g:pollux = {'focus': 'now'}", "a.txt"}
	})
}

func vimWay(b *testing.B, dir string) *seat {
	b.Helper()
	return editorWay(b, dir, "vim", ":w\r", viLine, peers.Vim, func(root, home string) []string {
		rc := filepath.Join(home, "vimrc")
		if err := os.WriteFile(rc, []byte("set rtp^="+filepath.Join(root, "plugins", "vim")+" nocompatible shortmess+=I ruler\nlet g:pollux = {'focus': 'now'}\n"), 0o600); err != nil {
			b.Fatal(err)
		}
		return []string{"-u", rc, "-i", "NONE", "-n", "a.txt"}
	})
}

func emacsWay(b *testing.B, dir string) *seat {
	b.Helper()
	return editorWay(b, dir, "emacs", "\x03\x03", func(n int) string { return "\x1b<" + strings.Repeat("\x0e", n-1) }, peers.Emacs, func(root, _ string) []string {
		return []string{
			"-Q", "-nw", "--eval", "(setq native-comp-deferred-compilation nil native-comp-jit-compilation nil inhibit-startup-screen t make-backup-files nil auto-save-default nil ring-bell-function 'ignore)",
			"-L", filepath.Join(root, "plugins", "emacs"), "-l", "pollux", "--eval", "(progn (setq pollux-focus 'now) (pollux-mode 1))", "a.txt",
		}
	})
}

// serveWay starts pollux serve, and returns the page's address.
func serveWay(b *testing.B, name, dir string) (w *seat, env []string, page string) {
	b.Helper()
	w, env = user(b, name, dir)
	cmd := exec.Command(filepath.Join(dir, "pollux"), "serve", "--no-open", "--json")
	cmd.Dir, cmd.Env, cmd.Stderr = w.cmd.Dir, env, os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	var said struct{ Page string }
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err := errors.Join(err, json.Unmarshal(line, &said)); err != nil {
		b.Fatalf("pollux serve says %q: %v", line, err)
	}
	w.start = time.Now()
	w.awaitFile()
	w.join()
	return w, env, said.Page
}

func reviewWay(b *testing.B, dir string) *seat {
	b.Helper()
	w, env, _ := serveWay(b, "review", dir)
	cmd := exec.Command(filepath.Join(dir, "pollux"), "review", "--theme", "dark")
	cmd.Dir, cmd.Env = w.cmd.Dir, env
	p := w.sit(cmd)
	w.expect("Nothing waits")
	w.shown()
	w.accept = p.types("a")
	return w
}

func pageWay(b *testing.B, dir string) *seat {
	b.Helper()
	w, _, address := serveWay(b, "page", dir)
	p := shared.chromium(b).Open(b, address)
	p.Wait(browser.ID("status-connection") + `[data-state="open"]`)
	w.expect = func(marker string) {
		browser.Eval[bool](p, fmt.Sprintf(`(() => {
			window.shownAt = new Promise((done) => {
				const watch = new MutationObserver(() => {
					const text = document.querySelector('[data-testid="diff-new"]');
					if (!text || !text.textContent.includes(%q)) return;
					watch.disconnect();
					requestAnimationFrame(() => setTimeout(() => done(performance.timeOrigin + performance.now())));
				});
				watch.observe(document.body, { subtree: true, childList: true, characterData: true });
			});
			return true;
		})()`, marker))
	}
	w.shown = func() time.Time { return clock(browser.Eval[float64](p, "window.shownAt")) }
	w.accept = func() time.Time {
		return clock(browser.Eval[float64](p, `(() => {
			const at = performance.timeOrigin + performance.now();
			document.querySelector('[data-testid="accept"]').click();
			return at;
		})()`))
	}
	return w
}

// clock is a browser's time, in milliseconds since 1970.
func clock(ms float64) time.Time { return time.Unix(0, int64(ms*1e6)) }
