//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/rpc"
)

// A chaosEditor is an editor behind pollux lsp, as one with a plugin of version 2: it shows what it is told to, its user edits and
// decides, and when pollux was killed it starts it again and names the views that it still has.
type chaosEditor struct {
	x *chaos
	// process stands for the editor's own: pollux ends with it. nil after it was killed.
	process *exec.Cmd
	pollux  *exec.Cmd
	in      io.Closer // pollux's standard input
	peer    *rpc.Peer
	ended   chan struct{} // closed when pollux has been waited for

	views map[string]*chaosView // by the diff's id; guarded by x.mu
}

// A chaosView is one diff that the editor shows.
type chaosView struct {
	fate                 *fate
	text                 string
	version, base, edits int
}

type object = map[string]any

// withEditor starts pollux lsp for an editor, which is started with it unless it lives.
func withEditor(x *chaos) func() chaosLife {
	e := &chaosEditor{x: x, views: map[string]*chaosView{}}
	x.t.Cleanup(e.end)
	return e.start
}

func (e *chaosEditor) start() chaosLife {
	t := e.x.t
	if e.process == nil {
		e.process = exec.Command("sleep", "3600")
		if err := e.process.Start(); err != nil {
			t.Fatal(err)
		}
	}
	e.pollux = exec.Command(shared.pollux, "lsp")
	e.pollux.Dir, e.pollux.Env, e.pollux.Stderr = e.x.b.dir, e.x.b.home.Env(), os.Stderr
	in, err := e.pollux.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	e.pollux.Stdout = w
	err = e.pollux.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	e.in, e.ended = in, make(chan struct{})
	e.peer = rpc.NewPeer(rpc.NewQueue(rpc.NewChannel(out, in, &rpc.Options{First: rpc.Lines})), rpc.PeerOptions{Handle: e.handle})
	var both sync.WaitGroup
	both.Go(func() { _ = e.peer.Run(e.x.ctx); out.Close() })
	go func(ended chan struct{}, pollux *exec.Cmd) { both.Wait(); _ = pollux.Wait(); close(ended) }(e.ended, e.pollux)
	life := e.hello()
	e.x.agrees(e.shown)
	return life
}

// hello says what the editor is and still shows.
func (e *chaosEditor) hello() chaosLife {
	t := e.x.t
	var still []object
	e.x.try(func() {
		e.x.leaving = false
		for id, v := range e.views {
			v.version, v.base, v.edits = 1, 0, 0
			still = append(still, object{"diffId": id, "filePath": v.fate.path, "content": v.text})
		}
	})
	ctx, cancel := context.WithTimeout(e.x.ctx, second(60))
	defer cancel()
	var answer struct {
		Capabilities struct {
			Experimental struct {
				Pollux struct{ Env map[string]string }
			}
		}
	}
	err := e.peer.Call(ctx, "initialize", object{
		"processId": e.process.Process.Pid, "workspaceFolders": []object{{"uri": "file://" + e.x.b.dir}},
		"initializationOptions": object{"pollux": object{
			"version": 2, "context": true, "openDiff": true, "ide": object{"name": "chaos", "displayName": "Chaos"}, "openDiffs": still,
		}},
	}, &answer)
	env := answer.Capabilities.Experimental.Pollux.Env
	port, bad := strconv.Atoi(env["GEMINI_CLI_IDE_SERVER_PORT"])
	if err := errors.Join(err, bad); err != nil {
		t.Fatalf("pollux lsp does not start: %v", err)
	}
	return chaosLife{port, env["GEMINI_CLI_IDE_AUTH_TOKEN"], true, e.user, e.kill}
}

// shown are the texts of the views, by path.
func (e *chaosEditor) shown() map[string]string {
	all := map[string]string{}
	e.x.try(func() {
		for _, v := range e.views {
			all[v.fate.path] = v.text
		}
	})
	return all
}

// agrees waits until an editor shows what is open and nothing else, with the text that its user left there.
func (x *chaos) agrees(views func() map[string]string) {
	client, err := x.reviewer(x.ctx)
	if err != nil {
		x.t.Fatal(err)
	}
	defer client.Close()
	var shown, open map[string]string
	for deadline := time.Now().Add(second(60)); ; time.Sleep(5 * time.Millisecond) {
		diffs, err := client.Diffs(x.ctx)
		if err != nil {
			x.t.Fatal(err)
		}
		open = map[string]string{}
		for _, d := range diffs {
			if open[d.Path], _, err = client.Text(x.ctx, d.ID); err != nil {
				break
			}
		}
		shown = views()
		if err == nil && maps.Equal(shown, open) {
			break
		}
		if time.Now().After(deadline) {
			x.t.Errorf("the editor shows %d diffs, and %d are open, or their texts differ", len(shown), len(open))
			return
		}
	}
	x.try(func() {
		for path, text := range shown {
			if f := x.diffs[path]; f != nil {
				f.text, f.texts = text, nil // what its user left there
			}
		}
	})
}

// user edits and decides in the editor.
func (e *chaosEditor) user(ctx context.Context) {
	x := e.x
	for ctx.Err() == nil {
		time.Sleep(time.Duration(x.n(3000)) * time.Microsecond)
		x.mu.Lock()
		ids := slices.Sorted(maps.Keys(e.views))
		x.mu.Unlock()
		if len(ids) == 0 {
			continue
		}
		var err error
		switch id, what := ids[x.n(len(ids))], x.n(10); {
		case what < 6:
			err = e.edit(ctx, id)
		case what < 7:
			err = e.decide(ctx, id, "rejected", "")
		case what < 8:
			err = e.decide(ctx, id, "accepted", x.text())
		default: // as it stands
			err = e.decide(ctx, id, "accepted", "")
		}
		if err != nil {
			return // pollux has gone
		}
	}
}

