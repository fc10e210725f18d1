package editor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pollux-companion/pollux/internal/rpc"
)

// Error codes of the protocol.
const (
	codeEncoding = -32002
	codeTooBig   = -32003
	codeNewer    = -32004
)

func diffChecks() []check {
	all := []check{
		{"EP-4/shown", "openDiff is answered with opened: true, and closeDiff with the text; no decision follows", (*play).showsDiff},
		{"EP-4/new file", "a diff of a file that is not there yet is shown", (*play).newFile},
		{"EP-4/unknown id", "closeDiff of an id that is not open is answered with -32602", (*play).unknownDiff},
		{"EP-4/two at once", "two diffs are open at once, and each gives its own text back", (*play).twoDiffs},
		{"EP-4/same path", "a second diff for a path replaces the first", (*play).samePath},
		{"EP-4/read only", "a diff with readOnly is shown, and gives its text back", (*play).readOnly},
		{"EP-4/writes nothing", "the file stays as it is while a diff is open, and afterwards: the agent writes it", (*play).writesNothing},
		{"EP-4/newer base", "a view of version 2 takes a newer file and proposal over", (*play).newerBase},
	}
	for _, t := range texts() {
		all = append(all, check{"EP-4/exact: " + t.name, "closeDiff gives every byte back, or openDiff refuses with -32002 or -32003", func(p *play) error { return p.exact(t.text) }})
	}
	return all
}

// A sample is a text that plugins get wrong.
type sample struct{ name, text string }

func texts() []sample {
	return []sample{
		{"CRLF", "one\r\ntwo\r\n"},
		{"mixed line ends", "one\r\ntwo\nthree\r\n"},
		{"CR in a line", "one\rtwo\n"},
		{"no last newline", "one\ntwo"},
		{"CRLF, no last newline", "one\r\ntwo"},
		{"byte order mark", "\ufeffone\n"},
		{"empty", ""},
		{"blank lines", "\n\n\n"},
		{"emoji", "😀 e\u0301 \u200d👩\u200d💻 \u2028 x\n"},
		{"tabs and escapes", "\tone \x1b[1m %s \\n \x7f\n"},
		{"1 MB", strings.Repeat(strings.Repeat("0123456789ü", 7)+"\n", 1<<20/78)},
		{"long line", strings.Repeat("0123456789ü", 20_000) + "\n"},
	}
}

// propose makes a file, and opens a proposal for it.
func (p *play) propose(name, oldText, newText string, more map[string]any) (path, id string, err error) {
	if path, err = p.file(p.fresh(name), oldText); err == nil {
		id, err = p.open(path, oldText, newText, more)
	}
	return path, id, err
}

// open asks for a diff.
func (p *play) open(path, oldText, newText string, more map[string]any) (id string, err error) {
	if !p.hi.OpenDiff {
		return "", skipError("the plugin does not announce openDiff")
	}
	p.n++
	id = fmt.Sprintf("conform-%d", p.n)
	_, missing := os.Stat(path)
	params := map[string]any{"diffId": id, "filePath": path, "uri": uriOf(path), "isNewFile": missing != nil, "oldText": oldText, "newText": newText,
		"title": filepath.Base(path), "takeFocus": true, "readOnly": ""}
	if p.hi.Version >= 2 {
		params["version"], params["baseVersion"], params["conflict"], params["others"] = 1, 0, nil, 0
	}
	for k, v := range more {
		params[k] = v
	}
	p.mu.Lock()
	p.diffs[id] = &diff{path: path, open: true, content: newText}
	p.mu.Unlock()
	raw, err := p.link.call("pollux/openDiff", params)
	if err == nil {
		var v struct {
			Opened       *bool
			BufferModify json.RawMessage `json:"bufferModified"`
		}
		if json.Unmarshal(raw, &v) != nil || v.Opened == nil || !*v.Opened {
			err = fmt.Errorf("it answers openDiff with %s", quoted(raw))
		} else if s := string(v.BufferModify); s != "" && s != "true" && s != "false" {
			err = fmt.Errorf("bufferModified is %s, which is no boolean", quoted(v.BufferModify))
		}
	}
	if err != nil {
		p.mu.Lock()
		p.diffs[id].open = false
		p.mu.Unlock()
	}
	var answered *rpc.Error
	if errors.As(err, &answered) {
		err = &refusedError{answered}
	}
	return id, err
}

// takeBack has the plugin close a diff; no decision may come behind its answer.
func (p *play) takeBack(id string) (json.RawMessage, error) {
	request, mark := strconv.Itoa(p.link.id()), p.link.mark()
	p.mu.Lock()
	p.closing[request] = id
	p.mu.Unlock()
	err := p.link.send(map[string]any{"id": json.RawMessage(request), "method": "pollux/closeDiff", "params": map[string]any{"diffId": id}})
	if err != nil {
		return nil, err
	}
	return p.link.answerTo(request, mark, "pollux/closeDiff")
}

// closed notes that a diff is closed, when the answer to its closeDiff comes.
func (p *play) closed(request string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.diffs[p.closing[request]]; d != nil {
		d.open = false
	}
	delete(p.closing, request)
}

// closeDiff takes a diff back, and returns its text.
func (p *play) closeDiff(id string) (string, error) {
	raw, err := p.takeBack(id)
	if err != nil {
		return "", err
	}
	var v struct{ Content *string }
	if json.Unmarshal(raw, &v) != nil || v.Content == nil {
		return "", fmt.Errorf("it answers closeDiff with %s", quoted(raw))
	}
	return *v.Content, nil
}

// closes takes a diff back that must have a text.
func (p *play) closes(id, want string) error {
	got, err := p.closeDiff(id)
	if err == nil && got != want {
		err = fmt.Errorf("closeDiff gives %s", differ(want, got))
	}
	return err
}

