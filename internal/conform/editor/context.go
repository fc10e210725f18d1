package editor

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/rpc"
)

func contextChecks() []check {
	return []check{
		{"EP-3/open document", "pollux/openDocument shows the file, and the context says so, with the open files", (*play).opens},
		{"EP-3/cursor", "the cursor is where openDocument has put it, counted in UTF-16 units", (*play).putsCursor},
		{"EP-3/long line", "so it is in a line of 30000 characters", (*play).putsCursorFar},
		{"EP-3/names", "a name with blanks, %, # and letters of others is percent-encoded both ways", (*play).encodes},
		{"EP-3/a user opens", "a file that the user opens becomes active", (*play).userOpens},
		{"EP-3/a user moves", "the cursor that the user moves is told; a character beyond the BMP counts two", (*play).userMoves},
		{"EP-3/a user selects", "a selection is told with start, end and text, and its end as well", (*play).userSelects},
		{"EP-3/no file", "where the focus is on no file of the user's, textDocument is null", (*play).noFile},
		{"EP-3/rate", "at most one context comes in 50 ms", (*play).rate},
	}
}

func uriOf(path string) string {
	return (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(path), "/")}).String()
}

func (p *play) contexts() error {
	if !p.hi.Context {
		return skipError("the plugin does not announce context")
	}
	return nil
}

// show has the plugin open a file, or the user where the plugin does not know how.
func (p *play) show(path string, line, character int) (bool, error) {
	at := map[string]int{"line": line, "character": character}
	raw, err := p.link.call("pollux/openDocument", map[string]any{"uri": uriOf(path), "selection": map[string]any{"start": at, "end": at}, "takeFocus": true})
	switch {
	case code(err) == rpc.CodeNoMethod:
		return false, p.press("open", "{path}", path)
	case err != nil:
		return false, err
	case !alike(string(raw), `{"opened":true}`):
		return true, fmt.Errorf("it answers openDocument with %s", quoted(raw))
	}
	return true, nil
}

// look waits for a context behind a mark that fits.
func (p *play) look(mark int, what string, fits func(lookedAt) bool) (lookedAt, error) {
	var c, last lookedAt
	_, err := p.link.wait(mark, p.o.Wait, "context with "+what, func(m message) bool {
		c = lookedAt{}
		if m.Method != "pollux/didChangeContext" || json.Unmarshal(m.Params, &c) != nil {
			return false
		}
		last = c
		return fits(c)
	})
	if err != nil && last.TextDocument != nil {
		err = fmt.Errorf("%w; the last one has %s at %v", err, last.TextDocument.URI, last.Position)
	}
	return c, err
}

// active makes a file with a content the active one.
func (p *play) active(name, content string) (path string, err error) {
	if err := p.contexts(); err != nil {
		return "", err
	}
	if path, err = p.file(name, content); err != nil {
		return "", err
	}
	mark := p.link.mark()
	if _, err = p.show(path, 0, 0); err != nil {
		return "", err
	}
	_, err = p.look(mark, name, func(c lookedAt) bool { return c.path() == path })
	return path, err
}

func (p *play) fresh(kind string) string {
	p.n++
	return fmt.Sprintf("%s%d.txt", kind, p.n)
}

func (p *play) opens() error {
	if err := p.contexts(); err != nil {
		return err
	}
	path, err := p.file(p.fresh("opened"), "one\ntwo\n")
	if err != nil {
		return err
	}
	mark := p.link.mark()
	if itself, err := p.show(path, 0, 0); err != nil {
		return err
	} else if !itself {
		return skipError("the plugin does not know openDocument")
	}
	c, err := p.look(mark, filepath.Base(path), func(c lookedAt) bool { return c.path() == path })
	if err == nil && c.Position == nil {
		err = errors.New("the context has no position")
	}
	if err == nil && c.OpenDocuments == nil {
		err = errors.New("the context has no openDocuments; then only LSP's didOpen tells which files are open")
	}
	return err
}

func (p *play) putsCursor() error { return p.cursorAt("one\n😀ä😀 x\nthree\n", 1, 5) }

func (p *play) putsCursorFar() error {
	return p.cursorAt(strings.Repeat("0123456😀x", 3000)+"\n", 0, 25_000)
}

