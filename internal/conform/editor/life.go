package editor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/rpc"
)

// variable is one that the editor's terminals must have.
const variable = "POLLUX_CONFORM_SET"

func otherChecks() []check {
	return []check{
		{"EP-6/environment", "the editor's terminals have the variables of initialize and didChangeEnv, and not those that are unset", (*play).setsEnv},
		{"EP-6/status", "status and messages for the user are taken", (*play).takesStatus},
		{"EP-6/question taken back", "a question that is taken back leaves nothing behind", (*play).cancelsQuestion},
		{"EP-6/question", "a question that the user leaves is answered with null", (*play).answersNull},
		{"EP-6/save", "saveDocument of a file without unsaved changes is answered with saved: true", (*play).saves},
	}
}

func (p *play) setsEnv() error {
	if !p.hi.Env {
		return skipError("the plugin does not announce env")
	}
	if err := p.can("variable"); err != nil {
		return err
	}
	if p.hi.Context {
		if _, err := p.active(p.fresh("env"), "x\n"); err != nil {
			return err
		}
	}
	if err := p.variableIs(variable, "as it was set"); err != nil {
		return err
	}
	err := p.link.notify("pollux/didChangeEnv", map[string]any{"set": map[string]string{variable: "anew"}, "unset": []string{"POLLUX_CONFORM_GOES"}})
	if err != nil {
		return err
	}
	if err := p.link.lives(); err != nil {
		return err
	}
	if err := p.variableIs(variable, "anew"); err != nil {
		return err
	}
	return p.variableIs("POLLUX_CONFORM_GOES", "")
}

func (p *play) variableIs(name, want string) error {
	path := filepath.Join(p.dir, p.fresh("variable"))
	if err := p.press("variable", "{name}", name, "{path}", path); err != nil {
		return err
	}
	var data []byte
	var err error
	for end := time.Now().Add(p.o.Wait); time.Now().Before(end) && p.ctx.Err() == nil; p.pause(silence / 20) {
		if data, err = os.ReadFile(path); err == nil && strings.HasSuffix(string(data), "\n") {
			break
		}
	}
	if got := strings.TrimRight(string(data), "\r\n"); err != nil || got != want {
		return errors.Join(fmt.Errorf("in a shell of the editor's %s is %q, not %q", name, got, want), err)
	}
	return nil
}

func (p *play) takesStatus() error {
	for method, params := range map[string]any{
		"pollux/didChangeStatus": map[string]any{"sessions": []any{}, "pendingDiffs": 0, "context": "on", "agents": "", "untold": "", "sharing": "nobody looks"},
		"window/showMessage":     map[string]any{"type": 3, "message": "conform says hello"},
		"pollux/filesChanged":    map[string]any{"uris": []string{uriOf(filepath.Join(p.dir, "not there"))}},
	} {
		if err := p.link.notify(method, params); err != nil {
			return err
		}
		if err := p.link.lives(); err != nil {
			return fmt.Errorf("after %s: %w", method, err)
		}
	}
	return nil
}

// ask asks the user, and returns the request's id.
func (p *play) ask() (id int, err error) {
	id = p.link.id()
	return id, p.link.send(map[string]any{"id": id, "method": "pollux/ask",
		"params": map[string]any{"title": "conform", "message": "Is this a question?", "choices": []string{"Yes", "No"}}})
}

func (p *play) cancelsQuestion() error {
	if err := p.can("cancel"); err != nil {
		return err // a menu may stay until somebody leaves it
	}
	mark := p.link.mark()
	id, err := p.ask()
	if err != nil {
		return err
	}
	p.pause(silence)
	if err := p.link.notify("$/cancelRequest", map[string]any{"id": id}); err != nil {
		return err
	}
	p.pause(silence)
	if err := p.press("cancel"); err != nil {
		return err
	}
	if err := p.link.lives(); err != nil {
		return err
	}
	p.pause(silence)
	for _, m := range p.link.since(mark) {
		if m.Method == "" && string(m.ID) == fmt.Sprint(id) && m.Error == nil && m.Result != nil && !alike(string(*m.Result), `{"choice":null}`) {
			return fmt.Errorf("nobody has answered, and it says %s", quoted(*m.Result))
		}
	}
	return nil
}

