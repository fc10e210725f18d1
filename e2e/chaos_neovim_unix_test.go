//go:build unix

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pollux-companion/pollux/internal/peers"
	"github.com/pollux-companion/pollux/internal/proc"
)

// A chaosNeovim is a real Neovim with pollux's plugin, which starts pollux lsp by itself. testdata/chaos.lua is its user's hands.
type chaosNeovim struct {
	x       *chaos
	program string
	plugin  string
	editor  *exec.Cmd // nil after it was killed
	pollux  proc.Info

	mu   sync.Mutex // one question at a time
	conn net.Conn
	in   *bufio.Reader
}

// withNeovim starts Neovims, each unless one lives.
func withNeovim(x *chaos) func() chaosLife {
	root, err := peers.Root()
	if err != nil {
		x.t.Fatal(err)
	}
	e := &chaosNeovim{x: x, program: peers.Need(x.t, peers.Neovim), plugin: filepath.Join(root, "plugins", "nvim")}
	x.t.Cleanup(e.end)
	return e.start
}

func (e *chaosNeovim) start() chaosLife {
	x, t := e.x, e.x.t
	x.try(func() { x.leaving = false })
	var mine map[string]string
	if e.editor == nil {
		e.launch()
	} else {
		mine = e.meanwhile()
	}
	var now struct {
		Status, Error string
		PID           int // of pollux
		Env           map[string]string
	}
	for deadline := time.Now().Add(second(60)); now.Status != "running" || now.PID == 0; time.Sleep(5 * time.Millisecond) {
		if err := e.ask(x.ctx, object{"do": "start"}, &now); err != nil || now.Status == "failed" || time.Now().After(deadline) {
			t.Fatalf("Neovim's companion does not come back: %+v, %v", now, err)
		}
	}
	port, err := strconv.Atoi(now.Env["GEMINI_CLI_IDE_SERVER_PORT"])
	if err != nil {
		t.Fatal(err)
	}
	e.pollux, _ = proc.Lookup(now.PID)
	x.agrees(e.views)
	for path, text := range e.views() { // whose user lives, and nobody else edits
		if typed, is := mine[path]; is && text != typed {
			t.Errorf("%s: altered: the user wrote %q, and Neovim shows %q", path, brief(typed), brief(text))
		}
	}
	return chaosLife{port, now.Env["GEMINI_CLI_IDE_AUTH_TOKEN"], true, e.user, e.kill}
}

// meanwhile is the user while pollux is away. It returns what then stands in Neovim.
func (e *chaosNeovim) meanwhile() map[string]string {
	views, err := e.list(e.x.ctx)
	if err != nil {
		e.x.t.Fatal(err)
	}
	for _, v := range views {
		if f := e.x.diffs[v.Path]; v.Shown && f != nil {
			if err := e.edit(e.x.ctx, f, v); err != nil {
				e.x.t.Fatal(err)
			}
		}
	}
	return e.views()
}

// launch starts a Neovim and finds its user's hands.
func (e *chaosNeovim) launch() {
	x, t := e.x, e.x.t
	hands := filepath.Join(x.b.home.Dir, "hands")
	_ = os.Remove(hands)
	settings, err := json.Marshal(object{"headless": true, "focus": "now", "notify": false, "command": shared.pollux})
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs(filepath.Join("testdata", "chaos.lua"))
	if err != nil {
		t.Fatal(err)
	}
	e.editor = exec.Command(e.program, "--clean", "--headless", "-n", "-i", "NONE", "--cmd", "set rtp^="+e.plugin,
		"--cmd", "let g:pollux = json_decode('"+string(settings)+"')", "--cmd", "let g:chaos = '"+hands+"'", "-S", script)
	e.editor.Dir, e.editor.Env = x.b.dir, x.b.home.Env()
	e.editor.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := e.editor.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(second(60)); ; time.Sleep(5 * time.Millisecond) {
		if e.conn, err = net.Dial("unix", hands); err == nil {
			e.in = bufio.NewReader(e.conn)
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("Neovim does not start: ", err)
		}
	}
}

// ask has the user do something in Neovim. An error means that Neovim has gone.
func (e *chaosNeovim) ask(ctx context.Context, what object, answer any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	line, err := json.Marshal(what)
	if err != nil {
		return err
	}
	conn := e.conn
	_ = conn.SetDeadline(time.Now().Add(second(60)))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now().Add(second(10))) }) // it answers, or is killed
	defer stop()
	if _, err = conn.Write(append(line, '\n')); err != nil {
		return err
	}
	said, err := e.in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var m struct {
		Error  string
		Result json.RawMessage
	}
	if err = json.Unmarshal(said, &m); err == nil && m.Error != "" {
		err = errors.New(m.Error)
		e.x.t.Error(err)
	}
	if err == nil && answer != nil && m.Result != nil {
		if err = json.Unmarshal(m.Result, answer); err != nil {
			err = fmt.Errorf("asked %s, it says %s: %w", line, brief(string(said)), err)
		}
	}
	return err
}

