//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/e2e/child"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/rpc"
	"github.com/pollux-companion/pollux/internal/usertest"
)

// A plugin is a test editor with a plugin of version 2, behind pollux lsp.
type plugin struct {
	w     *world
	cmd   *exec.Cmd
	in    io.Closer
	peer  *rpc.Peer
	shown chan map[string]any // the parameters of pollux/openDiff
	taken chan map[string]any // the parameters of pollux/closeDiff
	typed atomic.Value        // what it answers that the user has made of a proposal, a string; nothing by default
	asked chan string         // the files that it is asked to open or save
	ended chan struct{}       // closed when pollux lsp has ended
	pid   int                 // of the editor
	file  string              // the discovery file
}

// newIDE starts pollux lsp for an editor with its own process.
func (w *world) newIDE(name string) *plugin { return w.newIDEIn(name, w.project) }

// newIDEIn is newIDE for a folder.
func (w *world) newIDEIn(name, folder string) *plugin {
	w.t.Helper()
	editor := exec.Command("sleep", "600")
	if err := editor.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = editor.Process.Kill(); _ = editor.Wait() })
	return w.newIDEOf(name, editor.Process.Pid, folder)
}

// newIDEOf starts pollux lsp for the editor with process pid.
func (w *world) newIDEOf(name string, pid int, folder string) *plugin {
	w.t.Helper()
	e := &plugin{w: w, pid: pid, cmd: w.command("lsp"), shown: make(chan map[string]any, 8), taken: make(chan map[string]any, 8), asked: make(chan string, 8), ended: make(chan struct{})}
	in, out := child.Start(w.t, e.cmd)
	e.in = in
	e.peer = rpc.NewPeer(rpc.NewQueue(rpc.NewChannel(out, in, &rpc.Options{First: rpc.Lines})), rpc.PeerOptions{Handle: e.handle})
	read := make(chan struct{})
	go func() { defer close(read); _ = e.peer.Run(context.Background()) }()
	go func() { defer close(e.ended); <-read; _ = e.cmd.Wait() }()
	w.t.Cleanup(func() { _ = e.cmd.Process.Kill(); in.Close(); <-e.ended })
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	err := e.peer.Call(ctx, "initialize", map[string]any{
		"processId": pid, "workspaceFolders": []any{map[string]any{"uri": "file://" + folder}},
		"initializationOptions": map[string]any{"pollux": map[string]any{"version": 2, "context": true, "openDiff": true, "ide": map[string]any{"name": name, "displayName": name}}},
	}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	eventually(w.t, "the discovery file", func() bool {
		files, _ := filepath.Glob(filepath.Join(w.ide(), fmt.Sprintf("*-%d-*.json", pid)))
		if len(files) == 1 {
			e.file = files[0]
		}
		return e.file != ""
	})
	return e
}

func (e *plugin) handle(_ context.Context, method string, params json.RawMessage) (any, error) {
	var p map[string]any
	if strings.HasPrefix(method, "pollux/") {
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
	}
	switch method {
	case "pollux/openDiff":
		e.shown <- p
	case "pollux/closeDiff":
		e.taken <- p
		if typed, ok := e.typed.Load().(string); ok {
			return map[string]any{"content": typed}, nil
		}
		return map[string]any{"content": ""}, nil
	case "pollux/openDocument", "pollux/saveDocument":
		e.asked <- fmt.Sprint(method, " ", p["uri"])
		return map[string]any{"opened": true, "saved": true}, nil
	default:
		return map[string]any{"content": ""}, nil
	}
	return map[string]any{"opened": true}, nil
}

// shows waits for the diff of a file.
func (e *plugin) shows(path, text string) (id any) {
	e.w.t.Helper()
	select {
	case p := <-e.shown:
		if p["filePath"] != path || p["newText"] != text {
			e.w.t.Errorf("the editor shows %v", p)
		}
		return p["diffId"]
	case <-time.After(patience):
		e.w.t.Fatalf("the editor does not show %s", path)
	}
	return nil
}

// looksAt makes the user look at a file, and waits until the CLI knows.
func (e *plugin) looksAt(cli *agent.Agent, path string) {
	e.w.t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		e.w.t.Fatal(err)
	}
	e.peer.Notify("pollux/didChangeContext", map[string]any{"textDocument": map[string]any{"uri": "file://" + path}})
	cli.Context("the file in the editor", func(files []agent.File) bool { return len(files) == 1 && files[0].Path == path })
}