func (p *play) answersNull() error {
	if err := p.can("cancel"); err != nil {
		return err
	}
	mark := p.link.mark()
	id, err := p.ask()
	if err != nil {
		return err
	}
	// The question comes when the user pauses; a key before it would not be for the question.
	answered := func(m message) bool { return m.Method == "" && string(m.ID) == fmt.Sprint(id) }
	for end := time.Now().Add(p.o.Wait); time.Now().Before(end) && p.ctx.Err() == nil; {
		if _, err = p.link.wait(mark, 5*silence, "answer to the question", answered); err == nil {
			break
		}
		if err := p.press("cancel"); err != nil {
			return err
		}
	}
	raw, err := p.link.answerTo(fmt.Sprint(id), mark, "pollux/ask")
	switch {
	case code(err) == rpc.CodeNoMethod:
		return skipError("the plugin does not know pollux/ask")
	case err != nil:
		return err
	case !alike(string(raw), `{"choice":null}`):
		return fmt.Errorf("it answers %s", quoted(raw))
	}
	return nil
}

func (p *play) saves() error {
	path, err := p.file(p.fresh("saved"), "as it is\n")
	if err != nil {
		return err
	}
	if p.hi.Context {
		if _, err := p.show(path, 0, 0); err != nil {
			return err
		}
	}
	raw, err := p.link.call("pollux/saveDocument", map[string]any{"uri": uriOf(path)})
	var v struct{ Saved *bool }
	switch {
	case code(err) == rpc.CodeNoMethod:
		return skipError("the plugin does not know saveDocument: saving is left to the user")
	case err != nil:
		return err
	case json.Unmarshal(raw, &v) != nil || v.Saved == nil || !*v.Saved:
		return fmt.Errorf("it answers %s", quoted(raw))
	}
	return p.holds(path, "as it is\n")
}

func lifeChecks() []check {
	return []check{
		{"EP-7/starts again", "when pollux dies the plugin starts it again, and announces the diffs that it shows with their texts", (*play).startsAgain},
		{"EP-7/context again", "a pollux that has come back hears the context", (*play).contextAgain},
	}
}

// dies ends the plugin's pollux as a crash does, and waits for the next one.
func (p *play) dies() error {
	p.link.conn.Close()
	if p.can("right", "left") == nil { // some plugins start it at the user's next key
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			tick := time.NewTicker(2 * time.Second)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					_ = p.press("right")
					_ = p.press("left")
				case <-stop:
					return
				}
			}
		}()
	}
	return p.again()
}

func (p *play) startsAgain() error {
	want := "proposed\n"
	var id, path string
	var err error
	if p.can("edit") == nil && p.hi.Context {
		if id, path, err = p.proposed("crash", want); err == nil {
			err, want = p.edited(id), "edited "+want
		}
	} else if path, err = p.file(p.fresh("crash"), "old\n"); err == nil {
		id, err = p.open(path, "old\n", want, nil)
	}
	var none skipError
	if err != nil && !errors.As(err, &none) {
		return err
	}
	if err := p.dies(); err != nil {
		return err
	}
	if id == "" {
		return nil // it shows no diffs
	}
	for _, d := range p.link.hello.OpenDiffs {
		switch {
		case d.DiffID != id:
		case d.Content == nil || *d.Content != want:
			return fmt.Errorf("openDiffs has the content %s, not %q", quoted(d.Content), want)
		case d.FilePath != path:
			return fmt.Errorf("openDiffs has the file %q, not %q", d.FilePath, path)
		default:
			p.mu.Lock()
			p.diffs[id].version = 0 // edits count anew
			p.mu.Unlock()
			return p.closes(id, want)
		}
	}
	return fmt.Errorf("openDiffs is %s, without the diff %q that was open", quoted(p.link.hello.OpenDiffs), id)
}

func (p *play) contextAgain() error {
	if err := p.contexts(); err != nil {
		return err
	}
	path, err := p.active(p.fresh("again"), "x\n")
	if err != nil {
		return err
	}
	if err := p.dies(); err != nil {
		return err
	}
	_, err = p.look(0, filepath.Base(path), func(c lookedAt) bool { return c.path() == path })
	return err
}

func endChecks() []check {
	return []check{{"EP-8/end", "the editor ends in time though pollux does not answer shutdown, the plugin's pollux ends with it, and none comes after", (*play).ends}}
}

func (p *play) ends() error {
	p.mu.Lock()
	p.mute = true
	p.mu.Unlock()
	if p.can("quit") == nil {
		if err := p.press("quit"); err != nil {
			return err
		}
	} else {
		p.ed.hangUp()
	}
	p.ed.over = true
	timer := time.NewTimer(p.o.Wait)
	defer timer.Stop()
	select {
	case <-p.ed.done:
	case <-timer.C:
		return fmt.Errorf("after %v the editor still runs; its screen ends with %q", p.o.Wait, p.ed.screen())
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
	if _, err := p.link.wait(p.link.mark(), p.o.Wait, "end of the plugin's pollux", func(message) bool { return false }); !p.link.gone() {
		return err
	}
	select {
	case conn := <-p.ed.conns:
		conn.Close()
		return errors.New("another pollux is started when the editor has ended")
	default:
		return nil
	}
}
