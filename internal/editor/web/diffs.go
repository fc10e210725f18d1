package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/text"
)

// errNoPage: no page is open.
var errNoPage = errors.New("no editor page is open; run \"pollux page\" in a terminal and open the address that it prints")

// errNoView is errNoPage where the reviewer is another way out.
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
	ReadOnly string `json:"readOnly,omitempty"` // why it cannot be edited; "" if it can
}

func infoOf(d *review.Diff) diffInfo {
	p, now := d.Proposal(), d.Now()
	return diffInfo{d.ID(), p.Path, p.Key, !now.Base.Exists, p.Title, d.Label(), d.Opened().UnixMilli(), now.Text != p.New, p.ReadOnly}
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

// Shows reports whether ShowNow would show a diff now.
func (s *Server) Shows() bool {
	pages := s.everyPage()
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && (len(pages) > 0 || !s.gone.IsZero() && time.Since(s.gone) <= absence)
}

// Show is ShowNow.
func (s *Server) Show(_ context.Context, d *review.Diff) error { return s.ShowNow(d) }

// ShowNow announces a diff to every page; the pages read its texts themselves. It fails when no page is open, except
// shortly after the last one went: that page is probably reloading, and will find the diff.
func (s *Server) ShowNow(d *review.Diff) error {
	if !s.Shows() {
		return errNoView
	}
	s.mu.Lock()
	s.shown[d.ID()] = true
	s.mu.Unlock()
	s.broadcast("diff/opened", map[string]any{"diff": infoOf(d)})
	return nil
}

// Close removes a settled diff from every page.
func (s *Server) Close(d *review.Diff, o review.Outcome) {
	s.mu.Lock()
	delete(s.shown, d.ID())
	for p := range s.pages {
		delete(p.diffs, d.ID())
	}
	s.mu.Unlock()
	s.broadcast("diff/closed", map[string]string{"id": d.ID(), "outcome": outcomeName(o.Kind), "owner": d.Label()})
}

// Content asks the pages that show the diff for edits that they still hold back, and records each as an edit. So the
// last keystrokes before a decision in the terminal count.
func (s *Server) Content(ctx context.Context, d *review.Diff) (newest review.Edit, ok bool) {
	s.mu.Lock()
	var ask []*page
	for p := range s.pages {
		if _, has := p.diffs[d.ID()]; has {
			ask = append(ask, p)
		}
	}
	s.mu.Unlock()
	// Wait a little less than the caller does, so that one silent page does not cost the answers of the others.
	if end, has := ctx.Deadline(); has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-time.Until(end)/5))
		defer cancel()
	}
	var wg sync.WaitGroup
	for _, p := range ask {
		wg.Go(func() { p.flush(ctx, d) })
	}
	wg.Wait()
	return review.Edit{}, false
}

// flush asks one page for a text of the diff that it has not sent yet.
func (p *page) flush(ctx context.Context, d *review.Diff) {
	var out struct {
		Text    *string `json:"text"`
		Version *int    `json:"version"`
		Edit    int     `json:"edit"`
	}
	if p.Call(ctx, "diff/flush", idParams{d.ID()}, &out) == nil && out.Text != nil {
		_ = p.edit(d, *out.Text, out.Version, out.Edit) // fails if the diff has been decided
	}
}

// settleHello runs at a page's first message after its hello. It compares the open diffs reported then with those
// open now and sends the difference, because notifications may have overtaken the hello's answer.
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
	Text    string `json:"text"` // the current text, with edits
	NewEnds *ends  `json:"newEnds,omitempty"`
	// TextEnds is set with NewEnds, when the page has asked for short texts.
	TextEnds *ends  `json:"textEnds,omitempty"`
	Version  int    `json:"version"`
	Edit     int    `json:"edit"` // as of diff/text
	EOL      string `json:"eol"`  // of the proposal
	// DirtyElsewhere: another page has unsaved changes of the file.
	DirtyElsewhere bool `json:"dirtyElsewhere"`
	baseInfo
}

// ends is what a short text leaves out, in UTF-16 units: its start and its end are the same as another text's.
type ends struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// shorten takes from s what it begins and ends with as base does. A browser needs most of a second for each five
// megabytes that it is sent, and the three texts of a diff are mostly the same.
func shorten(base, s string) (string, *ends) {
	start := 0
	for start < len(base) && start < len(s) && base[start] == s[start] {
		start++
	}
	for start > 0 && (start < len(s) && !utf8.RuneStart(s[start]) || start < len(base) && !utf8.RuneStart(base[start])) {
		start--
	}
	end := 0
	for end < min(len(base), len(s))-start && base[len(base)-1-end] == s[len(s)-1-end] {
		end++
	}
	for end > 0 && !utf8.RuneStart(s[len(s)-end]) {
		end--
	}
	return s[start : len(s)-end], &ends{text.UTF16Len(s[:start]), text.UTF16Len(s[len(s)-end:])}
}

// diffRead returns the texts of a diff, which the page shows from here on. A brief request returns only the diff's
// current state; a short one gets the proposal without what it shares with the old text, and the current text without
// what it shares with the proposal.
func diffRead(_ context.Context, p *page, in struct {
	ID    string `json:"id"`
	Brief bool   `json:"brief"`
	Short bool   `json:"short"`
}) (any, error) {
	d, ok := p.s.o.Registry.Get(in.ID)
	if !ok {
		return nil, review.ErrSettled
	}
	s := p.s
	pr := d.Proposal()
	s.mu.Lock()
	edit := 0
	if !in.Brief {
		edit = p.diff(in.ID).edit // from here on the page gets updates, perhaps including what it reads now
	}
	dirty := false
	for other := range s.pages {
		dirty = dirty || other != p && slices.Contains(other.dirty, pr.Path)
	}
	s.mu.Unlock()
	if in.Brief {
		return diffTexts{diffInfo: infoOf(d), DirtyElsewhere: dirty}, nil
	}
	now := d.Now()
	p.told(in.ID, now)
	out := diffTexts{
		diffInfo: infoOf(d), Old: text.ToLF(now.Base.Text), New: text.ToLF(pr.New),
		Text: text.ToLF(now.Text), Version: now.Seen.Text, Edit: edit, EOL: eolName(text.ShapeOf(pr.New)), DirtyElsewhere: dirty,
		baseInfo: baseOf(now),
	}
	if in.Short {
		out.Text, out.TextEnds = shorten(out.New, out.Text)
		out.New, out.NewEnds = shorten(out.Old, out.New)
	}
	return out, nil
}
