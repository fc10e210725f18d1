package web

import (
	"context"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// A pageDiff is what one page has of a diff whose texts it has read.
type pageDiff struct {
	// seen is what the page was told last. own is the version of its last edit, from the version that this edit
	// changed; edit is the number that the page gave it.
	seen      review.Seen
	own, from int
	edit      int
	shown     review.Shown
	// recording counts the page's edits in work. Meanwhile the page gets no updates, because nobody could say whether
	// an update includes the edit. missed collects those updates.
	recording int
	missed    news
}

// News is what a page must be told of a diff; a higher value includes the lower ones.
type news int

const (
	nothing news = iota
	newText
	newBase // and the text
)

// baseInfo describes the file of a proposal (SPEC F-13).
type baseInfo struct {
	Base     int       `json:"base"` // version of the file
	Conflict *conflict `json:"conflict,omitempty"`
	Others   int       `json:"others"` // other waiting proposals for the same file
}

type conflict struct {
	Reason string  `json:"reason"`
	Places []place `json:"places"`
}

// A place is a range of lines of the proposal, 0-based, and the file's lines for it.
type place struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Text  string `json:"text"`
}

func baseOf(now review.State) baseInfo {
	b := baseInfo{Base: now.Seen.Base, Others: now.Others}
	if now.Conflict != nil {
		b.Conflict = &conflict{Reason: now.Conflict.Reason, Places: []place{}}
		for _, c := range now.Conflict.Places {
			b.Conflict.Places = append(b.Conflict.Places, place{c.Start, c.End, c.Theirs})
		}
	}
	return b
}

// heard tells the pages what happened to diffs and rules, whoever did it.
func (s *Server) heard(e review.Event) {
	switch e.Kind {
	case review.Opened:
		s.tellOpened(e.Diff)
	case review.Edited:
		s.tellText(e)
	case review.Rebased:
		s.tellBase(e.Diff)
	case review.Decided:
		s.tellDecided(e.Diff, *e.Outcome)
	case review.RulesChanged:
		s.broadcast("rules/changed", map[string]any{"rules": s.ruleList()})
	}
}

// tellOpened announces a diff that an editor shows. A diff that a rule decides is not shown (SPEC F-11).
func (s *Server) tellOpened(d *review.Diff) {
	if d.Ruled() {
		return
	}
	s.mu.Lock()
	known := s.shown[d.ID()]
	s.shown[d.ID()] = true
	s.mu.Unlock()
	if !known {
		s.broadcast("diff/opened", map[string]any{"diff": infoOf(d)})
	}
}

// tellDecided removes a diff from the pages where Close was not called, or was called before tellOpened. A page whose
// hello came while a rule was deciding may also have listed it as open.
func (s *Server) tellDecided(d *review.Diff, o review.Outcome) {
	s.mu.Lock()
	left := s.shown[d.ID()]
	s.mu.Unlock()
	if left || d.Ruled() {
		s.Close(d, o)
	}
}

type textNote struct {
	ID       string `json:"id"`
	Text     string `json:"text"`
	Version  int    `json:"version"`
	Edit     int    `json:"edit"`     // the page's last own edit that the text includes
	ClientID string `json:"clientId"` // the page that edited; "" if it was no page, or if edits were merged
}

type baseNote struct {
	ID      string `json:"id"`
	IsNew   bool   `json:"isNew"`
	Old     string `json:"old"`
	Text    string `json:"text"`
	Version int    `json:"version"`
	Edit    int    `json:"edit"`
	baseInfo
}

// tellText sends a text to the pages that show the diff, except the page that made it.
func (s *Server) tellText(e review.Event) {
	by, _ := e.By.(*page)
	author := ""
	if by != nil {
		s.mu.Lock()
		author = by.clientID
		s.mu.Unlock()
	}
	for _, p := range s.everyPage() {
		if p != by {
			p.tell(e.Diff, newText, author)
		}
	}
}

// tellBase tells the pages that the file has changed.
func (s *Server) tellBase(d *review.Diff) {
	for _, p := range s.everyPage() {
		p.tell(d, newBase, "")
	}
}

// tell sends the page the newest state of a diff that it shows. Of two concurrent calls the page takes the newer.
func (p *page) tell(d *review.Diff, what news, author string) {
	p.s.mu.Lock()
	pd := p.diffs[d.ID()]
	if pd == nil || pd.recording > 0 {
		if pd != nil {
			pd.missed = max(pd.missed, what)
		}
		p.s.mu.Unlock()
		return
	}
	edit := pd.edit // read before the text, which then includes it
	p.s.mu.Unlock()
	now := d.Now()
	p.s.mu.Lock()
	pd.seen.Text = max(pd.seen.Text, now.Seen.Text)
	pd.shown.Told(now)
	if what == newBase {
		pd.seen.Base = max(pd.seen.Base, now.Seen.Base)
	}
	p.s.mu.Unlock()
	if what == newBase {
		p.Notify("diff/base", baseNote{d.ID(), !now.Base.Exists, text.ToLF(now.Base.Text), text.ToLF(now.Text), now.Seen.Text, edit, baseOf(now)})
		return
	}
	p.Notify("diff/text", textNote{d.ID(), text.ToLF(now.Text), now.Seen.Text, edit, author})
}

