package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/text"
)

// errNoPage is why nothing can be shown.
var errNoPage = errors.New("no editor page is open; run \"pollux page\" in a terminal and open the address that it prints")

// errNoView is the same where there is another way out.
var errNoView = fmt.Errorf("%w, or run \"pollux review\" and decide there", errNoPage)

type diffInfo struct {
	ID       string `json:"id"`
	Path     string `json:"path"`     // absolute
	FilePath string `json:"filePath"` // as the agent named it
	IsNew    bool   `json:"isNew"`
	Title    string `json:"title"`
	Owner    string `json:"owner"`
	Opened   int64  `json:"opened"` // Unix milliseconds
	Edited   bool   `json:"edited"`
}

func infoOf(d *review.Diff) diffInfo {
	p := d.Proposal()
	now, _ := d.Text()
	return diffInfo{d.ID(), p.Path, p.Key, p.IsNew, p.Title, d.Label(), d.Opened().UnixMilli(), now != p.New}
}

func outcomeName(k review.Kind) string {
	switch k {
	case review.Accepted:
		return "accepted"
	case review.Rejected:
		return "rejected"
	}
	return "withdrawn"
}

// Shows says whether ShowNow would show a diff now.
func (s *Server) Shows() bool {
	pages := s.everyPage()
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && (len(pages) > 0 || !s.gone.IsZero() && time.Since(s.gone) <= absence)
}

// Show is ShowNow.
func (s *Server) Show(_ context.Context, d *review.Diff) error { return s.ShowNow(d) }

// ShowNow tells every page of a diff; the pages read its texts themselves. It
// fails when there is no page, except shortly after the last one went: that
// one is probably reloading, and finds the diff when it is back.
func (s *Server) ShowNow(d *review.Diff) error {
	if !s.Shows() {
		return errNoView
	}
	note := map[string]any{"diff": infoOf(d)}
	for _, p := range s.everyPage() {
		p.Notify("diff/opened", note)
	}
	return nil
}

// Close takes a settled diff from every page.
func (s *Server) Close(d *review.Diff, o review.Outcome) {
	s.mu.Lock()
	delete(s.editor, d.ID())
	for p := range s.pages {
		delete(p.diffs, d.ID())
	}
	s.mu.Unlock()
	s.broadcast("diff/closed", map[string]string{"id": d.ID(), "outcome": outcomeName(o.Kind), "owner": d.Label()})
}

// Content asks the pages that show the diff for edits which their throttle
// still holds back, so that the last keystrokes before a decision in the
// terminal count. When several hold some, the page that edited last is right.
func (s *Server) Content(ctx context.Context, d *review.Diff) (content string, ok bool) {
	s.mu.Lock()
	var ask []*page
	for p := range s.pages {
		if _, has := p.diffs[d.ID()]; has {
			ask = append(ask, p)
		}
	}
	last := s.editor[d.ID()]
	s.mu.Unlock()
	// A little less than the caller waits, so that what one page answered is
	// not lost to the silence of another.
	if end, has := ctx.Deadline(); has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-time.Until(end)/5))
		defer cancel()
	}
	answers := make([]*string, len(ask))
	var wg sync.WaitGroup
	for i, p := range ask {
		wg.Go(func() { answers[i] = p.flush(ctx, d.ID()) })
	}
	wg.Wait()
	for i, p := range ask {
		if a := answers[i]; a != nil && (!ok || p == last) {
			content, ok = text.FromLF(d.Proposal().New, *a), true
		}
	}
	return content, ok
}

// flush asks one page for the text of a diff that it has not sent yet; nil when there is none.
func (p *page) flush(ctx context.Context, id string) *string {
	var out struct {
		Text *string `json:"text"`
	}
	if p.Call(ctx, "diff/flush", idParams{id}, &out) != nil {
		return nil
	}
	return out.Text
}

// settleHello compares, at the first word of a page after its hello, what it
// was told of open diffs then with what is open now, and tells the difference:
// notifications may have overtaken the answer.
func (s *Server) settleHello(p *page) {
	s.mu.Lock()
	promised, done := p.promised, p.settled || !p.greeted
	p.promised, p.settled = nil, true
	s.mu.Unlock()
	if done {
		return
	}
	pending := s.o.Registry.Pending()
	for _, d := range promised {
		if !slices.Contains(pending, d) {
			p.Notify("diff/closed", map[string]string{"id": d.ID(), "outcome": "withdrawn", "owner": d.Label()})
		}
	}
	for _, d := range pending {
		if !slices.Contains(promised, d) {
			p.Notify("diff/opened", map[string]any{"diff": infoOf(d)})
		}
	}
}

