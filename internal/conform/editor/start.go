package editor

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/words"
)

// A hello is what initialize says.
type hello struct {
	params     map[string]json.RawMessage
	problem    string // why it is no initialize
	answered   bool   // guarded by link.mu
	ready      bool   // initialized has come
	Version    int
	Context    bool
	OpenDiff   bool
	Env        bool
	IDE        struct{ Name, DisplayName string }
	IDEPid     *int
	Trusted    *bool
	OpenDiffs  []shownDiff
	unreadable error
}

// A shownDiff is one that a plugin still shows when it starts pollux again.
type shownDiff struct {
	DiffID, FilePath string
	Content          *string
}

func (l *link) greetedYet() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hello.answered
}

// greeted takes initialize and answers it, a moment later: what comes before the answer is too early.
func (l *link) greeted(within time.Duration) error {
	m, err := l.wait(0, within, "message; the first is initialize", func(message) bool { return true })
	if err != nil {
		return err
	}
	l.hello.read(m)
	l.p.pause(silence)
	l.mu.Lock()
	l.hello.answered = true
	l.mu.Unlock()
	if l.hello.problem != "" && m.Method != "initialize" {
		return fmt.Errorf("the plugin's first message is no initialize: %s", l.hello.problem)
	}
	err = l.send(map[string]any{"id": m.ID, "result": map[string]any{
		"capabilities": map[string]any{
			"positionEncoding": "utf-16",
			"textDocumentSync": map[string]any{"openClose": true, "change": 0, "save": true},
			"experimental": map[string]any{"pollux": map[string]any{
				"version": 2, "throttleMs": 50, "maxSelection": 16896, "env": map[string]string{variable: "as it was set", "POLLUX_CONFORM_GOES": "x"}, "later": []int{1},
			}},
		},
		"serverInfo": map[string]string{"name": "pollux conform", "version": "1"},
	}})
	if err != nil {
		return err
	}
	_, err = l.wait(0, within, "initialized", func(m message) bool { return m.Method == "initialized" })
	l.hello.ready = err == nil
	return nil
}

// read reads initialize; the announcement is in one of two places, or in both together.
func (h *hello) read(m message) {
	var in struct {
		InitializationOptions struct{ Pollux json.RawMessage }
		Capabilities          struct {
			Experimental struct{ Pollux json.RawMessage }
		}
	}
	if m.Method != "initialize" || len(m.ID) == 0 {
		h.problem = fmt.Sprintf("the first message is %s, and initialize is a request", named(m))
		return
	}
	if err := json.Unmarshal(m.Params, &h.params); err != nil {
		h.problem = err.Error()
		return
	}
	h.unreadable = json.Unmarshal(m.Params, &in)
	for _, part := range []json.RawMessage{in.Capabilities.Experimental.Pollux, in.InitializationOptions.Pollux} {
		if len(part) > 0 {
			h.unreadable = errors.Join(h.unreadable, json.Unmarshal(part, h))
		}
	}
}

func startChecks() []check {
	return []check{
		{"EP-1/initialize", "the plugin starts pollux lsp, and its first message is the request initialize", (*play).initializes},
		{"EP-1/announcement", "it announces version 1 or 2, what it does, and its name for the agents", (*play).announces},
		{"EP-1/process", "processId is the editor's: pollux ends with it", (*play).namesProcess},
		{"EP-1/folders", "workspaceFolders are file URIs, and the folder of the editor is one of them", (*play).namesFolders},
		{"EP-1/initialized", "initialized follows the answer", (*play).initialized},
		{"EP-1/waits for the answer", "nothing comes before initialize is answered", func(p *play) error { return p.noFaults("EP-1/waits for the answer") }},
	}
}

func (p *play) initializes() error {
	if p.hi.problem != "" {
		return errors.New(p.hi.problem)
	}
	return nil
}

func (p *play) announces() error {
	switch h := p.hi; {
	case h.unreadable != nil:
		return h.unreadable
	case h.Version != 1 && h.Version != 2:
		return fmt.Errorf("the version is %d; the announcement stands in initializationOptions.pollux or capabilities.experimental.pollux", h.Version)
	case h.IDE.Name == "" || h.IDE.DisplayName == "":
		return errors.New("ide lacks name or displayName")
	case !h.Context && !h.OpenDiff:
		return errors.New("neither context nor openDiff: it does nothing")
	case len(h.OpenDiffs) > 0:
		return errors.New("openDiffs names diffs, and there was none")
	case h.IDEPid != nil && !proc.Alive(*h.IDEPid):
		return fmt.Errorf("idePid %d is no process", *h.IDEPid)
	}
	return nil
}

func (p *play) namesProcess() error {
	var pid int
	if err := json.Unmarshal(p.hi.params["processId"], &pid); err != nil {
		return fmt.Errorf("processId is %s", quoted(p.hi.params["processId"]))
	}
	if !proc.Alive(pid) {
		return fmt.Errorf("%d is no process", pid)
	}
	return nil
}

func (p *play) namesFolders() error {
	var folders []struct{ URI string }
	if err := json.Unmarshal(p.hi.params["workspaceFolders"], &folders); err != nil {
		return fmt.Errorf("workspaceFolders: %w", err)
	}
	found := false
	for _, f := range folders {
		path, err := pathOf(f.URI)
		if err != nil {
			return err
		}
		found = found || filepath.Clean(path) == p.dir
	}
	if !found {
		return fmt.Errorf("%s is not among %s", p.dir, quoted(folders))
	}
	return nil
}

func (p *play) initialized() error {
	if !p.link.hello.ready {
		return errors.New("it has not come")
	}
	return nil
}

// noFaults reports what was wrong with single messages.
func (p *play) noFaults(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if list := p.faults[name]; len(list) > 0 {
		return errors.New(words.Shorten(strings.Join(list, "\n"), 600))
	}
	return nil
}

func faultChecks() []check {
	return []check{
		{everyMessage, "every message is JSON-RPC 2.0, and one that the protocol has, in its form", func(p *play) error { return p.noFaults(everyMessage) }},
		{everyContext, "every context has its form: 0-based UTF-16 positions in the file, percent-encoded URIs, the selected text; and none equals the one before", func(p *play) error { return p.noFaults(everyContext) }},
		{everyDecision, "every edit and decision has its form, is of an open diff, and comes once", func(p *play) error { return p.noFaults(everyDecision) }},
	}
}
