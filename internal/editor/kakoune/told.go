package kakoune

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// event answers one event of the plugin's with what Kakoune is to do.
func (b *bridge) event(ctx context.Context, conn net.Conn, e Event) string {
	select {
	case <-b.ready:
	case <-ctx.Done():
		return fail("it ends just now")
	}
	b.mu.Lock()
	if e.Client != "" {
		b.client = e.Client
	}
	b.touched = time.Now()
	b.mu.Unlock()
	events := map[string]func(context.Context, Event) string{
		"context": b.looks, "shown": b.shown, "next": b.next, "send": b.mention, "status": b.tellStatus, "quit": b.quits,
		"history": b.history, "rules": b.rules,
	}
	if f := events[e.Name]; f != nil {
		return f(ctx, e)
	}
	decisions := map[string]func(context.Context, Event) string{
		"edited": b.edited, "accept": b.accept, "reject": b.reject, "answer": b.answers, "pause": b.pauses, "resume": b.shares("on"), "stop": b.stops,
		"keep": b.ends("keep"), "take": b.ends("take"), "undo": b.undo, "policy": b.policy, "accept-all": b.acceptAll,
	}
	f := decisions[e.Name]
	if f == nil {
		return fail("pollux does not know %q", e.Name)
	}
	if err := b.o.MayDecide(conn); err != nil {
		return fail("%v", err)
	}
	return f(ctx, e)
}

// fail has the command of the user's fail.
func fail(format string, args ...any) string {
	return command("fail", "pollux: "+fmt.Sprintf(format, args...))
}

// looks tells where the user is, and what is open.
func (b *bridge) looks(_ context.Context, e Event) string {
	params := obj{"textDocument": nil}
	open := []string{}
	for _, name := range e.Args {
		if path, ok := e.path(name); ok {
			open = append(open, paths.URI(path))
		}
	}
	params["openDocuments"] = open
	if path, ok := e.path(e.File); ok && !strings.HasPrefix(path, b.o.Dir) {
		if at, ok := e.place(); ok {
			params["textDocument"], params["position"] = obj{"uri": paths.URI(path)}, at.cursor
			if at.chosen != "" {
				params["selection"] = obj{"start": at.start, "end": at.end, "text": at.chosen}
			}
		}
	}
	data, err := json.Marshal(params)
	b.mu.Lock()
	news := err == nil && string(data) != b.context
	b.context = string(data)
	b.mu.Unlock()
	if news {
		b.peer.Notify("pollux/didChangeContext", params)
	}
	return ""
}

// proposalOf is the proposal that an event is about; nil when it has ended.
func (b *bridge) proposalOf(e Event) *proposal {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(e.Args) == 0 {
		return nil
	}
	p, _ := b.find(e.Args[0])
	return p
}

func (b *bridge) shown(_ context.Context, e Event) string {
	p := b.proposalOf(e)
	if p == nil { // its agent took it back just now
		return command("pollux-close", e.Args[1:]...)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p.Shown = true
	if err := p.save(b.o.Dir); err != nil {
		b.o.Log.Warn("a crash would lose something", "err", err)
	}
	if p.Fixed != "" {
		return say("%s; :w accepts, :q rejects", p.Fixed)
	}
	return ""
}

// restore gives a proposal that takes no edits its text again; it returns nothing where none was made.
func (b *bridge) restore(p *proposal) string {
	data, _, err := safefile.ReadRegular(p.file(b.o.Dir, "text"), maxText)
	if p.Fixed == "" || err != nil || string(data) == whole(p.New) {
		return ""
	}
	if err := safefile.Write(p.file(b.o.Dir, "next"), []byte(whole(p.New)), nil); err != nil {
		return fail("%v", err)
	}
	return command("evaluate-commands -buffer "+quote(p.Name), "pollux-renew; pollux-mark") + say("%s", p.Fixed)
}

// next shows the oldest proposal that waits.
func (b *bridge) next(context.Context, Event) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.waiting()
	if p == nil && len(b.queue) > 0 {
		p = b.queue[0] // it is on show somewhere
	} else if p == nil {
		return fail("no proposal waits")
	}
	return command("pollux-show", p.ID, p.Name, p.Path)
}

func (b *bridge) edited(_ context.Context, e Event) string {
	p := b.proposalOf(e)
	if p == nil {
		return ""
	}
	b.report(p)
	return b.restore(p)
}

// report tells what pollux has not heard yet.
func (b *bridge) report(p *proposal) {
	now := p.text(b.o.Dir)
	b.mu.Lock()
	defer b.mu.Unlock()
	if now != p.sent {
		p.edits++
		p.sent = now
		b.peer.Notify("pollux/didChangeDiff", obj{"diffId": p.ID, "version": p.edits, "from": p.version, "content": now})
	}
}

func (b *bridge) accept(ctx context.Context, e Event) string {
	p := b.proposalOf(e)
	if p == nil {
		return fail("this proposal waits no more")
	}
	if script := b.restore(p); script != "" { // accepted is what the user sees
		return script
	}
	content := p.text(b.o.Dir)
	if strings.Trim(content, "\n") == "" && strings.Trim(p.New, "\n") != "" {
		return fail("an emptied proposal cannot be accepted: the agent would write its own text; :pollux-reject")
	}
	b.report(p)
	if err := b.resolve(ctx, p, "accepted"); err != nil {
		return fail("%v", err)
	}
	time.AfterFunc(followFor, func() {
		if ctx.Err() != nil {
			return
		}
		b.send("try %{ " + command("evaluate-commands -buffer "+quote(p.Path), "unset-option buffer autoreload") + "}\n")
	})
	return b.settled(p) + command("pollux-follow", p.Path)
}

