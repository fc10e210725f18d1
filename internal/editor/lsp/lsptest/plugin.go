// Package lsptest holds a plugin of version 2 as docs/spec/editor-protocol.md
// wants it, on a line that may be slow, for tests of what meets on the way.
package lsptest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/history"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// pace is the least time between two reports of edits, as in the real plugins.
const pace = 200 * time.Millisecond

// patience bounds every call.
const patience = time.Minute

type obj = map[string]any

// A View is one proposal as the user of a Plugin sees it.
type View struct {
	ID, Path string
	Text     string // the proposal as it stands in the editor
	Old      string // the file beside it
	Conflict bool

	version, base int       // of what was taken over last
	edits         int       // reports so far
	shown         string    // what was taken over last
	told          string    // the text that was reported or taken over last
	at            time.Time // of the last report
	reporting     bool      // a report is due
	deciding      bool
}

// Options configure a Plugin.
type Options struct {
	// Delay is how long the next message is on its way, in either direction. Messages stay in order.
	Delay func() time.Duration
	// Start makes the registry of the server's companion, which shows its diffs in view.
	Start func(view review.View) *review.Registry
	// Attached is called when the server has the registry, before the plugin hears anything; nil for nothing.
	Attached func()
	// Left is called at the end of an editor that leaves in order, as lsp.Companion's Leave; nil for nothing.
	Left func()
	// Keep is attach.Core's.
	Keep func(history.Entry)
	// Kept are views of an earlier companion's.
	Kept []View
	// TakesOver is called before an update replaces the text of v; nil for nothing. It must not block.
	TakesOver func(v View, text string)
}

// A Plugin is an editor's half of the protocol, with an lsp.Server at the other end. Its methods may be called from any goroutine.
//
// Goroutines: those of the line and the server, one that reads, and one for each report or decision that is under way. All end with Close.
type Plugin struct {
	o    Options
	peer *rpc.Peer
	line *line

	mu      sync.Mutex // guards what follows
	views   map[string]*View
	unheard []string
	over    bool
}

// Start connects a plugin to a server of its own, and returns when they have greeted each other.
func Start(ctx context.Context, o Options) (*Plugin, error) {
	p := &Plugin{o: o, views: map[string]*View{}}
	announced := []obj{}
	for _, v := range o.Kept {
		v.version, v.base, v.edits, v.told, v.deciding, v.reporting = 1, 0, 0, v.Text, false, false
		p.views[v.ID] = &v
		announced = append(announced, obj{"diffId": v.ID, "filePath": v.Path, "content": v.Text, "shown": v.shown, "oldText": v.Old})
	}
	var wire rpc.Wire
	p.line, wire = connect(ctx, o)
	p.peer = rpc.NewPeer(wire, rpc.PeerOptions{Handle: p.handle})
	p.line.tasks.Go(func() { _ = p.peer.Run(ctx) })
	greeting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := p.peer.Call(greeting, "initialize", obj{"processId": nil, "initializationOptions": obj{"pollux": obj{
		"version": 2, "openDiff": true, "ide": obj{"name": "fake", "displayName": "Fake"}, "openDiffs": announced,
	}}}, nil)
	return p, err
}

// Close cuts the line without a word, and returns what the user still sees.
func (p *Plugin) Close() []View {
	p.mu.Lock()
	p.over = true
	var left []View
	for _, v := range p.views {
		left = append(left, *v)
	}
	p.mu.Unlock()
	p.line.cut()
	return left
}

// Leave ends the editor in order: it says what nobody has heard of, and that it leaves. It returns what the user saw last.
func (p *Plugin) Leave() []View {
	p.mu.Lock()
	for _, v := range p.views {
		p.report(v)
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = p.peer.Call(ctx, "shutdown", obj{"keep": true}, nil) // it fails where the line is cut already
	return p.Close()
}

// Unheard are the texts of views that were taken away before the companion can have heard of the last edits: a plugin keeps them.
func (p *Plugin) Unheard() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.unheard)
}