type diffTexts struct {
	diffInfo
	Old     string `json:"old"`
	New     string `json:"new"`
	Text    string `json:"text"` // as it is edited now
	Version int    `json:"version"`
	EOL     string `json:"eol"` // of the proposal
	// DirtyElsewhere: another page has unsaved changes of the file.
	DirtyElsewhere bool `json:"dirtyElsewhere"`
}

// diffRead returns the texts of a diff, which the page shows from here on; or,
// asked in brief, only what is known of it now.
func diffRead(_ context.Context, p *page, in struct {
	ID    string `json:"id"`
	Brief bool   `json:"brief"`
}) (any, error) {
	d, ok := p.s.o.Registry.Get(in.ID)
	if !ok {
		return nil, review.ErrSettled
	}
	s := p.s
	pr := d.Proposal()
	s.mu.Lock()
	if !in.Brief {
		p.diffs[in.ID] = false
	}
	dirty := false
	for other := range s.pages {
		dirty = dirty || other != p && slices.Contains(other.dirty, pr.Path)
	}
	s.mu.Unlock()
	if in.Brief {
		return diffTexts{diffInfo: infoOf(d), DirtyElsewhere: dirty}, nil
	}
	now, version := d.Text()
	return diffTexts{
		diffInfo: infoOf(d), Old: text.ToLF(pr.Old), New: text.ToLF(pr.New),
		Text: text.ToLF(now), Version: version, EOL: eolName(text.ShapeOf(pr.New)), DirtyElsewhere: dirty,
	}, nil
}

type diffNote struct {
	ID       string `json:"id"`
	Text     string `json:"text"`
	Version  int    `json:"version"`
	ClientID string `json:"clientId"`
}

// diffEdit records an edit and passes it to the other pages that show the
// diff. A page that was sent another's edit since its own last one gets its
// own back, with no clientId: it may have taken the other's for the latest.
func diffEdit(_ context.Context, p *page, in struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}) (any, error) {
	s := p.s
	d, ok := s.o.Registry.Get(in.ID)
	if !ok {
		return nil, review.ErrSettled
	}
	s.edits.Lock()
	defer s.edits.Unlock()
	if err := s.o.Registry.Edit(in.ID, text.FromLF(d.Proposal().New, in.Text)); err != nil {
		return nil, err
	}
	_, version := d.Text()
	s.mu.Lock()
	note := diffNote{in.ID, in.Text, version, p.clientID}
	s.editor[in.ID] = p
	crossed := p.diffs[in.ID]
	p.diffs[in.ID] = false
	var others []*page
	for other := range s.pages {
		if _, shows := other.diffs[in.ID]; shows && other != p {
			other.diffs[in.ID] = true
			others = append(others, other)
		}
	}
	s.mu.Unlock()
	if len(others) > 0 || crossed {
		s.passOn(note, others, p, crossed)
	}
	return empty{}, nil
}

// TextChanged tells the pages that show a diff of an edit that was made elsewhere.
func (s *Server) TextChanged(d *review.Diff) {
	s.edits.Lock()
	defer s.edits.Unlock()
	now, version := d.Text()
	note := diffNote{ID: d.ID(), Text: text.ToLF(now), Version: version}
	s.mu.Lock()
	delete(s.editor, d.ID())
	var shown []*page
	for p := range s.pages {
		if _, shows := p.diffs[d.ID()]; shows {
			p.diffs[d.ID()] = true
			shown = append(shown, p)
		}
	}
	s.mu.Unlock()
	if len(shown) > 0 {
		s.passOn(note, shown, nil, false)
	}
}

// passOn encodes the text once for all pages.
func (s *Server) passOn(note diffNote, others []*page, own *page, crossed bool) {
	raw, err := json.Marshal(note)
	if err != nil {
		return // cannot happen: strings and numbers
	}
	for _, other := range others {
		other.Notify("diff/text", json.RawMessage(raw))
	}
	if crossed {
		note.ClientID = ""
		own.Notify("diff/text", note)
	}
}

// diffAccept settles with the text as the page shows it; the latest that is
// known when it does not say.
func diffAccept(_ context.Context, p *page, in struct {
	ID   string  `json:"id"`
	Text *string `json:"text"`
}) (any, error) {
	d, ok := p.s.o.Registry.Get(in.ID)
	if !ok {
		return nil, review.ErrSettled
	}
	if in.Text != nil {
		*in.Text = text.FromLF(d.Proposal().New, *in.Text)
	}
	return empty{}, p.s.o.Registry.Accept(in.ID, in.Text)
}

func diffReject(_ context.Context, p *page, in idParams) (any, error) {
	return empty{}, p.s.o.Registry.Reject(in.ID)
}
