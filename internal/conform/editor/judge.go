package editor

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// The checks that report the faults of single messages.
const (
	everyMessage  = "EP-2/every message"
	everyContext  = "EP-3/every context"
	everyDecision = "EP-4/every edit and decision"
)

// A place is a position in a text: lines from 0, and UTF-16 units.
type place struct{ Line, Character *int }

func (p place) before(q place) bool {
	return *p.Line < *q.Line || *p.Line == *q.Line && *p.Character < *q.Character
}

func (p place) String() string {
	if p.Line == nil || p.Character == nil {
		return "nowhere"
	}
	return fmt.Sprintf("%d:%d", *p.Line, *p.Character)
}

// A context is the params of pollux/didChangeContext.
type lookedAt struct {
	TextDocument *struct{ URI string }
	Position     *place
	Selection    *struct {
		Start, End place
		Text       *string
	}
	OpenDocuments []string
}

// path returns the file that has the focus, "" for none.
func (c lookedAt) path() string {
	if c.TextDocument == nil {
		return ""
	}
	path, _ := pathOf(c.TextDocument.URI)
	return path
}

// pathOf decodes a file URI strictly.
func pathOf(uri string) (string, error) {
	rest, ok := strings.CutPrefix(uri, "file:///")
	if !ok {
		return "", fmt.Errorf("%q does not begin with file:///", uri)
	}
	for _, r := range rest {
		if r <= ' ' || r > '~' || strings.ContainsRune(`"#<>?\^{|}`+"`", r) {
			return "", fmt.Errorf("the URI %q has %q, which must be percent-encoded", uri, r)
		}
	}
	path, err := url.PathUnescape(rest)
	if err != nil {
		return "", fmt.Errorf("the URI %q has a %% that begins no byte", uri)
	}
	if filepath.VolumeName(path) == "" {
		path = "/" + path
	}
	return filepath.FromSlash(path), nil
}

// judge checks the form of one message, and keeps what later ones are compared with.
func (p *play) judge(l *link, m message) {
	isRequest := len(m.ID) > 0 && string(m.ID) != "null"
	switch {
	case m.Version != "2.0":
		p.fault(everyMessage, "%s without \"jsonrpc\":\"2.0\"", named(m))
	case isRequest && m.ID[0] != '"' && m.ID[0] != '-' && (m.ID[0] < '0' || m.ID[0] > '9'):
		p.fault(everyMessage, "%s with the id %s", named(m), m.ID)
	case m.Method == "" && !isRequest && m.Error == nil:
		p.fault(everyMessage, "a message with neither method nor id")
	case m.Method == "" && m.Result != nil && m.Error != nil:
		p.fault(everyMessage, "an answer with a result and an error")
	case m.Method != "" && len(m.Params) > 0 && m.Params[0] != '{' && m.Params[0] != '[' && string(m.Params) != "null":
		p.fault(everyMessage, "%s with parameters that are neither object nor list", named(m))
	}
	if m.Method == "" {
		p.closed(string(m.ID))
	}
	var err error
	name := everyMessage
	switch m.Method {
	case "pollux/didChangeContext":
		name, err = everyContext, p.judgeContext(m.Params)
	case "pollux/didChangeDiff", "pollux/diffResolved", "pollux/resolveDiff":
		name, err = everyDecision, p.judgeDiff(m, isRequest)
	case "pollux/didChangeTrust":
		var v struct{ Trusted *bool }
		if json.Unmarshal(m.Params, &v) != nil || v.Trusted == nil {
			err = errors.New("trusted is no boolean")
		}
	case "pollux/didChangeDiagnostics":
		var v struct {
			URI         string
			Diagnostics *[]json.RawMessage
		}
		if err = json.Unmarshal(m.Params, &v); err == nil {
			_, err = pathOf(v.URI)
		}
	default:
		if strings.HasPrefix(m.Method, "pollux/") {
			err = errors.New("the protocol has no such message")
		}
	}
	if m.Method != "" && m.Method != "initialize" && !l.greetedYet() && m.Method != "exit" && !strings.HasPrefix(m.Method, "$/") {
		p.fault("EP-1/waits for the answer", "%s comes before the answer to initialize", named(m))
	}
	if err != nil {
		p.fault(name, "%s %s: %v", named(m), quoted(m.Params), err)
	}
}

func named(m message) string {
	if m.Method == "" {
		return "an answer"
	}
	return m.Method
}

func (p *play) judgeContext(params json.RawMessage) error {
	var members map[string]json.RawMessage
	var c lookedAt
	if err := json.Unmarshal(params, &members); err != nil {
		return err
	}
	if err := json.Unmarshal(params, &c); err != nil {
		return err
	}
	if _, ok := members["textDocument"]; !ok {
		return errors.New("no textDocument: null says that no file has the focus")
	}
	p.mu.Lock()
	same := p.last != "" && alike(p.last, string(params))
	p.last = string(params)
	p.mu.Unlock()
	if same {
		return errors.New("it equals the one before")
	}
	for _, uri := range c.OpenDocuments {
		if _, err := pathOf(uri); err != nil {
			return err
		}
	}
	if c.TextDocument == nil {
		return nil
	}
	path, err := pathOf(c.TextDocument.URI)
	if err != nil {
		return err
	}
	if c.OpenDocuments != nil && !hasPath(c.OpenDocuments, path) {
		return errors.New("openDocuments lacks the file that has the focus")
	}
	return p.judgePlaces(path, c)
}