// leave ends the editor in order; keep is what the plugin says when leaving, nil for nothing.
func (e *plugin) leave(keep *bool) {
	e.w.t.Helper()
	var params any
	if keep != nil {
		params = map[string]any{"keep": *keep}
	}
	ctx, cancel := context.WithTimeout(e.w.t.Context(), patience)
	defer cancel()
	if err := e.peer.Call(ctx, "shutdown", params, nil); err != nil {
		e.w.t.Fatal(err)
	}
	e.peer.Notify("exit", nil)
}

// gone waits for the end of pollux lsp, which takes at most a second.
func (e *plugin) gone(watch *pace.Watch) {
	e.w.t.Helper()
	select {
	case <-e.ended:
	case <-time.After(patience):
		e.w.t.Fatal("pollux lsp does not end")
	}
	if took := watch.Took(); took > pace.Slack*time.Second {
		e.w.t.Errorf("it took %v to end", took)
	}
}

// keepers returns the statuses of the keepers.
func (w *world) keepers() (all []control.Status) {
	for _, c := range control.List(context.Background(), []string{filepath.Join(w.root, "r", "pollux")}) {
		if c.Status.Keeper {
			all = append(all, c.Status)
		}
		c.Close()
	}
	return all
}

// keeper waits for n keepers, ends them with the test, and returns the first.
func (w *world) keeper(n int) control.Status {
	w.t.Helper()
	var all []control.Status
	eventually(w.t, "the keeper", func() bool { all = w.keepers(); return len(all) == n })
	for _, s := range all {
		w.t.Cleanup(func() {
			_ = syscall.Kill(s.PID, syscall.SIGTERM)
			eventually(w.t, "the keeper's end", func() bool { return syscall.Kill(s.PID, 0) != nil })
		})
	}
	return all[0]
}

func newKeptWorld(t *testing.T) *world {
	w := newWorld(t)
	w.configure(`{"keep": true, "diffMode": "ask"}`)
	return w
}

// thief keeps trying to bind a port until stop, as another user where this one is root. Both ends may ask to share it.
func thief(t *testing.T, port int) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	share := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
	}}
	try := func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			if ln, err := share.Listen(context.Background(), "tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
				ln.Close()
				t.Error("somebody else could bind the port")
				return
			}
			time.Sleep(200 * time.Microsecond)
		}
	}
	go func() {
		defer close(done)
		if !usertest.Do(t, try) {
			try()
		}
	}()
	return func() { close(over); <-done }
}

func portOf(file string) (port int) {
	_, _ = fmt.Sscanf(file[strings.LastIndex(file, "-")+1:], "%d.json", &port)
	return port
}