// cursorAt has the plugin put the cursor to a place of a text.
func (p *play) cursorAt(content string, line, character int) error {
	if err := p.contexts(); err != nil {
		return err
	}
	path, err := p.file(p.fresh("cursor"), content)
	if err != nil {
		return err
	}
	mark := p.link.mark()
	if itself, err := p.show(path, line, character); err != nil {
		return err
	} else if !itself {
		return skipError("the plugin does not know openDocument")
	}
	want := fmt.Sprintf("%d:%d", line, character)
	_, err = p.look(mark, "the cursor at "+want+" of "+quoted(content), func(c lookedAt) bool {
		return c.path() == path && c.Position != nil && c.Position.String() == want
	})
	return err
}

func (p *play) encodes() error {
	if err := p.contexts(); err != nil {
		return err
	}
	path, err := p.file("ein # 50%20 ü "+p.fresh("n"), "x\n")
	if err != nil {
		return err
	}
	mark := p.link.mark()
	if itself, err := p.show(path, 0, 0); err != nil {
		return err
	} else if !itself {
		return skipError("the plugin does not know openDocument, and nobody types such a name")
	}
	_, err = p.look(mark, path, func(c lookedAt) bool { return c.path() == path })
	return err
}

func (p *play) userOpens() error {
	if err := p.can("open"); err != nil {
		return err
	}
	if err := p.contexts(); err != nil {
		return err
	}
	path, err := p.file(p.fresh("user"), "one\n")
	if err != nil {
		return err
	}
	mark := p.link.mark()
	if err := p.press("open", "{path}", path); err != nil {
		return err
	}
	_, err = p.look(mark, path, func(c lookedAt) bool { return c.path() == path && c.Position != nil })
	return err
}

func (p *play) userMoves() error {
	if err := p.can("right", "left"); err != nil {
		return err
	}
	path, err := p.active(p.fresh("move"), "😀bcd\n")
	if err != nil {
		return err
	}
	for _, step := range []struct{ key, at string }{{"right", "0:2"}, {"right", "0:3"}, {"left", "0:2"}} {
		mark := p.link.mark()
		if err := p.press(step.key); err != nil {
			return err
		}
		if _, err = p.look(mark, "the cursor at "+step.at, func(c lookedAt) bool {
			return c.path() == path && c.Position != nil && c.Position.String() == step.at
		}); err != nil {
			return err
		}
	}
	return nil
}

func (p *play) userSelects() error {
	if err := p.can("select", "unselect"); err != nil {
		return err
	}
	const line = "a😀b ä c"
	path, err := p.active(p.fresh("select"), line+"\nsecond\n")
	if err != nil {
		return err
	}
	mark := p.link.mark()
	if err := p.press("select"); err != nil {
		return err
	}
	// The places and the text are compared by everyContext; a plugin that errs in all of them alike is found here.
	if _, err = p.look(mark, "a selection with 😀 in it", func(c lookedAt) bool {
		return c.path() == path && c.Selection != nil && c.Selection.Text != nil && strings.Contains(*c.Selection.Text, "a😀b") && p.judgePlaces(path, c) == nil
	}); err != nil {
		return err
	}
	mark = p.link.mark()
	if err := p.press("unselect"); err != nil {
		return err
	}
	_, err = p.look(mark, "no selection any more", func(c lookedAt) bool { return c.path() == path && c.Selection == nil })
	return err
}

func (p *play) noFile() error {
	if err := p.can("nofile"); err != nil {
		return err
	}
	if _, err := p.active(p.fresh("focus"), "x\n"); err != nil {
		return err
	}
	mark := p.link.mark()
	if err := p.press("nofile"); err != nil {
		return err
	}
	_, err := p.look(mark, "textDocument null", func(c lookedAt) bool { return c.TextDocument == nil })
	return err
}

// rate types faster than contexts may come.
func (p *play) rate() error {
	if err := p.can("right", "left"); err != nil {
		return err
	}
	path, err := p.active(p.fresh("rate"), strings.Repeat("x", 100)+"\n")
	if err != nil {
		return err
	}
	p.pause(silence)
	mark := p.link.mark()
	begun := time.Now()
	for range 60 {
		if err := p.press("right"); err != nil {
			return err
		}
		p.pause(silence / 100)
	}
	if _, err := p.look(mark, "the cursor at 0:60", func(c lookedAt) bool {
		return c.path() == path && c.Position != nil && c.Position.String() == "0:60"
	}); err != nil {
		return err
	}
	n, took := 0, 0.0
	for _, m := range p.link.since(mark) {
		if m.Method == "pollux/didChangeContext" {
			n++
			took = m.at.Sub(begun).Seconds()
		}
	}
	if most := int(took/0.05) + 3; n > most { // the first at once, and two that a busy machine has held together
		return fmt.Errorf("%d contexts have come in %.2f s, and %d are the most", n, took, most)
	}
	return nil
}
