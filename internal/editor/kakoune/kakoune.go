// Package kakoune joins Kakoune to pollux. Kakoune's scripts can start programs, but hold no connection and read no JSON: its plugin
// tells each event by starting pollux kakoune, and a bridge beside the companion makes the editor's protocol of it.
package kakoune

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/rpc"
)

type obj = map[string]any

// Times.
const (
	callWithin = 4 * time.Second        // for an answer of pollux's, less than Kakoune waits
	idle       = time.Second            // without an event, before a proposal comes
	offerEvery = 300 * time.Millisecond // a look whether the user pauses
	offerAgain = 2 * time.Second        // to a user who was amid something
	followFor  = 5 * time.Second        // a file is read anew by itself, after its proposal was accepted
	syncWithin = time.Second            // for the newest text of a proposal that is taken back
)

type options struct {
	Start
	Dir string // private; it outlives a killed pollux, and is this Kakoune's alone
	// Send has Kakoune run a script, outside of any client.
	Send func(script string) error
	// MayDecide says why the process at the other end of a connection must not decide for the user; nil where it may.
	MayDecide func(net.Conn) error
}

// A bridge is one Kakoune and one pollux, from initialize to the end of either. Goroutines, all ended with join: one that reads what
// pollux says, one that offers proposals while some wait, one that has Kakoune take newer texts over, and a short one for each event.
type bridge struct {
	o    options
	peer *rpc.Peer

	ready   chan struct{} // closed when pollux has answered initialize
	came    chan struct{} // holds one where a proposal has come
	newer   chan struct{} // holds one where a newer text has come
	sending sync.Mutex    // held while Kakoune is sent a script; never acquired with mu held
	taking  sync.Mutex    // held while Kakoune takes a newer text over; acquired before the others

	mu      sync.Mutex // guards what follows
	queue   []*proposal
	client  string // where the user was last
	touched time.Time
	context string // told last
	status  string
	paused  bool // agents are told nothing of what the user looks at
	begun   bool // Kakoune may tell events
	past    []past
	ask     *question
	over    bool
}

// A question waits for the user: pollux/ask.
type question struct {
	choices []string
	answer  chan string
}

// join joins the two until pollux's side ends. Events come from ln, which join closes.
func join(ctx context.Context, wire rpc.Wire, ln net.Listener, o options) error {
	b := &bridge{o: o, ready: make(chan struct{}), came: make(chan struct{}, 1), newer: make(chan struct{}, 1), client: o.Client, touched: time.Now(), queue: left(o.Dir)}
	asking := func(method string) bool { return method == "pollux/ask" || method == "pollux/closeDiff" } // they wait
	b.peer = rpc.NewPeer(wire, rpc.PeerOptions{Handle: b.handle, Aside: asking, Log: o.Log})
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	tasks.Go(func() { defer cancel(); b.begin(ctx, ln.Addr().String()) })
	tasks.Go(func() { b.offer(ctx) })
	tasks.Go(func() { b.keepUp(ctx) })
	tasks.Go(func() { <-ctx.Done(); ln.Close() })
	tasks.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			tasks.Go(func() {
				if err := hear(conn, func(e Event) string { return b.event(ctx, conn, e) }); err != nil {
					o.Log.Debug("an event of Kakoune's", "err", err)
				}
			})
		}
	})
	err := b.peer.Run(ctx)
	cancel()
	b.mu.Lock()
	if b.over { // in good order: nothing is left to a pollux after this one
		_ = os.RemoveAll(o.Dir)
	}
	b.mu.Unlock()
	tasks.Wait()
	return err
}