// SPEC L-4, A-1: the door outlives the editor, without a moment in which anybody else could bind it. Open proposals
// wait, new ones wait too, and the next editor, a different one, shows both and decides.
func TestKeeperL4(t *testing.T) {
	t.Parallel()
	w := newKeptWorld(t)
	first := w.newIDE("neovim")
	port := portOf(first.file)
	cli := agent.Start(t, first.file)
	a, b := filepath.Join(w.project, "a"), filepath.Join(w.project, "b")
	cli.OpenDiff(a, "A\n")
	first.shows(a, "A\n")
	first.looksAt(cli, a)
	defer thief(t, port)()

	watch := pace.Start(t)
	first.leave(nil)
	first.gone(watch)
	keeper := w.keeper(1)
	eventually(t, "its discovery file instead of the editor's", func() bool {
		files := w.files()
		return len(files) == 1 && portOf(files[0]) == port && strings.Contains(files[0], fmt.Sprintf("-%d-", keeper.PID))
	})
	cli.Context("an empty context", func(files []agent.File) bool { return len(files) == 0 })
	cli.OpenDiff(b, "B\n")
	if out, _ := w.in(w.project, nil, "status"); !strings.Contains(out, "keeper") {
		t.Errorf("status says %s", out)
	}

	// A model's shell gets neither the door nor the keeper's end.
	shell := []string{"GEMINI_CLI=1"}
	model := w.command("serve", "--no-open", "--json")
	model.Env = append(slices.Clone(w.env), shell...)
	theirs := w.start(model)
	if theirs.Resumed || theirs.Port == port {
		t.Errorf("a model has taken the door: %+v", theirs.ready)
	}
	theirs.signal(syscall.SIGTERM)
	if out, code := w.in(w.project, shell, "stop"); code == 0 {
		t.Errorf("a model has ended the keeper: %s", out)
	}
	if left := w.keepers(); len(left) != 1 || left[0].PID != keeper.PID {
		t.Fatalf("the keeper is gone: %v", left)
	}

	second := w.newIDE("emacs")
	if got := portOf(second.file); got != port {
		t.Errorf("the next editor is at port %d, want %d", got, port)
	}
	shown := map[any]any{}
	for range 2 {
		select {
		case p := <-second.shown:
			shown[p["filePath"]] = p["diffId"]
		case <-time.After(patience):
			t.Fatalf("the next editor shows %v", shown)
		}
	}
	eventually(t, "the keeper's end", func() bool { return len(w.keepers()) == 0 })
	for path, outcome := range map[string]string{a: "accepted", b: "rejected"} {
		var answer struct{ Settled bool }
		params := map[string]any{"diffId": shown[path], "version": 1, "baseVersion": 0, "outcome": outcome}
		if err := second.peer.Call(t.Context(), "pollux/resolveDiff", params, &answer); err != nil || !answer.Settled {
			t.Errorf("%s: %+v, %v", path, answer, err)
		}
		if o := cli.Outcome(); o.FilePath != path || strings.ToLower(strings.TrimPrefix(o.Method, "ide/diff")) != outcome {
			t.Errorf("the CLI hears %+v", o)
		}
	}
}

// SPEC L-4: however the editor ends, its CLIs are kept; pollux stop rejects the open proposals, and nothing is left.
func TestKeeperHoweverL4(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(e *plugin){
		"SIGTERM":       func(e *plugin) { _ = e.cmd.Process.Signal(syscall.SIGTERM) },
		"SIGHUP":        func(e *plugin) { _ = e.cmd.Process.Signal(syscall.SIGHUP) },
		"end of input":  func(e *plugin) { e.in.Close() },
		"editor's kill": func(e *plugin) { _ = syscall.Kill(e.pid, syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newKeptWorld(t)
			e := w.newIDE("vim")
			cli := agent.Start(t, e.file)
			path := filepath.Join(w.project, "a")
			cli.OpenDiff(path, "A\n")
			e.looksAt(cli, path)
			watch := pace.Start(t)
			end(e)
			e.gone(watch)
			w.keeper(1)
			cli.Context("the keeper's", func(files []agent.File) bool { return len(files) == 0 })
			if out, code := w.in(w.project, nil, "stop"); code != 0 {
				t.Errorf("stop: %d, %s", code, out)
			}
			if o := cli.Outcome(); o.Method != "ide/diffRejected" || o.FilePath != path {
				t.Errorf("the CLI hears %+v", o)
			}
			eventually(t, "the end of what was kept", func() bool { return len(w.leftovers()) == 0 })
			if out, code := w.in(w.project, nil, "stop"); code != console.CodeNo {
				t.Errorf("stop where nothing runs: %d, %s", code, out)
			}
		})
	}
}