// reject rejects a proposal. Where pollux does not answer, the next one hears of it.
func (b *bridge) reject(ctx context.Context, e Event) string {
	p := b.proposalOf(e)
	if p == nil {
		return ""
	}
	b.report(p) // the history keeps what the user made of it
	if err := b.resolve(ctx, p, "rejected"); err == nil {
		return b.settled(p)
	}
	b.mu.Lock()
	p.Rejected, p.Shown = true, false
	err := p.save(b.o.Dir)
	b.mu.Unlock()
	if err != nil {
		return fail("%v", err)
	}
	return Close(p.Name, p.Path)
}

// ends ends a conflict: the proposal stands, or the file's lines do. Neither accepts.
func (b *bridge) ends(how string) func(context.Context, Event) string {
	said := map[string]string{"keep": "the proposal stands; :w accepts it", "take": "the file's lines stand; :w accepts the rest"}[how]
	return func(ctx context.Context, e Event) string {
		p := b.proposalOf(e)
		if p == nil {
			return fail("this proposal waits no more")
		}
		b.mu.Lock()
		none := p.conflict == nil
		b.mu.Unlock()
		if none {
			return fail("nothing is in conflict here")
		}
		b.report(p)
		if err := b.resolve(ctx, p, how); err != nil {
			return fail("%v", err)
		}
		return say("%s", said)
	}
}

// resolve asks pollux to decide a proposal as it is on the screen.
func (b *bridge) resolve(ctx context.Context, p *proposal, outcome string) error {
	b.mu.Lock()
	params := obj{"diffId": p.ID, "version": p.version, "baseVersion": p.base, "outcome": outcome}
	b.mu.Unlock()
	return b.call(ctx, "pollux/resolveDiff", params, nil)
}

// settled ends a proposal that pollux has settled.
func (b *bridge) settled(p *proposal) string {
	b.take(p.ID)
	p.remove(b.o.Dir)
	return Close(p.Name, p.Path)
}

func (b *bridge) mention(ctx context.Context, e Event) string {
	path, ok := e.path(e.File)
	if !ok {
		return fail("this is no file")
	}
	arg := obj{"uri": paths.URI(path)}
	if at, ok := e.place(); ok && at.start != at.end {
		arg["first"], arg["last"] = at.lines[0], at.lines[1]
	}
	if words := strings.Join(e.Args, " "); words != "" {
		arg["words"] = words
	}
	var out struct {
		Session string `json:"session"`
	}
	if err := b.call(ctx, "workspace/executeCommand", obj{"command": "pollux.mention", "arguments": []obj{arg}}, &out); err != nil {
		return fail("%v", err)
	}
	return say("sent to %s", out.Session)
}

func (b *bridge) tellStatus(context.Context, Event) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return say("%s; %d waiting here", b.status, len(b.queue))
}

func (b *bridge) answers(_ context.Context, e Event) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := number(e.Args)
	if b.ask == nil {
		return fail("nothing is asked")
	} else if len(e.Args) == 0 {
		b.ask.answer <- ""
		b.ask = nil
		return ""
	} else if n < 1 || n > len(b.ask.choices) {
		return fail("answer with a number from 1 to %d", len(b.ask.choices))
	}
	b.ask.answer <- b.ask.choices[n-1]
	b.ask = nil
	return ""
}

// shares has agents hear what the user looks at, or not.
func (b *bridge) shares(state string) func(context.Context, Event) string {
	said := map[string]string{"paused": "paused: nothing is shared", "on": "agents see again what is open here"}[state]
	return func(ctx context.Context, _ Event) string {
		err := b.call(ctx, "workspace/executeCommand", obj{"command": "pollux.setContext", "arguments": []obj{{"state": state}}}, nil)
		if err != nil {
			return fail("%v", err)
		}
		b.mu.Lock()
		b.paused = state == "paused" // the status comes later than the user's next key may
		b.mu.Unlock()
		return say("%s", said)
	}
}

// pauses is shares("paused"), and while it is paused shares("on"): one key is enough.
func (b *bridge) pauses(ctx context.Context, e Event) string {
	b.mu.Lock()
	to := "paused"
	if b.paused {
		to = "on"
	}
	b.mu.Unlock()
	return b.shares(to)(ctx, e)
}

// stops ends pollux by the user's word, quits with Kakoune: then CLIs keep their connection, and what is open waits.
func (b *bridge) stops(ctx context.Context, _ Event) string { return b.end(ctx, false) }
func (b *bridge) quits(ctx context.Context, _ Event) string { return b.end(ctx, true) }

func (b *bridge) end(ctx context.Context, keep bool) string {
	b.mu.Lock()
	all := append([]*proposal(nil), b.queue...)
	b.over = true
	b.mu.Unlock()
	script := command("set-option global pollux_socket", "") + command("set-option global pollux_status", "")
	for _, p := range all {
		b.report(p)
		script += Close(p.Name, p.Path)
	}
	_ = b.call(ctx, "shutdown", obj{"keep": keep}, nil)
	b.peer.Notify("exit", nil)
	return script
}