func (e *chaosEditor) edit(ctx context.Context, id string) error {
	x := e.x
	text := x.text()
	x.mu.Lock()
	v := e.views[id]
	if v == nil {
		x.mu.Unlock()
		return nil
	}
	v.text = text
	v.edits++
	v.fate.texts = append(v.fate.texts, text)
	change := object{"diffId": id, "version": v.edits, "from": v.version, "content": text}
	x.mu.Unlock()
	e.peer.Notify("pollux/didChangeDiff", change)
	if err := e.peer.Call(ctx, "pollux/unknown", nil, nil); gone(err) {
		return err
	}
	x.try(func() { v.fate.text, v.fate.texts = text, nil; x.edits++ })
	return nil
}

// decide takes a decision, with a last edit unless text is "". The answer confirms it, unless somebody else may have been quicker.
func (e *chaosEditor) decide(ctx context.Context, id, outcome, text string) error {
	x := e.x
	x.mu.Lock()
	v := e.views[id]
	if v == nil {
		x.mu.Unlock()
		return nil
	}
	if text != "" {
		v.text = text
		v.fate.texts = append(v.fate.texts, text)
	}
	decision, word := object{"diffId": id, "version": v.version, "baseVersion": v.base, "outcome": outcome}, ""
	if outcome == "accepted" {
		v.edits++
		decision["content"], decision["edit"], word = v.text, v.edits, v.text
	}
	v.fate.tried = append(v.fate.tried, word)
	x.mu.Unlock()
	var answer struct{ Settled bool }
	if err := e.peer.Call(ctx, "pollux/resolveDiff", decision, &answer); err != nil {
		x.try(func() {
			if !gone(err) && !x.leaving { // a pollux that ends with its editor takes no decision, and says so
				x.t.Errorf("%s: %v", v.fate.path, err)
			}
		})
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(e.views, id)
	if answer.Settled && !v.fate.takingBack && !x.leaving {
		v.fate.decided, v.fate.gone = &word, time.Now()
		x.decisions++
	}
	return nil
}

// gone says whether an error is no answer.
func gone(err error) bool {
	var said *rpc.Error
	return err != nil && !errors.As(err, &said)
}

// handle is the plugin.
func (e *chaosEditor) handle(_ context.Context, method string, params json.RawMessage) (any, error) {
	var p struct {
		ID       string `json:"diffId"`
		FilePath string
		NewText  string
		Content  string
		Version  int
		Base     int  `json:"baseVersion"`
		Edit     *int // the last one that is in Content
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	x := e.x
	x.mu.Lock()
	defer x.mu.Unlock()
	v := e.views[p.ID]
	switch method {
	case "pollux/openDiff":
		f := x.diffs[p.FilePath]
		if f == nil {
			x.t.Errorf("the editor is to show a diff of nothing: %s", p.FilePath)
			return nil, nil
		}
		if p.NewText != f.text && !slices.Contains(f.texts, p.NewText) {
			x.t.Errorf("%s: altered: the editor is to show %q, it was %q", f.path, brief(p.NewText), brief(f.text))
		}
		e.views[p.ID] = &chaosView{fate: f, text: p.NewText, version: p.Version, base: p.Base}
		return object{"opened": true}, nil
	case "pollux/closeDiff":
		if v == nil {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "no such diff")
		}
		delete(e.views, p.ID)
		return object{"content": v.text}, nil
	case "pollux/didChangeProposal", "pollux/didChangeBase":
		if v == nil || p.Edit != nil && *p.Edit < v.edits {
			break
		}
		if p.Content != v.text { // nobody else edits
			x.t.Errorf("%s: altered: %s says %q, the user wrote %q", v.fate.path, method, brief(p.Content), brief(v.text))
		}
		v.version = p.Version
		if method == "pollux/didChangeBase" {
			v.base = p.Base
		}
	}
	return nil, nil
}

// kill kills pollux, the editor, or both. Where only the editor is killed, pollux sees it and rejects what is open; now and then
// it is killed as it does.
func (e *chaosEditor) kill() {
	x := e.x
	switch x.n(4) {
	case 0, 1:
		e.killPollux()
	case 2:
		x.try(func() { x.both++ })
		e.killPollux()
		e.killEditor()
	case 3:
		x.leaves()
		e.killEditor()
		if x.n(2) == 0 {
			time.Sleep(time.Duration(x.n(5000)) * time.Microsecond)
			_ = e.pollux.Process.Kill()
		}
	}
	select {
	case <-e.ended:
	case <-time.After(second(60)):
		x.t.Error("pollux lsp does not end with its editor")
		e.killPollux()
		<-e.ended
	}
	if e.process == nil {
		x.try(func() { clear(e.views) })
	}
}

// leaves says that an editor is killed whose companion then rejects what is open.
func (x *chaos) leaves() {
	x.try(func() {
		x.editors++
		x.leaving = true
		for _, f := range x.diffs {
			f.tried = append(f.tried, "")
		}
	})
}

func (e *chaosEditor) killPollux() {
	if err := e.pollux.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		e.x.t.Error(err)
	}
}

// killEditor kills the editor's process, whose ends of the pipes go with it.
func (e *chaosEditor) killEditor() {
	if err := e.process.Process.Kill(); err != nil {
		e.x.t.Error(err)
	}
	e.in.Close()
	_ = e.process.Wait()
	e.process = nil
}

// end leaves nothing behind when the test is over.
func (e *chaosEditor) end() {
	if e.process != nil {
		_ = e.process.Process.Kill()
		_ = e.process.Wait()
	}
	if e.pollux != nil {
		_ = e.pollux.Process.Kill()
		<-e.ended
	}
}