// differ says where two texts part.
func differ(want, got string) string {
	i := 0
	for i < min(len(want), len(got)) && want[i] == got[i] {
		i++
	}
	from := max(0, i-10)
	return fmt.Sprintf("%d bytes, not %d; from byte %d it is %.40q, not %.40q", len(got), len(want), from, got[from:], want[from:])
}

// quiet makes sure that no decision of a diff comes.
func (p *play) quiet(id string, decisions int) error {
	p.pause(silence)
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.diffs[id]; d.decided > decisions {
		return fmt.Errorf("%d decisions have come, the last is %q", d.decided, d.outcome)
	}
	return nil
}

func (p *play) showsDiff() error {
	_, id, err := p.propose("shown", "old\n", "new\n", nil)
	if err != nil {
		return err
	}
	if err := p.closes(id, "new\n"); err != nil {
		return err
	}
	return p.quiet(id, 0)
}

func (p *play) newFile() error {
	id, err := p.open(filepath.Join(p.dir, "no folder yet", p.fresh("new")), "", "first\n", nil)
	if err != nil {
		return err
	}
	return p.closes(id, "first\n")
}

func (p *play) unknownDiff() error {
	if !p.hi.OpenDiff {
		return skipError("the plugin does not announce openDiff")
	}
	for range 2 {
		if got, err := p.closeDiff("never opened"); code(err) != rpc.CodeInvalidParams {
			return errors.Join(fmt.Errorf("closeDiff of an unknown id gives %.80q", got), err)
		}
	}
	id, err := p.open(filepath.Join(p.dir, p.fresh("twice")), "", "x\n", nil)
	if err != nil {
		return err
	}
	if err := p.closes(id, "x\n"); err != nil {
		return err
	}
	if got, err := p.closeDiff(id); code(err) != rpc.CodeInvalidParams {
		return errors.Join(fmt.Errorf("closeDiff of a closed id gives %.80q", got), err)
	}
	return nil
}

func (p *play) twoDiffs() error {
	var ids []string
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(p.dir, p.fresh(name))
		id, err := p.open(path, "", name+" proposed\n", nil)
		if err != nil {
			return fmt.Errorf("diff %d: %w", len(ids)+1, err)
		}
		ids = append(ids, id)
	}
	if err := p.closes(ids[1], "b proposed\n"); err != nil {
		return err
	}
	return p.closes(ids[0], "a proposed\n")
}

func (p *play) samePath() error {
	path, first, err := p.propose("same", "old\n", "first\n", nil)
	if err != nil {
		return err
	}
	second, err := p.open(path, "old\n", "second\n", nil)
	if err != nil {
		return fmt.Errorf("the second: %w", err)
	}
	if err := p.closes(second, "second\n"); err != nil {
		return err
	}
	p.mu.Lock()
	outcome := p.diffs[first].outcome
	p.mu.Unlock()
	if outcome == "accepted" {
		return errors.New("the first counts as accepted")
	}
	return nil
}

func (p *play) readOnly() error {
	fixed := map[string]any{"readOnly": "this agent takes no edits"}
	if p.can("edit") != nil {
		_, id, err := p.propose("fixed", "old\n", "fixed\n", fixed)
		if err != nil {
			return err
		}
		return p.closes(id, "fixed\n")
	}
	id, _, err := p.proposedAs("fixed", "fixed\n", fixed)
	if err != nil {
		return err
	}
	mark := p.link.mark()
	if err := p.press("edit", "{text}", "edited "); err != nil {
		return err
	}
	p.pause(2 * silence)
	for _, m := range p.link.since(mark) {
		if m.Method == "pollux/didChangeDiff" {
			return errors.New("it sends an edit, and the agent takes none")
		}
	}
	return p.closes(id, "fixed\n")
}

func (p *play) writesNothing() error {
	path, id, err := p.propose("still", "old\n", "new\n", nil)
	if err != nil {
		return err
	}
	if err := p.closes(id, "new\n"); err != nil {
		return err
	}
	return p.holds(path, "old\n")
}

// holds makes sure that nobody has written a file.
func (p *play) holds(path, want string) error {
	p.pause(silence)
	data, err := os.ReadFile(path)
	if err == nil && string(data) != want {
		err = fmt.Errorf("the file holds %.80q: the agent writes it, not the plugin", data)
	}
	return err
}

func (p *play) newerBase() error {
	if p.hi.Version < 2 {
		return skipError("a plugin of version 1 needs nothing for it")
	}
	_, id, err := p.propose("base", "one\ntwo\n", "ONE\ntwo\n", nil)
	if err != nil {
		return err
	}
	err = p.link.notify("pollux/didChangeBase", map[string]any{"diffId": id, "baseVersion": 1, "isNewFile": false, "oldText": "one\nTWO\n",
		"version": 2, "content": "ONE\nTWO\n", "conflict": nil, "others": 0, "edit": 0})
	if err != nil {
		return err
	}
	if err = p.link.notify("pollux/didChangeProposal", map[string]any{"diffId": id, "version": 3, "content": "ONE\nTWO!\n", "conflict": nil, "edit": 0}); err != nil {
		return err
	}
	raw, err := p.takeBack(id)
	if err != nil {
		return err
	}
	if !alike(string(raw), `{"content":"ONE\nTWO!\n","version":3}`) {
		return fmt.Errorf("after two updates closeDiff gives %s", quoted(raw))
	}
	return nil
}

func (p *play) exact(content string) error {
	_, id, err := p.propose("exact", "old\n", content, nil)
	if err != nil {
		return err
	}
	return p.closes(id, content)
}