// See is a view as it is now; false when the plugin has none of that diff.
func (p *Plugin) See(id string) (View, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.views[id]
	if !ok {
		return View{}, false
	}
	return *v, true
}

// Type makes change of a text that is on show, as keys do; false where none is.
func (p *Plugin) Type(id string, change func(text string) string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.views[id]
	if !ok {
		return false
	}
	v.Text = change(v.Text)
	if !v.reporting {
		v.reporting = true
		time.AfterFunc(pace, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			v.reporting = false
			p.report(v)
		})
	}
	return true
}

// report sends what nobody has heard of; false when there is nothing. The caller holds mu.
func (p *Plugin) report(v *View) bool {
	if p.over || p.views[v.ID] != v || v.Text == v.told {
		return false
	}
	v.edits++
	v.told, v.at = v.Text, time.Now()
	p.peer.Notify("pollux/didChangeDiff", obj{"diffId": v.ID, "version": v.edits, "from": v.version, "content": v.Text})
	return true
}

// Decide asks for an outcome, or for the end of a conflict, with what is on the screen; then is called with
// the answer's error, and may be nil. It does nothing where a decision is under way.
func (p *Plugin) Decide(id, outcome string, then func(v View, err error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.views[id]
	if !ok || v.deciding {
		return
	}
	params := obj{"diffId": id, "version": v.version, "baseVersion": v.base, "outcome": outcome}
	if outcome == "rejected" {
		p.report(v)
		delete(p.views, id)
	} else {
		v.deciding = true
		v.edits++
		v.told, v.at = v.Text, time.Now()
		params["content"], params["edit"] = v.Text, v.edits
	}
	was := *v
	p.line.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := p.peer.Call(ctx, "pollux/resolveDiff", params, nil)
		p.mu.Lock()
		v.deciding = false
		if err == nil && outcome == "accepted" && !p.over {
			delete(p.views, id)
			if v.Text != was.Text {
				p.unheard = append(p.unheard, v.Text)
			}
		}
		p.mu.Unlock()
		if then != nil {
			then(was, err)
		}
	})
}

// handle takes what the server says.
func (p *Plugin) handle(_ context.Context, method string, raw json.RawMessage) (any, error) {
	var m struct {
		ID       string          `json:"diffId"`
		Path     string          `json:"filePath"`
		Old      string          `json:"oldText"`
		New      string          `json:"newText"`
		Content  string          `json:"content"`
		Version  int             `json:"version"`
		Base     *int            `json:"baseVersion"`
		Edit     *int            `json:"edit"`
		Conflict json.RawMessage `json:"conflict"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	conflict := len(m.Conflict) > 0 && string(m.Conflict) != "null"
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.views[m.ID]
	switch method {
	case "pollux/openDiff":
		p.views[m.ID] = &View{ID: m.ID, Path: m.Path, Text: m.New, Old: m.Old, Conflict: conflict, version: m.Version, base: *m.Base, shown: m.New, told: m.New}
		return obj{"opened": true}, nil
	case "pollux/closeDiff":
		if v == nil {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "no such diff")
		}
		delete(p.views, m.ID)
		if v.Text != v.told || time.Since(v.at) < time.Second {
			p.unheard = append(p.unheard, v.Text)
		}
		return obj{"content": v.Text, "version": v.version}, nil
	case "pollux/didChangeBase", "pollux/didChangeProposal":
		if v == nil || p.report(v) || m.Edit != nil && *m.Edit < v.edits {
			return nil, nil // what was typed last comes back with a later one
		}
		if p.o.TakesOver != nil {
			p.o.TakesOver(*v, m.Content)
		}
		v.Text, v.shown, v.told, v.version, v.Conflict = m.Content, m.Content, m.Content, m.Version, conflict
		if m.Base != nil {
			v.Old, v.base = m.Old, *m.Base
		}
	}
	return nil, nil
}