// begin introduces Kakoune, and then lets it tell events. It returns when the bridge ends.
func (b *bridge) begin(ctx context.Context, socket string) {
	open := []obj{}
	for _, p := range b.queue {
		open = append(open, p.announce(b.o.Dir))
	}
	if err := b.peer.Call(ctx, "initialize", b.o.hello(open), nil); err != nil {
		b.send(in(b.o.Client, say("pollux cannot start: %v", err)))
		return
	}
	b.peer.Notify("initialized", obj{})
	b.mu.Lock()
	b.begun = true
	b.mu.Unlock()
	close(b.ready)
	b.send(command("set-option global pollux_dir", b.o.Dir) + command("set-option global pollux_socket", socket) +
		command("evaluate-commands -buffer *", "try %{ pollux-report }") + "pollux-clients\n")
	b.showStatus()
	<-ctx.Done()
}

// hello introduces a Kakoune that has these proposals open.
func (s Start) hello(open []obj) obj {
	folder, _ := os.Getwd()
	return obj{
		"processId": s.PID, "clientInfo": obj{"name": "Kakoune"},
		"workspaceFolders": []obj{{"uri": paths.URI(folder), "name": filepath.Base(folder)}},
		"initializationOptions": obj{"pollux": obj{
			"version": 2, "context": true, "openDiff": true, "idePid": s.PID,
			"ide": obj{"name": "kakoune", "displayName": "Kakoune"}, "openDiffs": open,
		}},
	}
}

// leave introduces a Kakoune that has these proposals open, and is left.
func leave(ctx context.Context, wire rpc.Wire, s Start, dir string, open []obj) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	peer := rpc.NewPeer(wire, rpc.PeerOptions{Log: s.Log, Handle: func(_ context.Context, method string, _ json.RawMessage) (any, error) {
		return nil, rpc.Errorf(rpc.CodeNoMethod, "Kakoune is being left, and does not hear %s", method)
	}})
	var asking sync.WaitGroup
	var err error
	asking.Go(func() {
		defer cancel()
		if err = peer.Call(ctx, "initialize", s.hello(open), nil); err == nil {
			err = peer.Call(ctx, "shutdown", obj{"keep": true}, nil)
		}
		if err == nil {
			err = os.RemoveAll(dir) // the next editor is asked by the keeper
		}
		peer.Notify("exit", nil)
	})
	_ = peer.Run(ctx)
	asking.Wait()
	return err
}

// send has Kakoune run a script, once the earlier ones are with it.
func (b *bridge) send(script string) {
	b.sending.Lock()
	defer b.sending.Unlock()
	b.run(script)
}

// run has Kakoune run a script. The caller holds b.sending.
func (b *bridge) run(script string) {
	if err := b.o.Send(script); err != nil {
		b.o.Log.Warn("Kakoune does not hear", "session", b.o.Session, "err", err)
	}
}

// call asks pollux.
func (b *bridge) call(ctx context.Context, method string, params, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	return b.peer.Call(ctx, method, params, out)
}

// find returns a proposal and its place in the queue, nil when there is none. The caller holds b.mu.
func (b *bridge) find(id string) (*proposal, int) {
	for i, p := range b.queue {
		if p.ID == id {
			return p, i
		}
	}
	return nil, -1
}

// waiting is the oldest proposal that is not on show, nil when there is none. The caller holds b.mu.
func (b *bridge) waiting() *proposal {
	for _, p := range b.queue {
		if !p.Shown && !p.Rejected {
			return p
		}
	}
	return nil
}

// take removes a proposal from the queue.
func (b *bridge) take(id string) *proposal {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, i := b.find(id)
	if p != nil {
		b.queue = slices.Delete(b.queue, i, i+1)
	}
	return p
}

// handle handles what pollux says.
func (b *bridge) handle(ctx context.Context, method string, params json.RawMessage) (any, error) {
	switch method {
	case "pollux/openDiff":
		return b.openDiff(params)
	case "pollux/closeDiff":
		return b.closeDiff(ctx, params)
	case "pollux/ask":
		return b.asked(ctx, params)
	case "pollux/openDocument":
		return b.openDocument(params)
	case "pollux/didChangeBase":
		return nil, b.changes(params, true)
	case "pollux/didChangeProposal":
		return nil, b.changes(params, false)
	case "pollux/filesChanged":
		return nil, b.written(params)
	case "pollux/didChangeStatus":
		return nil, b.changed(params)
	case "window/showMessage":
		var p struct {
			Message string `json:"message"`
		}
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		b.send(in(b.where(), say("%s", strings.TrimPrefix(p.Message, "pollux: "))))
		return nil, nil
	}
	return nil, rpc.Errorf(rpc.CodeNoMethod, "the plugin does not know %s", method)
}