// SPEC L-1, L-4: without a keeper, an orderly end rejects the open proposals and leaves nothing.
func TestNobodyKeepsL4(t *testing.T) {
	t.Parallel()
	never := false
	for name, c := range map[string]struct {
		settings string
		keep     *bool
	}{
		"switched off":           {`{"keep": false}`, nil},
		"resuming switched off":  {`{"resume": false}`, nil},
		"stopped in the editor":  {`{"keep": true}`, &never},
		"stopped, says a plugin": {`{}`, &never},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.configure(c.settings)
			e := w.newIDE("vim")
			cli := agent.Start(t, e.file)
			path := filepath.Join(w.project, "a")
			cli.OpenDiff(path, "A\n")
			e.leave(c.keep)
			if o := cli.Outcome(); o.Method != "ide/diffRejected" || o.FilePath != path {
				t.Errorf("the CLI hears %+v", o)
			}
			e.gone(pace.Start(t))
			if left := w.leftovers(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
	t.Run("no session", func(t *testing.T) {
		t.Parallel()
		w := newKeptWorld(t)
		e := w.newIDE("vim")
		e.leave(nil)
		e.gone(pace.Start(t))
		if left := w.leftovers(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
	t.Run("a CLI of the editor's own terminal", func(t *testing.T) {
		t.Parallel()
		w := newKeptWorld(t)
		e := w.newIDEOf("vim", os.Getpid(), w.project)
		agent.Start(t, e.file) // a child of this process, which is the editor: it ends with it
		e.leave(nil)
		e.gone(pace.Start(t))
		if left := w.leftovers(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// SPEC L-4, L-1: pollux stop runs right after the editor's end, before there is a keeper, while a CLI is away that
// returns seconds later. Every CLI gets its answer, and nothing is left.
func TestStopAtOnceL4(t *testing.T) {
	t.Parallel()
	w := newKeptWorld(t)
	e := w.newIDE("vim")
	cli := agent.Start(t, e.file)
	path := filepath.Join(w.project, "a")
	cli.OpenDiff(path, "A\n")
	e.shows(path, "A\n")
	e.leave(nil)
	e.gone(pace.Start(t))
	if out, code := w.in(w.project, nil, "stop"); code != 0 {
		t.Errorf("stop: %d, %s", code, out)
	}
	if o := cli.Outcome(); o.Method != "ide/diffRejected" || o.FilePath != path {
		t.Errorf("the CLI hears %+v", o)
	}
	eventually(t, "the end of what was kept", func() bool { return len(w.leftovers()) == 0 })
}

// SPEC §11.1, L-4: a model that kills an editor's companion cannot get its door with a keeper of its own; the next
// editor gets it.
func TestAgentsKeeperL4(t *testing.T) {
	t.Parallel()
	w := newKeptWorld(t)
	e := w.newIDE("vim")
	cli := agent.Start(t, e.file)
	path, port := filepath.Join(w.project, "a"), portOf(e.file)
	cli.OpenDiff(path, "A\n")
	e.shows(path, "A\n")
	_ = e.cmd.Process.Kill()
	<-e.ended
	order := fmt.Sprintf(`{"ide":{"name":"vim","displayName":"vim"},"roots":[%q],"record":{"editor":"vim","roots":[%q],"port":%d}}`+"\n", w.project, w.project, port)
	model := w.command("keep")
	model.Env, model.Stdin = append(slices.Clone(w.env), "GEMINI_CLI=1"), strings.NewReader(order)
	timer := time.AfterFunc(patience, func() { _ = model.Process.Kill() })
	defer timer.Stop()
	if out, err := model.CombinedOutput(); err == nil || !strings.Contains(string(out), "agent's own shell") {
		t.Errorf("a model keeps the door: %v, %s", err, out)
	}
	second := w.newIDEOf("vim", e.pid, w.project)
	if got := portOf(second.file); got != port {
		t.Errorf("the next editor is at port %d, want %d", got, port)
	}
	id := second.shows(path, "A\n")
	if err := second.peer.Call(t.Context(), "pollux/resolveDiff", map[string]any{"diffId": id, "version": 1, "baseVersion": 0, "outcome": "accepted"}, nil); err != nil {
		t.Error(err)
	}
	if o := cli.Outcome(); o.Method != "ide/diffAccepted" {
		t.Errorf("the CLI hears %+v", o)
	}
}

// SPEC L-4: a companion whose terminal is gone is kept; one that was told to end is not. serve takes over from a
// keeper.
func TestServeAndKeeperL4(t *testing.T) {
	t.Parallel()
	w := newKeptWorld(t)
	e := w.newIDE("vim")
	cli := agent.Start(t, e.file)
	path := filepath.Join(w.project, "a")
	cli.OpenDiff(path, "A\n")
	defer thief(t, portOf(e.file))()
	e.leave(nil)
	w.keeper(1)
	w.reviews(cli)
	first := w.serve()
	if !first.Resumed || first.Port != portOf(e.file) {
		t.Errorf("serve does not take over: %+v", first.ready)
	}
	first.signal(syscall.SIGHUP)
	w.keeper(1)
	second := w.serve()
	if !second.Resumed || second.Port != first.Port {
		t.Errorf("serve does not take over from its own keeper: %+v", second.ready)
	}
	client := w.control()
	defer client.Close()
	if diffs, err := client.Diffs(t.Context()); err != nil || len(diffs) != 1 {
		t.Errorf("%v, %v", diffs, err)
	}
	if text := cli.CloseDiff(path); !strings.Contains(text, `A\n`) {
		t.Errorf("the CLI takes back %s", text)
	}
}

// reviews decides in the keeper, as pollux review does. New proposals wait there, and no rule accepts them.
func (w *world) reviews(cli *agent.Agent) {
	w.t.Helper()
	client := w.control()
	defer client.Close()
	if err := client.SetRule(w.t.Context(), review.Rule{Mode: "accept", Pattern: "**/reviewed"}); err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(w.project, "reviewed")
	cli.OpenDiff(path, "R\n")
	diffs, err := client.Diffs(w.t.Context())
	i := slices.IndexFunc(diffs, func(d control.Diff) bool { return d.Path == path })
	if err != nil || i < 0 {
		w.t.Fatalf("the keeper has %v, %v", diffs, err)
	}
	if err := client.Decide(w.t.Context(), control.Decision{ID: diffs[i].ID, Accept: true, Seen: control.Seen{Version: diffs[i].Version, Base: diffs[i].Base}}); err != nil {
		w.t.Fatal(err)
	}
	if o := cli.Outcome(); o.Method != "ide/diffAccepted" || o.FilePath != path || o.Content != "R\n" {
		w.t.Errorf("the CLI hears %+v", o)
	}
}

// SPEC L-4: two editors of one folder, each with a CLI, are both kept, and two editors take both over.
func TestTwoKeepersL4(t *testing.T) {
	t.Parallel()
	w := newKeptWorld(t)
	var ports []int
	var paths []string
	var clis []*agent.Agent
	var editors []*plugin
	for i := range 2 {
		e := w.newIDE("neovim")
		cli := agent.Start(t, e.file)
		path := filepath.Join(w.project, fmt.Sprint(i))
		cli.OpenDiff(path, "new\n")
		e.shows(path, "new\n")
		editors, clis, paths, ports = append(editors, e), append(clis, cli), append(paths, path), append(ports, portOf(e.file))
	}
	for _, e := range editors {
		e.leave(nil)
		e.gone(pace.Start(t))
	}
	w.keeper(2)
	var again []int
	for range 2 {
		e := w.newIDE("neovim")
		again = append(again, portOf(e.file))
		i := slices.Index(ports, portOf(e.file))
		if i < 0 {
			t.Fatalf("an editor is at port %d, the CLIs are at %v", portOf(e.file), ports)
		}
		id := e.shows(paths[i], "new\n")
		if err := e.peer.Call(t.Context(), "pollux/resolveDiff", map[string]any{"diffId": id, "version": 1, "baseVersion": 0, "outcome": "accepted"}, nil); err != nil {
			t.Error(err)
		}
		if o := clis[i].Outcome(); o.Method != "ide/diffAccepted" || o.FilePath != paths[i] {
			t.Errorf("the CLI hears %+v", o)
		}
	}
	if slices.Sort(again); !slices.Equal(again, slices.Sorted(slices.Values(ports))) {
		t.Errorf("the editors are at %v, the CLIs at %v", again, ports)
	}
}