// judgePlaces checks positions, in a file of conform's against its text.
func (p *play) judgePlaces(path string, c lookedAt) error {
	p.mu.Lock()
	content, known := p.files[path]
	p.mu.Unlock()
	all := []*place{c.Position}
	if s := c.Selection; s != nil {
		if s.Text == nil {
			return errors.New("a selection without text")
		}
		all = append(all, &s.Start, &s.End)
	}
	for _, at := range all {
		if at == nil {
			continue
		}
		if at.Line == nil || at.Character == nil || *at.Line < 0 || *at.Character < 0 {
			return errors.New("a position without line and character from 0")
		}
		if known && offset(content, *at) < 0 {
			return fmt.Errorf("the position %v is not in the file; lines count from 0, characters in UTF-16 units", *at)
		}
	}
	s := c.Selection
	if s == nil || !known {
		return nil
	}
	if s.End.before(s.Start) {
		return errors.New("the selection ends before it starts")
	}
	if got, want := *s.Text, content[offset(content, s.Start):max(offset(content, s.Start), offset(content, s.End))]; got != want {
		return fmt.Errorf("the selection from %v to %v is %q, not %q", s.Start, s.End, want, got)
	}
	return nil
}

// offset returns the byte of a place in a text, -1 when there is no such place. The line behind the last one is a place.
func offset(content string, at place) int {
	lines := strings.SplitAfter(content, "\n")
	if *at.Line >= len(lines) {
		return -1
	}
	n := len(strings.Join(lines[:*at.Line], ""))
	line := strings.TrimRight(lines[*at.Line], "\r\n")
	units := 0
	for i, r := range line {
		if units == *at.Character {
			return n + i
		}
		units += text.UTF16Len(string(r))
	}
	if units == *at.Character {
		return n + len(line)
	}
	return -1
}

func hasPath(uris []string, path string) bool {
	for _, uri := range uris {
		if got, err := pathOf(uri); err == nil && got == path {
			return true
		}
	}
	return false
}

// alike compares two JSON texts by value.
func alike(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// A diff is one that conform has asked for.
type diff struct {
	path    string
	open    bool
	content string // the plugin's text, as far as it has told
	version int    // of the last edit
	outcome string // "" before the decision
	decided int    // how many decisions have come
	given   string // the content of the decision
}

func (p *play) judgeDiff(m message, isRequest bool) error {
	var v struct {
		DiffID                           string
		Version, From, BaseVersion, Edit *int
		Outcome                          string
		Content                          *string
	}
	if err := json.Unmarshal(m.Params, &v); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.diffs[v.DiffID]
	if d == nil {
		return errors.New("there is no such diff")
	}
	if m.Method == "pollux/didChangeDiff" {
		switch {
		case !d.open:
			return errors.New("the diff is closed")
		case v.Version == nil || *v.Version <= d.version:
			return fmt.Errorf("version must be a number above %d", d.version)
		case v.Content == nil:
			return errors.New("no content")
		case p.hi.Version >= 2 && v.From == nil:
			return errors.New("no from, the version that was taken over last")
		}
		d.version, d.content = *v.Version, *v.Content
		return nil
	}
	return p.judgeDecision(d, m.Method == "pollux/resolveDiff", isRequest, v.Outcome, v.Content, v.Version != nil && v.BaseVersion != nil)
}

// judgeDecision checks an outcome, and keeps it; p.mu is held.
func (p *play) judgeDecision(d *diff, second, isRequest bool, outcome string, content *string, versions bool) error {
	switch {
	case second && p.hi.Version < 2:
		return errors.New("only a plugin of version 2 sends it")
	case second != isRequest:
		return errors.New("diffResolved is a notification, and resolveDiff a request")
	case second && !versions:
		return errors.New("no version and baseVersion")
	case outcome != "accepted" && outcome != "rejected" && (!second || outcome != "keep" && outcome != "take"):
		return fmt.Errorf("there is no outcome %q", outcome)
	case outcome == "accepted" && content == nil && !second:
		return errors.New("accepted without the content")
	}
	if content != nil {
		d.content = *content
	}
	if second && p.refuse {
		return nil // answer says so
	}
	d.decided++
	if !d.open || d.decided > 1 {
		return errors.New("the diff is decided or closed already")
	}
	d.outcome, d.given = outcome, d.content
	d.open = false
	return nil
}

// answer answers a request of the plugin's, as pollux would.
func (p *play) answer(l *link, m message) {
	if len(m.ID) == 0 || m.Method == "" || string(m.ID) == "null" {
		if m.Method == "exit" {
			l.end(errors.New("exit"))
		}
		return
	}
	reply := map[string]any{"id": m.ID}
	p.mu.Lock()
	refuse, mute := p.refuse, p.mute
	p.mu.Unlock()
	switch m.Method {
	case "initialize":
		return // greeted answers it
	case "shutdown":
		if mute {
			return
		}
		reply["result"] = nil
	case "pollux/resolveDiff":
		reply["result"] = map[string]any{"settled": true}
		if refuse {
			delete(reply, "result")
			reply["error"] = map[string]any{"code": codeNewer, "message": "the proposal is newer"}
		}
	case "workspace/executeCommand":
		reply["result"] = map[string]any{}
	default:
		reply["error"] = map[string]any{"code": rpc.CodeNoMethod, "message": "pollux does not know " + m.Method}
	}
	_ = l.send(reply)
}