// where is the client where the user was last.
func (b *bridge) where() string { b.mu.Lock(); defer b.mu.Unlock(); return b.client }

func (b *bridge) openDiff(params json.RawMessage) (any, error) {
	var q struct {
		ID       string    `json:"diffId"`
		Path     string    `json:"filePath"`
		Old      string    `json:"oldText"`
		New      string    `json:"newText"`
		Fixed    string    `json:"readOnly"`
		Version  int       `json:"version"`
		Base     int       `json:"baseVersion"`
		Conflict *conflict `json:"conflict"`
	}
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, err
	}
	if strings.ContainsRune(q.Old+q.New, 0) {
		return nil, rpc.Errorf(-32002, "Kakoune cannot be given a NUL")
	}
	p := &proposal{ID: q.ID, Path: q.Path, Old: q.Old, New: q.New, Fixed: q.Fixed, sent: q.New, version: q.Version, base: q.Base, conflict: q.Conflict}
	b.mu.Lock()
	if i := slices.IndexFunc(b.queue, func(other *proposal) bool { return other.Path == p.Path }); i >= 0 {
		before := b.queue[i]
		b.queue = slices.Delete(b.queue, i, i+1)
		before.remove(b.o.Dir)
		defer b.send(closing(b.client, before))
	}
	for n := 1; p.Name == ""; n++ {
		name := filepath.Base(q.Path) + " (proposal)"
		if n > 1 {
			name = fmt.Sprintf("%s (proposal %d)", filepath.Base(q.Path), n)
		}
		if !slices.ContainsFunc(b.queue, func(other *proposal) bool { return other.Name == name }) {
			p.Name = name
		}
	}
	err := p.write(b.o.Dir)
	if err == nil {
		b.queue = append(b.queue, p)
	}
	b.mu.Unlock()
	if err != nil {
		return nil, rpc.Errorf(rpc.CodeInternal, "the proposal cannot be handed to Kakoune: %v", err)
	}
	select {
	case b.came <- struct{}{}:
	default:
	}
	return obj{"opened": true}, nil
}

// closeDiff takes a proposal back, with the text that the user has by now.
func (b *bridge) closeDiff(ctx context.Context, params json.RawMessage) (any, error) {
	var q struct {
		ID string `json:"diffId"`
	}
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, err
	}
	b.taking.Lock()
	defer b.taking.Unlock()
	b.mu.Lock()
	p, _ := b.find(q.ID)
	b.mu.Unlock()
	if p != nil {
		b.takeOver(ctx, p)
		p = b.take(q.ID)
	}
	if p == nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "no diff %s", q.ID)
	}
	if p.Shown {
		b.sync(ctx, p)
	}
	content := p.text(b.o.Dir)
	b.send(closing(b.where(), p))
	p.remove(b.o.Dir)
	return obj{"content": content, "version": p.version}, nil
}

// sync waits until Kakoune has written the newest text of a proposal.
func (b *bridge) sync(ctx context.Context, p *proposal) { b.within(ctx, p, syncWithin, "pollux-sync") }

// within has Kakoune run a command in a proposal's buffer, and says whether it has done so in time.
func (b *bridge) within(ctx context.Context, p *proposal, limit time.Duration, script string) bool {
	done := p.file(b.o.Dir, "done")
	defer os.Remove(done)
	b.send("try %{ " + command("evaluate-commands -buffer "+quote(p.Name), script) + "}\n" + command("echo -to-file "+quote(done)+" --", "done"))
	for end := time.Now().Add(limit); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(done); err == nil {
			return true
		}
	}
	return false
}

