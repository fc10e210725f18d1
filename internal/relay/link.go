package relay

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/client"
)

// hold keeps a link to an editor, one after the other, until ctx ends.
func (r *relay) hold(ctx context.Context) {
	select {
	case <-r.ready:
	case <-ctx.Done():
	}
	for ctx.Err() == nil {
		link := r.find(ctx)
		if link == nil {
			if !pause(ctx, lookEvery) {
				return
			}
			continue
		}
		r.set(link)
		r.reopen(ctx, link)
		for broken := (*client.Link)(nil); broken != link; { // ignore a late report about an earlier link
			select {
			case broken = <-r.broke:
			case <-ctx.Done():
				broken = link
			}
		}
		r.set(nil)
		leave(link)
		r.forget(ctx)
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// leave deletes the session where it still can: a diff of it would stand in the editor twice.
func leave(link *client.Link) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	link.Leave(ctx)
}

func (r *relay) set(link *client.Link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.link = link
	close(r.changed)
	r.changed = make(chan struct{})
}

// forget tells the CLI that no diff is open any more, as far as anybody knows.
func (r *relay) forget(ctx context.Context) {
	r.mu.Lock()
	told := r.hasContext
	r.hasContext = false
	r.mu.Unlock()
	if told && ctx.Err() == nil {
		r.notify(wire.NotifyContext, json.RawMessage(`{"workspaceState":{"openFiles":[]}}`))
	}
}

// find connects to the first editor, in the CLI's own order, that answers. Unlike the
// CLI, it passes over files whose companion has gone.
func (r *relay) find(ctx context.Context) *client.Link {
	if r.o.Ways != nil {
		for _, way := range r.o.Ways() {
			if link := r.dial(ctx, way); link != nil {
				return link
			}
		}
		return nil
	}
	choice := client.Choose(r.world)
	for i, cand := range choice.Candidates {
		way, ok := choice.Way(i, r.world)
		if !ok || cand.Name == discovery.RelayFile {
			continue
		}
		hosts := []string{"127.0.0.1"}
		if way.Host != hosts[0] {
			hosts = append(hosts, way.Host) // an editor outside the container
		}
		for _, way.Host = range hosts {
			if link := r.dial(ctx, way); link != nil {
				return link
			}
		}
	}
	return nil
}

func (r *relay) dial(ctx context.Context, way client.Way) *client.Link {
	limited, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	made := make(chan *client.Link, 1)
	link, err := client.Dial(limited, way, client.LinkOptions{
		Notified: r.notified,
		Broken: func(err error) {
			r.o.Log.Info("the editor has gone", "way", way.String(), "err", err)
			l := <-made
			made <- l
			select {
			case r.broke <- l:
			default: // the log has had this often enough
			}
		},
	})
	made <- link
	if err != nil {
		r.o.Log.Debug("no editor", "way", way.String(), "err", err)
		return nil
	}
	r.o.Log.Info("an editor", "way", way.String())
	return link
}

// reopen shows the diffs that the CLI still waits for in a new editor.
func (r *relay) reopen(ctx context.Context, link *client.Link) {
	r.mu.Lock()
	open := slices.Clone(r.open)
	r.mu.Unlock()
	for _, d := range open {
		limited, cancel := context.WithTimeout(ctx, dialWithin)
		_, err := link.Call(limited, jsonrpc.MethodToolsCall, callParams{wire.ToolOpenDiff, map[string]any{"filePath": d.path, "newContent": d.content}})
		cancel()
		if err != nil {
			r.o.Log.Warn("an open diff could not be shown again", "err", err)
		}
	}
}

// notified passes a notification on. A diff with an outcome counts as closed.
func (r *relay) notified(method string, params json.RawMessage) {
	switch method {
	case wire.NotifyContext:
		r.mu.Lock()
		r.hasContext = true
		r.mu.Unlock()
	case wire.NotifyAccepted, wire.NotifyRejected, wire.NotifyClosed:
		var p struct {
			FilePath string `json:"filePath"`
		}
		if json.Unmarshal(params, &p) == nil && !r.close(p.FilePath) && method != wire.NotifyClosed {
			return // the CLI does not wait for this diff
		}
	}
	r.notify(method, params)
}

// close says that a diff is no longer open, and whether it was.
func (r *relay) close(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.open)
	r.open = slices.DeleteFunc(r.open, func(d diff) bool { return d.path == path })
	return len(r.open) < before
}