// told notes what an answer tells the page.
func (p *page) told(id string, now review.State) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	pd := p.diff(id)
	pd.seen, pd.own, pd.from = now.Seen, now.Seen.Text, now.Seen.Text
	pd.shown.Edited(now.Seen.Text, now.Text)
}

// diff returns the page's state of a diff. The caller holds s.mu.
func (p *page) diff(id string) *pageDiff {
	if p.diffs[id] == nil {
		p.diffs[id] = &pageDiff{}
	}
	return p.diffs[id]
}

// seen returns which version and base of a diff the page has. version and base are what the page says it has
// processed; nil means the last that it was told. from is that version; seen.Text is the page's own edit where it
// edited from.
func (p *page) seen(id string, version, base *int) (seen review.Seen, from int) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	pd := p.diffs[id]
	if pd == nil {
		pd = &pageDiff{}
	}
	seen = pd.seen
	if version != nil {
		seen.Text = *version
	}
	if base != nil {
		seen.Base = *base
	}
	from = seen.Text
	if from == pd.from {
		seen.Text = pd.own
	}
	return seen, from
}

// edit records an edit that the page made to a version. If the resulting text differs, it tells the page, because a
// page ignores updates sent before its last edit arrived.
func (p *page) edit(d *review.Diff, edited string, version *int, number int) error {
	id := d.ID()
	p.s.mu.Lock()
	pd := p.diff(id)
	pd.recording++
	crossed := version != nil && *version < pd.seen.Text
	p.s.mu.Unlock()
	seen, from := p.seen(id, version, nil)
	p.s.mu.Lock()
	was := pd.shown.Of(from)
	p.s.mu.Unlock()
	edited = text.FromLF(d.Proposal().New, edited)
	own, err := p.s.o.Registry.Edit(id, review.Edit{Text: edited, From: &seen.Text, Was: was, By: p})
	p.s.mu.Lock()
	pd.recording--
	missed := pd.missed
	if pd.recording == 0 {
		pd.missed = nothing
	}
	if err == nil {
		pd.own, pd.from, pd.edit = own, from, max(pd.edit, number)
		pd.shown.Edited(from, edited)
	}
	p.s.mu.Unlock()
	if err == nil && (crossed || d.Now().Seen.Text != own) {
		missed = max(missed, newText)
	}
	if missed != nothing {
		p.tell(d, missed, "")
	}
	return err
}

// diffEdit records an edit; the registry's event passes it on to other pages.
func diffEdit(_ context.Context, p *page, in struct {
	ID      string `json:"id"`
	Text    string `json:"text"`
	Version *int   `json:"version"`
	Edit    int    `json:"edit"` // number of this page's edits of this diff, this one included
}) (any, error) {
	d, ok := p.s.o.Registry.Get(in.ID)
	if !ok {
		return nil, review.ErrSettled
	}
	return empty{}, p.edit(d, in.Text, in.Version, in.Edit)
}

// diffAccept accepts the text that the page shows, if that is the newest and the page knows the current file.
func diffAccept(_ context.Context, p *page, in struct {
	ID      string  `json:"id"`
	Text    *string `json:"text"`
	Version *int    `json:"version"`
	Base    *int    `json:"base"`
}) (any, error) {
	d, ok := p.s.o.Registry.Get(in.ID)
	if !ok {
		return nil, review.ErrSettled
	}
	seen, _ := p.seen(in.ID, in.Version, in.Base)
	if in.Text != nil {
		shown := text.FromLF(d.Proposal().New, *in.Text)
		if now, _ := d.Text(); shown != now { // merged, because the page was not at the newest
			if err := p.edit(d, *in.Text, in.Version, 0); err != nil {
				return nil, err
			}
			seen, _ = p.seen(in.ID, in.Version, in.Base)
		}
		in.Text = &shown
	}
	return empty{}, p.s.o.Registry.Accept(in.ID, seen, in.Text)
}

// diffResolve ends a conflict with the user's choice.
func diffResolve(_ context.Context, p *page, in struct {
	ID      string  `json:"id"`
	Text    *string `json:"text"`
	Version *int    `json:"version"`
	Base    *int    `json:"base"`
	Edit    int     `json:"edit"` // as of diff/edit
	Take    string  `json:"take"` // "proposal" or "file"
}) (any, error) {
	d, ok := p.s.o.Registry.Get(in.ID)
	if !ok {
		return nil, review.ErrSettled
	}
	if in.Take != "proposal" && in.Take != "file" {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "take must be proposal or file")
	}
	if in.Text != nil {
		if err := p.edit(d, *in.Text, in.Version, in.Edit); err != nil {
			return nil, err
		}
	}
	seen, _ := p.seen(in.ID, in.Version, in.Base)
	return empty{}, p.s.o.Registry.Resolve(in.ID, seen, in.Take == "file")
}

func diffReject(_ context.Context, p *page, in idParams) (any, error) {
	return empty{}, p.s.o.Registry.Reject(in.ID)
}