// closing closes a proposal's buffer, and leads its user back.
func closing(client string, p *proposal) string {
	script := Close(p.Name, p.Path)
	if client == "" {
		return script
	}
	return in(client, script)
}

// Close has Kakoune close a proposal's buffer, by its name and file.
func Close(name, path string) string { return command("pollux-close", name, path) }

func (b *bridge) openDocument(params json.RawMessage) (any, error) {
	var q struct {
		URI       string `json:"uri"`
		Selection *struct {
			Start position `json:"start"`
		} `json:"selection"`
	}
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, err
	}
	path, ok := paths.OfURI(q.URI)
	if !ok {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "%q is no file", q.URI)
	}
	script := "edit -existing " + quote(path)
	if q.Selection != nil {
		script += fmt.Sprintf(" %d %d", q.Selection.Start.Line+1, q.Selection.Start.column(path))
	}
	b.send(in(b.where(), script+"\npollux-context")) // Kakoune calls no hook for it
	return obj{"opened": true}, nil
}

// changed shows how many agents are connected, and what waits.
func (b *bridge) changed(params json.RawMessage) error {
	var p struct {
		Agents  string `json:"agents"`
		Pending int    `json:"pendingDiffs"`
		Context string `json:"context"`
		Untold  string `json:"untold"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return err
	}
	status := p.Agents
	if status == "" {
		status = "no agent"
	}
	if p.Pending > 0 {
		status += fmt.Sprintf(" ±%d", p.Pending)
	}
	if p.Untold != "" {
		status += " not told: " + p.Untold
	}
	if p.Context == "paused" {
		status += " paused"
	}
	b.mu.Lock()
	b.status, b.paused = status, p.Context == "paused"
	begun := b.begun
	b.mu.Unlock()
	if begun {
		b.showStatus()
	}
	return nil
}

// showStatus sets what the mode line says.
func (b *bridge) showStatus() {
	b.sending.Lock()
	defer b.sending.Unlock()
	b.mu.Lock()
	status := b.status
	b.mu.Unlock()
	b.run(command("set-option global pollux_status", status))
}

// asked shows a question, which :pollux-answer answers.
func (b *bridge) asked(ctx context.Context, params json.RawMessage) (any, error) {
	var p struct {
		Title   string   `json:"title"`
		Message string   `json:"message"`
		Choices []string `json:"choices"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	q := &question{choices: p.Choices, answer: make(chan string, 1)}
	lines := p.Message
	for i, c := range p.Choices {
		lines += fmt.Sprintf("\n%d: %s", i+1, c)
	}
	b.mu.Lock()
	b.ask = q
	b.mu.Unlock()
	b.send(in(b.where(), command("info -title", p.Title, lines+"\n:pollux-answer NUMBER, or none of them: :pollux-answer")))
	select {
	case choice := <-q.answer:
		if choice == "" {
			return obj{"choice": nil}, nil
		}
		return obj{"choice": choice}, nil
	case <-ctx.Done():
		b.mu.Lock()
		if b.ask == q {
			b.ask = nil
		}
		b.mu.Unlock()
		return nil, ctx.Err()
	}
}

// offer shows the oldest proposal when none is on show and the user pauses. It wakes only while one waits.
func (b *bridge) offer(ctx context.Context) {
	for {
		b.mu.Lock()
		var tick <-chan time.Time
		if b.waiting() != nil {
			tick = time.After(offerEvery)
		}
		b.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-b.came:
			continue
		case <-tick:
		}
		b.mu.Lock()
		var next *proposal
		if time.Since(b.touched) >= idle && !slices.ContainsFunc(b.queue, func(p *proposal) bool { return p.Shown }) {
			next = b.waiting()
		}
		if next != nil && time.Since(next.offered) < offerAgain {
			next = nil
		} else if next != nil {
			next.offered = time.Now()
		}
		client := b.client
		b.mu.Unlock()
		if next != nil && client != "" {
			b.send(in(client, command("pollux-offer", next.ID, next.Name, next.Path)))
		}
	}
}