type callParams struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

// A result is the result of a tool.
type result struct {
	Content []block `json:"content"`
	IsError bool    `json:"isError,omitempty"`
}

type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func failed(text string) result { return result{[]block{{"text", text}}, true} }

// noEditor is the reason with which the CLI asks in the terminal.
const noEditor = "No editor serves this folder at the moment; decide in the terminal."

// call runs one tool call: in the editor, or without one as well as possible.
func (r *relay) call(ctx context.Context, params json.RawMessage) any {
	var c struct {
		Name      string `json:"name"`
		Arguments struct {
			FilePath   string  `json:"filePath"`
			NewContent *string `json:"newContent"`
		} `json:"arguments"`
	}
	if err := json.Unmarshal(params, &c); err != nil {
		return failed("the arguments cannot be read: " + err.Error())
	}
	path := c.Arguments.FilePath
	switch c.Name {
	case wire.ToolOpenDiff:
		if c.Arguments.NewContent == nil {
			return failed("newContent is missing")
		}
		return r.openDiff(ctx, diff{path, *c.Arguments.NewContent}, params)
	case wire.ToolCloseDiff:
		return r.closeDiff(ctx, path, params)
	}
	return failed("there is no tool " + c.Name)
}

func (r *relay) openDiff(ctx context.Context, d diff, params json.RawMessage) any {
	link := r.editor(ctx, showWithin)
	if link == nil {
		return failed(noEditor)
	}
	r.close(d.path)
	r.mu.Lock()
	r.open = append(r.open, d) // before the call: the outcome may come before the answer
	r.mu.Unlock()
	data, err := r.forward(ctx, link, params)
	if err == nil {
		var res result
		if json.Unmarshal(data, &res) == nil && res.IsError {
			r.close(d.path)
		}
		return data
	}
	var remote *client.RemoteError
	if errors.As(err, &remote) || ctx.Err() != nil {
		r.close(d.path)
		return failed(err.Error())
	}
	// The editor went while it was asked. The next one opens the diff, if it comes soon.
	if next := r.other(ctx, link, 2*showWithin); next != nil {
		return result{Content: []block{}}
	}
	r.close(d.path)
	return failed(noEditor)
}

// closeDiff answers without an editor, from what is known: the text as it was proposed.
func (r *relay) closeDiff(ctx context.Context, path string, params json.RawMessage) any {
	r.mu.Lock()
	link, content, known := r.link, "", false
	for _, d := range r.open {
		if d.path == path {
			content, known = d.content, true
		}
	}
	r.mu.Unlock()
	if link != nil {
		data, err := r.forward(ctx, link, params)
		if err == nil {
			r.close(path)
			return data
		}
	}
	if !known {
		return failed("no such diff is open")
	}
	r.close(path)
	text, _ := encode(struct {
		FinalContent string `json:"finalContent"`
	}{content})
	return result{Content: []block{{"text", string(text[:len(text)-1])}}}
}

func (r *relay) forward(ctx context.Context, link *client.Link, params json.RawMessage) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	return link.Call(ctx, jsonrpc.MethodToolsCall, params)
}

// editor returns the link, and waits a while for one.
func (r *relay) editor(ctx context.Context, within time.Duration) *client.Link {
	return r.other(ctx, nil, within)
}

// other waits for a link that is not old.
func (r *relay) other(ctx context.Context, old *client.Link, within time.Duration) *client.Link {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		r.mu.Lock()
		link, changed := r.link, r.changed
		r.mu.Unlock()
		if link != nil && link != old {
			return link
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}
