package kakoune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// takeWithin is for Kakoune to take a newer text over. It is busy while it waits for the answer to an event.
const takeWithin = 2 * askWithin

// An update is a newer text of a proposal, or of its file.
type update struct {
	ID       string    `json:"diffId"`
	Old      *string   `json:"oldText"` // nil where the file has not changed
	Base     int       `json:"baseVersion"`
	Version  int       `json:"version"`
	Content  string    `json:"content"`
	Conflict *conflict `json:"conflict"`
	Edit     int       `json:"edit"` // the last edit of the user's that is in it
}

// changes notes an update. keepUp brings it to Kakoune.
func (b *bridge) changes(params json.RawMessage, base bool) error {
	var u update
	if err := json.Unmarshal(params, &u); err != nil {
		return err
	}
	if !base {
		u.Old = nil
	}
	b.mu.Lock()
	if p, _ := b.find(u.ID); p != nil {
		if before := p.next; before != nil && u.Old == nil {
			u.Old, u.Base = before.Old, before.Base
		}
		p.next = &u
	}
	b.mu.Unlock()
	select {
	case b.newer <- struct{}{}:
	default:
	}
	return nil
}

// keepUp brings updates to Kakoune until the bridge ends.
func (b *bridge) keepUp(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.newer:
		}
		b.mu.Lock()
		all := append([]*proposal(nil), b.queue...)
		b.mu.Unlock()
		for _, p := range all {
			b.taking.Lock()
			b.takeOver(ctx, p)
			b.taking.Unlock()
		}
	}
}

// takeOver takes a proposal's update over, unless the user has edited what it was made from: then another update follows. The caller holds
// b.taking.
func (b *bridge) takeOver(ctx context.Context, p *proposal) {
	b.mu.Lock()
	u, shown, sent := p.next, p.Shown, p.sent
	p.next = nil
	over := u == nil || u.Edit < p.edits
	b.mu.Unlock()
	if over {
		return
	}
	if shown {
		err := errors.Join(safefile.Write(p.file(b.o.Dir, "sent"), []byte(whole(sent)), nil), safefile.Write(p.file(b.o.Dir, "next"), []byte(whole(u.Content)), nil))
		if err == nil && !b.within(ctx, p, takeWithin, "pollux-update") {
			err = errors.New("Kakoune does not answer")
		}
		if err != nil {
			b.o.Log.Warn("a newer text does not reach Kakoune", "file", p.Path, "err", err)
			return
		}
		if data, _, err := safefile.ReadRegular(p.file(b.o.Dir, "text"), maxText); err != nil || string(data) != whole(u.Content) {
			b.report(p)
			return
		}
	}
	b.mu.Lock()
	p.New, p.sent, p.version, p.conflict = u.Content, u.Content, u.Version, u.Conflict
	if u.Old != nil {
		p.Old, p.base = *u.Old, u.Base
	}
	err := errors.Join(p.save(b.o.Dir), p.writeOld(b.o.Dir))
	if !shown {
		err = errors.Join(err, safefile.Write(p.file(b.o.Dir, "text"), []byte(whole(p.New)), nil))
	}
	b.mu.Unlock()
	if err != nil {
		b.o.Log.Warn("a crash would lose something", "err", err)
	}
	if shown {
		b.send("try %{ " + command("evaluate-commands -buffer "+quote(p.Name), "pollux-mark") + "}\n" + in(b.where(), b.news(p)))
	}
}

// news tells the user what has become of a proposal on show.
func (b *bridge) news(p *proposal) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := filepath.Base(p.Path)
	if p.conflict == nil {
		return say("%s: the proposal or its file was changed elsewhere; this is the newest", name)
	}
	lines := ""
	for _, at := range p.conflict.Places {
		lines += fmt.Sprintf("%d: %s\n", at.Start+1, at.Text)
	}
	return say("%s: %s; :pollux-keep keeps the proposal, :pollux-take takes the file's lines", name, p.conflict.Reason) +
		command("info -title", "the file's lines", lines)
}

// written has Kakoune show what others have written, where there are no unsaved changes.
func (b *bridge) written(params json.RawMessage) error {
	var q struct {
		URIs []string `json:"uris"`
	}
	if err := json.Unmarshal(params, &q); err != nil {
		return err
	}
	script := ""
	for _, uri := range q.URIs {
		path, ok := paths.OfURI(uri)
		if _, err := os.Stat(path); ok && err == nil {
			script += "try %{ " + command("evaluate-commands -buffer "+quote(path), "pollux-reload") + "}\n"
		}
	}
	if script != "" {
		b.send(script)
	}
	return nil
}