// A neovimView is a proposal in Neovim. Shown says that it is in a window.
type neovimView struct {
	ID, Path, Content string
	Shown             bool
}

func (e *chaosNeovim) list(ctx context.Context) (views []neovimView, err error) {
	return views, e.ask(ctx, object{"do": "list"}, &views)
}

// views are the texts that Neovim has, by path.
func (e *chaosNeovim) views() map[string]string {
	shown := map[string]string{}
	views, err := e.list(e.x.ctx)
	if err != nil {
		e.x.t.Fatal("Neovim has ended: ", err)
	}
	for _, v := range views {
		shown[v.Path] = v.Content
	}
	return shown
}

// user edits and decides what Neovim shows, and looks at others.
func (e *chaosNeovim) user(ctx context.Context) {
	x := e.x
	for ctx.Err() == nil {
		time.Sleep(time.Duration(x.n(3000)) * time.Microsecond)
		views, err := e.list(ctx)
		if err != nil {
			return
		}
		if len(views) == 0 {
			continue
		}
		v := views[x.n(len(views))]
		var f *fate
		x.try(func() { f = x.diffs[v.Path] })
		if f == nil {
			x.t.Errorf("Neovim shows a diff of nothing: %s", v.Path)
			return
		}
		switch what := x.n(10); {
		case !v.Shown && what < 8: // a person decides what they see
			err = e.ask(ctx, object{"do": "look", "id": v.ID}, nil)
		case what < 6:
			err = e.edit(ctx, f, v)
		case what < 7:
			x.try(func() { f.tried = append(f.tried, "") })
			err = e.ask(ctx, object{"do": "reject", "id": v.ID}, nil)
		default:
			err = e.accept(ctx, f, v)
		}
		if err != nil {
			return
		}
	}
}

// edit types a line.
func (e *chaosNeovim) edit(ctx context.Context, f *fate, v neovimView) error {
	const end = "\r\n" // of all that is proposed here
	lines := strings.Split(strings.TrimSuffix(v.Content, end), end)
	at, typed := e.x.n(len(lines)+1), fmt.Sprintf("typed %d", e.x.n(1<<30))
	all := append(append(append([]string{}, lines[:at]...), typed), lines[at:]...)
	text := strings.Join(all, end) + end
	e.x.try(func() { f.texts = append(f.texts, text) })
	var done struct{ Was, Content string }
	if err := e.ask(ctx, object{"do": "edit", "id": v.ID, "at": at, "text": typed}, &done); err != nil {
		return err
	}
	if done.Was == v.Content && done.Content != text {
		e.x.t.Errorf("%s: Neovim has %q, typed was %q", f.path, brief(done.Content), brief(text))
	}
	e.x.try(func() { e.x.edits++ })
	return nil
}

// accept accepts what stands there. Its answer confirms that pollux has answered, unless somebody else may have been quicker.
func (e *chaosNeovim) accept(ctx context.Context, f *fate, v neovimView) error {
	e.x.try(func() { f.tried = append(f.tried, v.Content) })
	var done struct{ Was, Open, Gone bool }
	if err := e.ask(ctx, object{"do": "accept", "id": v.ID, "content": v.Content}, &done); err != nil || !done.Was {
		return err
	}
	for deadline := time.Now().Add(second(10)); ; time.Sleep(time.Millisecond) {
		if err := e.ask(ctx, object{"do": "decision", "id": v.ID}, &done); err != nil {
			return err
		}
		if !done.Open || time.Now().After(deadline) {
			break
		}
	}
	e.x.try(func() {
		if done.Gone && !f.takingBack && !e.x.leaving && len(f.tried) == 1 {
			f.decided, f.gone = &v.Content, time.Now()
			e.x.decisions++
		}
	})
	return nil
}

// kill kills pollux, Neovim, or both, as chaosEditor does.
func (e *chaosNeovim) kill() {
	x := e.x
	switch x.n(4) {
	case 0, 1:
		e.killPollux()
	case 2:
		x.try(func() { x.both++ })
		e.killPollux()
		e.killNeovim()
	case 3:
		x.leaves()
		e.killNeovim()
		if x.n(2) == 0 {
			time.Sleep(time.Duration(x.n(5000)) * time.Microsecond)
			e.killPollux()
		}
	}
	ctx, cancel := context.WithTimeout(x.ctx, second(60))
	defer cancel()
	if err := proc.Wait(ctx, e.pollux); err != nil {
		x.t.Error("pollux lsp does not end with Neovim: ", err)
		e.killPollux()
	}
}

func (e *chaosNeovim) killPollux() {
	if err := syscall.Kill(e.pollux.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		e.x.t.Error(err)
	}
}

func (e *chaosNeovim) killNeovim() {
	_ = syscall.Kill(-e.editor.Process.Pid, syscall.SIGKILL) // it has started a part of itself
	_ = e.editor.Wait()
	e.conn.Close()
	e.editor = nil
}

func (e *chaosNeovim) end() {
	if e.editor != nil {
		e.killNeovim()
	}
	if e.pollux.PID != 0 {
		e.killPollux()
	}
}
